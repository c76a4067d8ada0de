"""Motion libraries: many clips as one searchable store."""

from poise.library.build import Built, Recipe, build
from poise.library.catalogue import Clip
from poise.library.coherent import CoherentSearch
from poise.library.features import QueryMetric
from poise.library.graph import NeighbourGraph, build_graph
from poise.library.poses import Poses
from poise.library.search import ExactSearch, ExhaustiveSearch, FaissSearch, Found, GraphSearch, Search
from poise.library.segments import Runs, find_runs
from poise.library.store import Library

__all__ = [
    "Built",
    "Clip",
    "CoherentSearch",
    "ExactSearch",
    "ExhaustiveSearch",
    "FaissSearch",
    "Found",
    "GraphSearch",
    "Library",
    "NeighbourGraph",
    "Poses",
    "QueryMetric",
    "Recipe",
    "Runs",
    "Search",
    "build",
    "build_graph",
    "find_runs",
]
