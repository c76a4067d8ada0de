"""The models of a studio: those named on the command line, and built-in ones, learned once from the performer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from poise.engine import end_with_parent
from poise.errors import PoiseError
from poise.formats.files import make_folder
from poise.motion.cache import cache_folder
from poise.motion.motion import Motion
from poise.performer import act
from poise.performer.bodies import Body
from poise.priors.model_file import load, save
from poise.priors.registry import Storable, learn, options_for
from poise.priors.universal.prior import UniversalPrior
from poise.studio.models import ModelSource, ModelStore

FPS = 30.0
ACTIVE = 100  # poses that a style keeps: enough for clips of this length, and fast enough for dragging
MODEL = ".poise"
EXAMPLE_FPS = 15.0  # of the local model, which is prepared for every set of handles
RECIPE = 4  # increase when what is learned changes, to invalidate caches


@dataclass(frozen=True)
class Lesson:
    """A style of the built-in set: the performer's action and manner."""

    name: str
    action: str
    manner: str = "neutral"

    def motion(self, fps: float = FPS) -> Motion:
        """The performance."""
        return act(self.action, style=self.manner, fps=fps)


LESSONS = (
    *(Lesson("reach", "reach"), Lesson("walk", "walk"), Lesson("sneaky walk", "walk", "sneaky")),
    *(Lesson("tired walk", "walk", "tired"), Lesson("run", "run"), Lesson("pitch", "throw")),
    *(Lesson("boxing", "box"), Lesson("kick", "kick"), Lesson("jump", "jump")),
)
PEOPLE = "people"
"""The universal prior, which is shipped trained."""
WALKING = "walk in time"
"""A dynamics model."""
EVERYTHING, NEAREST = "everything", "nearest of everything"
"""A gaussian and a local model of all motions."""


def embedded(*, lessons: Sequence[Lesson] = LESSONS, named: Sequence[Path] = ()) -> ModelStore:
    """Models from files, the universal prior, and built-in models that are learned at first use.

    A model from a file replaces a built-in one of its name.
    """
    models, body = ModelStore(), Body().skeleton
    for path in named:
        models.add(load(path), path.stem)
    models.add(UniversalPrior(body), PEOPLE)
    taken = {path.stem for path in named}
    for name, recipe in recipes(lessons).items():
        if name in taken:
            continue
        latent = recipe.kind in ("style", "dynamics")
        source = ModelSource(recipe.cached, body, latent=latent, path=recipe.path)
        models.add_later(source, name, kind=recipe.kind, summary=recipe.summary)
    return models


@dataclass(frozen=True)
class ModelRecipe:
    """A model that is learned once and then cached in a file."""

    kind: str
    summary: str
    path: Path
    make: Callable[[], Storable]

    def cached(self) -> Storable:
        """The model from the cache, else learned now and stored there; a damaged file is made again."""
        if self.path.exists():
            try:
                return load(self.path)
            except PoiseError:
                self.path.unlink()
        prior = self.make()
        make_folder(self.path.parent)
        save(prior, self.path)
        return prior


def recipes(lessons: Sequence[Lesson] = LESSONS) -> dict[str, ModelRecipe]:
    """The recipes of all built-in models, by name, cached in a folder that depends on what is learned."""
    recipe = hashlib.sha256(repr((RECIPE, FPS, ACTIVE, tuple(lessons))).encode()).hexdigest()[:12]
    folder, found = cache_folder() / "studio" / recipe, dict[str, ModelRecipe]()

    def add(name: str, kind: str, summary: str, make: Callable[[], Storable]) -> None:
        found[name] = ModelRecipe(kind, summary, folder / f"{name}{MODEL}", make)

    for one in lessons:
        add(one.name, "style", f"{one.action}, {one.manner}: one performer", partial(_style_of, one))
    add(WALKING, "dynamics", "a walk, and how its poses follow each other", _dynamics_of_walking)
    everything = partial(_all_of, lessons)
    add(EVERYTHING, "gaussian", "all actions, in clusters", partial(everything, "gaussian", FPS))
    add(NEAREST, "local", "all actions, by the nearest poses", partial(everything, "local", EXAMPLE_FPS))
    return found


def learn_ahead() -> None:
    """Learn what is not in the cache yet, in a separate process beside a running studio."""
    for recipe in recipes().values():
        if not recipe.path.exists():
            recipe.cached()


def _style_of(lesson: Lesson) -> Storable:
    return learn([lesson.motion()], "style", options_for("style", {"active": ACTIVE}))


def _dynamics_of_walking() -> Storable:
    return learn([act("walk", fps=FPS)], "dynamics")


def _all_of(lessons: Sequence[Lesson], kind: str, fps: float) -> Storable:
    return learn([lesson.motion(fps) for lesson in lessons], kind)


if __name__ == "__main__":
    end_with_parent()
    if hasattr(os, "nice"):  # not on Windows
        os.nice(10)
    learn_ahead()
