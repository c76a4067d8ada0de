"""Motion libraries: many clips as one searchable store."""

from poise.library.build import Built, Recipe, build
from poise.library.catalogue import Clip
from poise.library.coherent import CoherentSearch, Runs, find_runs
from poise.library.poses import Poses, QueryMetric
from poise.library.search import ExhaustiveSearch, Found, Search
from poise.library.store import Library

__all__ = [
    "Built",
    "Clip",
    "CoherentSearch",
    "ExhaustiveSearch",
    "Found",
    "Library",
    "Poses",
    "QueryMetric",
    "Recipe",
    "Runs",
    "Search",
    "build",
    "find_runs",
]
