"""Motion libraries: many clips as one searchable store."""

from poise.library.build import Built, Recipe, build
from poise.library.catalogue import Clip
from poise.library.poses import Poses
from poise.library.store import Library

__all__ = ["Built", "Clip", "Library", "Poses", "Recipe", "build"]
