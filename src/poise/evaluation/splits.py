"""Which clips are learned from and which are kept for the test; none is ever in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from poise import performer
from poise.errors import PoiseError, UnknownNameError
from poise.formats import read
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings

SPORT = ("02_05", "02_07", "02_09", "06_03", "06_14", "63_03", "63_20", "124_01", "124_05", "124_07")


@dataclass(frozen=True, eq=False)
class Fold:
    """One training and one test set."""

    train: tuple[Motion, ...]
    test: tuple[Motion, ...]


def load_split(name: str) -> list[Fold]:
    """The folds of a named split."""
    if name not in SPLITS:
        raise UnknownNameError("split", name, SPLITS)
    return SPLITS[name]()


def split_of_files(train: Sequence[Path], test: Sequence[Path]) -> list[Fold]:
    """One fold of clips given by hand."""
    return [Fold(tuple(map(read_motion, train)), tuple(map(read_motion, test)))]


def read_motion(path: Path) -> Motion:
    """A motion from a file; markers are no motion."""
    motion = read(path)
    if not isinstance(motion, Motion):
        raise PoiseError(f"{path.name} holds markers; evaluation needs a skeleton's motion")
    return motion


def _performer() -> list[Fold]:
    """Walks, boxing and throws of one performer, by other seeds and speeds in the test."""
    train = (
        *(
            performer.act("walk", speed=speed, seconds=4.0, fps=60, seed=seed)
            for seed, speed in enumerate((1.0, 1.3, 1.6))
        ),
        *(
            performer.act(action, fps=60, seed=seed)
            for seed, action in enumerate(("punch", "throw", "reach"))
        ),
    )
    test = (
        performer.act("walk", speed=1.45, seconds=2.0, fps=60, seed=11),
        *(performer.act(action, fps=60, seed=12) for action in ("punch", "throw", "reach")),
    )
    return [Fold(train, test)]


def _clips(names: Sequence[str]) -> tuple[Motion, ...]:
    folder = find_recordings()
    if folder is None:
        raise PoiseError(
            "this split needs recordings: point POISE_MOCAP at a folder with cmu/*.bvh, or use --split performer"
        )
    return tuple(read_motion(folder / "cmu" / f"{name}.bvh") for name in names)


def _against(train: Sequence[str], test: Sequence[str]) -> Callable[[], list[Fold]]:
    return lambda: [Fold(_clips(train), _clips(test))]


def _leave_one_out(names: Sequence[str]) -> Callable[[], list[Fold]]:
    def folds() -> list[Fold]:
        clips = _clips(names)
        return [Fold((*clips[:i], *clips[i + 1 :]), (clip,)) for i, clip in enumerate(clips)]

    return folds


SPLITS: dict[str, Callable[[], list[Fold]]] = {
    "performer": _performer,
    "walk": _against([f"07_{i:02d}" for i in range(1, 7)], [f"07_{i:02d}" for i in range(7, 11)]),
    "boxing": _against(["14_02"], ["14_03"]),
    "pitch": _against(["124_01"], ["124_02"]),
    "sport": _leave_one_out(SPORT),
}
