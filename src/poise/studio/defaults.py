"""The models of a studio: those named on the command line, or the embedded ones, learned from the performer once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from poise.apps.learning import read_motion
from poise.errors import PoiseError
from poise.formats.files import make_folder
from poise.motion.cache import cache_folder
from poise.motion.motion import Motion
from poise.performer import act
from poise.performer.bodies import Body
from poise.priors.model_file import Storable, load, save
from poise.priors.registry import learn, options_for
from poise.priors.universal.prior import UniversalPrior
from poise.studio.models import ModelStore

FPS = 30.0
ACTIVE = 100  # poses that a style keeps: enough for clips of this length, and quick enough for any hand
MODEL = ".poise"
EXAMPLE_FPS = 15.0  # of the local model, which is made ready for every set of handles
RECIPE = 4  # counted up when what is learned changes, so that no cache holds the old

Step = Callable[[str, float], None]
"""Called with what is being done and the share of it all that is done."""


@dataclass(frozen=True)
class Lesson:
    """A style of the embedded set: what the performer does, and how."""

    name: str
    action: str
    manner: str = "neutral"

    def motion(self, fps: float = FPS) -> Motion:
        """The performance."""
        return act(self.action, style=self.manner, fps=fps)


LESSONS = (
    Lesson("reach", "reach"),
    Lesson("walk", "walk"),
    Lesson("sneaky walk", "walk", "sneaky"),
    Lesson("tired walk", "walk", "tired"),
    Lesson("run", "run"),
    Lesson("pitch", "throw"),
    Lesson("boxing", "box"),
    Lesson("kick", "kick"),
    Lesson("jump", "jump"),
)
PEOPLE = "people"
"""The universal prior, which comes learned."""
WALKING = "walk in time"
"""A dynamics model: poses that follow each other."""
EVERYTHING, NEAREST = "everything", "nearest of everything"
"""A gaussian and a local model of all motions."""


def embedded(*, step: Step = lambda _what, _share: None, lessons: Sequence[Lesson] = LESSONS) -> ModelStore:
    """People in general, styles, a model of walking in time, and models of everything; learned once, then cached."""
    models, folder = ModelStore(), _folder(lessons)
    models.add(UniversalPrior(Body().skeleton), PEOPLE)
    makers: dict[str, Callable[[], Storable]] = {
        lesson.name: partial(_style_of, lesson) for lesson in lessons
    }
    makers[WALKING] = _dynamics_of_walking
    makers[EVERYTHING] = partial(_all_of, lessons, "gaussian", FPS)
    makers[NEAREST] = partial(_all_of, lessons, "local", EXAMPLE_FPS)
    for number, (name, make) in enumerate(makers.items()):
        step(f"learning {name}", number / len(makers))
        models.add(_cached(folder / f"{name}{MODEL}", make), name)
    step("ready", 1.0)
    return models


def from_files(paths: Sequence[Path], *, step: Step = lambda _what, _share: None) -> ModelStore:
    """Models as they are; clips as styles learned from them, and a gaussian of each."""
    models = ModelStore()
    for number, path in enumerate(paths):
        step(f"reading {path.name}", number / len(paths))
        if path.suffix.lower() == MODEL:
            models.add(load(path), path.stem)
            continue
        motion = read_motion(path)

        def report(share: float, number: int = number, path: Path = path) -> None:
            step(f"learning {path.name}", (number + share) / len(paths))

        models.add(learn([motion], "style", progress=report), path.stem)
        models.add(learn([motion], "gaussian"), f"{path.stem} (gaussian)")
    step("ready", 1.0)
    return models


def _style_of(lesson: Lesson) -> Storable:
    return learn([lesson.motion()], "style", options_for("style", {"active": ACTIVE}))


def _dynamics_of_walking() -> Storable:
    return learn([act("walk", fps=FPS)], "dynamics")


def _all_of(lessons: Sequence[Lesson], kind: str, fps: float) -> Storable:
    return learn([lesson.motion(fps) for lesson in lessons], kind)


def _cached(path: Path, make: Callable[[], Storable]) -> Storable:
    """What a file holds, else what is made now and kept there; a damaged file is made anew."""
    if path.exists():
        try:
            return load(path)
        except PoiseError:
            path.unlink()
    prior = make()
    make_folder(path.parent)
    save(prior, path)
    return prior


def _folder(lessons: Sequence[Lesson]) -> Path:
    """A folder of the cache that is another when what is learned is another."""
    recipe = hashlib.sha256(repr((RECIPE, FPS, ACTIVE, tuple(lessons))).encode()).hexdigest()[:12]
    return cache_folder() / "studio" / recipe
