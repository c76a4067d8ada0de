"""Training and test clips; no clip is ever in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from poise import performer
from poise.errors import InvalidValueError, PoiseError, SkeletonError, UnknownNameError
from poise.formats import read
from poise.motion.motion import Motion
from poise.motion.recordings import find_file, find_recordings
from poise.priors.universal.network import shipped
from poise.priors.universal.recordings import ARCHIVE, CHOICE, STRANGERS, PoseTable, motion_of, read_table

SPORT = ("02_05", "02_07", "02_09", "06_03", "06_14", "63_03", "63_20", "124_01", "124_05", "124_07")
GAITS = ("35_01", "35_03", "35_17", "35_19")  # two walks and two runs of one performer
GAIT_DRAWS = (  # several such choices, with a test walk
    (" ".join(GAITS), "35_02"),
    ("35_02 35_04 35_18 35_20", "35_01"),
    ("35_05 35_06 35_17 35_20", "35_02"),
    ("35_07 35_08 35_18 35_19", "35_02"),
)
# The same of another performer.
OTHER_GAITS = (("16_16 16_58 16_36 16_56", "16_15"), ("16_32 16_57 16_39 16_40", "16_15"))
MANY_GAITS = (  # nine walks and ten runs of four performers; the two draws share no clip
    (
        "07_01 07_02 16_15 16_31 16_47 35_01 35_02 35_05 35_28 "
        "09_01 09_03 09_05 16_35 16_45 16_46 16_55 35_17 35_19 35_22",
        "35_03",
    ),
    (
        "07_03 07_08 07_11 16_21 16_22 35_06 35_09 35_30 35_33 "
        "09_02 09_04 09_06 09_09 09_11 16_37 16_38 16_48 35_18 35_20",
        "35_03",
    ),
)
# The next two were chosen by rule when the models were finished: of clips that CMU's index calls just "walk", "run" or
# "run/jog", that are detected as such, and that no split above has, the first of 35, and the first of performers in
# none of them.
LATE_GAITS = (("35_10 35_11 35_21 35_23", "35_14"), ("35_12 35_13 35_24 35_25", "35_14"))
NEW_GAITS = (("02_01 02_02 02_03 127_06", "10_04"), ("05_01 06_01 127_07 127_08", "10_04"))
# Walks of 07 and runs of 09 and 35 in no split above, chosen when the dynamics had steps beside recorded ones.
LAST_GAITS = (("07_04 07_05 09_07 09_08", "07_10"), ("07_06 07_09 09_10 35_26", "07_10"))
# Chosen when steps began beside recorded ones at two distances, before any model saw them: walks and runs of 16 that
# turn or veer, and walks of 12 and 35 with runs of 16 that turn. None of these clips is in a split above.
TURNING_GAITS = (("16_17 16_19 16_41 16_49", "16_15"), ("16_18 16_20 16_42 16_50", "16_15"))
MIXED_GAITS = (("12_01 12_02 16_43 16_51", "16_15"), ("35_15 35_16 16_44 16_52", "16_15"))
# Chosen when contacts at 30 Hz were no longer smoothed, before any model saw them: walks and runs of 16 that veer or
# turn, walks of 12 and 113 with runs of 128; walks of 39 and 16 with runs of 127 and 78 that turn. No split above has
# them.
VEERING_GAITS = (("16_13 16_14 16_53 16_54", "16_15"), ("12_03 113_25 128_02 128_03", "16_15"))
STRAY_GAITS = (("39_12 39_13 127_09 127_10", "16_15"), ("16_25 16_26 78_09 78_10", "16_15"))
ACTIONS = (  # six actions, each of one performer
    ("07_01 07_02 07_03 07_04 07_05 07_06", "07_07 07_08 07_09 07_10"),  # walks
    ("14_02", "14_03"),  # boxing
    ("124_01", "124_02"),  # a pitch
    ("16_36 16_56 16_39", "16_40 16_35"),  # runs
    ("13_11", "13_13"),  # jumps
    ("06_03 06_04 06_05", "06_06 06_07"),  # with a ball
)
STRIDES = ("35_01", "35_02", "35_03", "35_04", "35_05")
EVERY_LEARNED = 12  # every twelfth frame of the strangers' training clips is learned
EVERY = 10  # every tenth clip of all is held out for the test


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


def split_of_files(train: Sequence[Path], test: Sequence[Path], *, untrained: bool = False) -> list[Fold]:
    """One fold of given clips; all of one topology, with any limb lengths and units.

    Methods that learn nothing (`untrained`) need no training clips.
    """
    if untrained and test and not train:
        return [Fold((), (read_motion(path),)) for path in test]
    if not train or not test:
        raise InvalidValueError(
            "give both clips to train on and clips to test on", settings=("train", "test")
        )
    if shared := {path.resolve() for path in train} & {path.resolve() for path in test}:
        names = ", ".join(sorted(path.name for path in shared))
        raise InvalidValueError(f"a clip cannot be both trained and tested on; {names} is in both")
    clips = {path: read_motion(path) for path in (*train, *test)}
    first = clips[train[0]].skeleton
    for path, clip in clips.items():
        if not clip.skeleton.same_topology(first):
            raise SkeletonError(
                f"{path.name} has another skeleton than {train[0].name}: {len(clip.skeleton)} joints below "
                f"{clip.skeleton.names[0]}, where {len(first)} below {first.names[0]} were expected; "
                "one evaluation needs clips with the same joints below the same parents"
            )
    return [Fold(tuple(clips[path] for path in train), tuple(clips[path] for path in test))]


def read_motion(path: Path) -> Motion:
    """Read a motion from a file; raise for markers."""
    motion = read(path)
    if not isinstance(motion, Motion):
        raise PoiseError(f"{path.name} holds markers; evaluation needs a skeleton's motion")
    return motion


def _performer() -> list[Fold]:
    """Walks, boxing, throws and reaches of one performer; other seeds and speeds in the test."""
    others = ("box", "throw", "reach")
    learned = [performer.act(action, fps=60, seed=seed) for action in others for seed in (0, 1)]
    train = (*_walks((1.0, 1.3, 1.6), seconds=4.0, seed=0), *learned)
    unseen = [performer.act(action, fps=60, seed=12) for action in others]
    return [Fold(train, (*_walks((1.45,), seconds=2.0, seed=11), *unseen))]


def performer_gaits() -> list[Fold]:
    """Two walks and two runs of one performer, and a walk at another speed for the test."""
    walks = _walks((1.2, 1.5), seconds=3.0, seed=0)
    paces = ((3, 2.8), (4, 3.3))
    runs = [performer.act("run", speed=speed, seconds=2.0, fps=60, seed=seed) for seed, speed in paces]
    return [Fold((*walks, *runs), _walks((1.35,), seconds=2.0, seed=11))]


def _walks(speeds: Sequence[float], *, seconds: float, seed: int) -> tuple[Motion, ...]:
    return tuple(
        performer.act("walk", speed=speed, seconds=seconds, fps=60, seed=seed + number)
        for number, speed in enumerate(speeds)
    )


def _recordings() -> Path:
    folder = find_recordings()
    if folder is None or not (folder / "cmu").is_dir():
        raise PoiseError(
            "this split needs recordings: point POISE_MOCAP at a folder with cmu/*.bvh, or use the split performer",
            settings=("split",),
        )
    return folder / "cmu"


def _clips(names: Sequence[str]) -> tuple[Motion, ...]:
    folder = _recordings()
    return tuple(read_motion(folder / f"{name}.bvh") for name in names)


def against(train: Sequence[str], test: Sequence[str]) -> Callable[[], list[Fold]]:
    """Recordings by name, to train and to test on."""
    return lambda: [Fold(_clips(train), _clips(test))]


def _draws(draws: Sequence[tuple[str, str]]) -> Callable[[], list[Fold]]:
    """Several choices of clips, names with spaces between."""
    return lambda: [Fold(_clips(train.split()), _clips(test.split())) for train, test in draws]


def _leave_one_out(names: Callable[[], Sequence[str]]) -> Callable[[], list[Fold]]:
    def folds() -> list[Fold]:
        clips = _clips(names())
        return [Fold((*clips[:i], *clips[i + 1 :]), (clip,)) for i, clip in enumerate(clips)]

    return folds


def _found(pattern: str) -> list[str]:
    return sorted(path.stem for path in _recordings().glob(pattern))


def _everything() -> list[Fold]:
    """Every tenth clip against all the others: every subject is in the training data, no test clip is."""
    names = _found("*.bvh")
    kept = set(names[EVERY // 2 :: EVERY])
    return [Fold(_clips([name for name in names if name not in kept]), _clips(sorted(kept)))]


def _strangers(draws: Sequence[Sequence[str]] = STRANGERS) -> list[Fold]:
    """Choices of performers that the universal prior was not trained on, against the clips that its file lists."""
    table, learned = _archive(), set(shipped().header["learned_from"])
    train = tuple(
        motion_of(table, k, every=EVERY_LEARNED) for k, name in enumerate(table.clips) if name in learned
    )
    clips = list(enumerate(table.performers))
    return [Fold(train, tuple(motion_of(table, k) for k, who in clips if who in draw)) for draw in draws]


def _archived_draws(draws: Sequence[tuple[str, str]]) -> list[Fold]:
    """Several choices of clips of the archive."""
    table = _archive()
    numbers = {name: number for number, name in enumerate(table.clips)}
    return [
        Fold(*(tuple(motion_of(table, numbers[name]) for name in names.split()) for names in draw))
        for draw in draws
    ]


def _archive() -> PoseTable:
    path = find_file(ARCHIVE)
    if path is None:
        raise PoiseError(f"this split needs {ARCHIVE}: point POISE_MOCAP at a folder with it")
    return read_table(path)


SPLITS: dict[str, Callable[[], list[Fold]]] = {
    "performer": _performer,
    "walk": against([f"07_{i:02d}" for i in range(1, 7)], [f"07_{i:02d}" for i in range(7, 11)]),
    "boxing": against(["14_02"], ["14_03"]),
    "pitch": against(["124_01"], ["124_02"]),
    "sport": _leave_one_out(lambda: SPORT),
    "locomotion": _leave_one_out(lambda: _found("35_*.bvh")),
    "gaits": _draws(GAIT_DRAWS),
    "other-gaits": _draws(OTHER_GAITS),
    "many-gaits": _draws(MANY_GAITS),
    "late-gaits": _draws(LATE_GAITS),
    "new-gaits": lambda: _archived_draws(NEW_GAITS),
    "last-gaits": _draws(LAST_GAITS),
    "turning-gaits": _draws(TURNING_GAITS),
    "mixed-gaits": lambda: _archived_draws(MIXED_GAITS),
    "veering-gaits": lambda: _archived_draws(VEERING_GAITS),
    "stray-gaits": lambda: _archived_draws(STRAY_GAITS),
    "actions": _draws(ACTIONS),
    "strides": _leave_one_out(lambda: STRIDES),
    "everything": _everything,
    "strangers": _strangers,
    "choice": lambda: _strangers((CHOICE,)),
}
ABOUT_SPLITS = {
    "performer": "the procedural performer; needs no recordings",
    "walk": "walks of one performer",
    "boxing": "two takes of one boxer",
    "pitch": "two pitches of one performer",
    "sport": "ten short clips of sports, each left out in turn",
    "locomotion": "all walks and runs of performer 35, each left out in turn",
    "gaits": "two walks and two runs of one performer, an unseen walk",
    "other-gaits": "the same of another performer",
    "many-gaits": "nine walks and ten runs of four performers",
    "late-gaits": "as gaits, of clips chosen when the models were finished",
    "new-gaits": "the same of performers that no model was made with",
    "last-gaits": "the same of clips in no split above",
    "turning-gaits": "walks and runs that turn or veer",
    "mixed-gaits": "walks of one performer with runs of another that turn",
    "veering-gaits": "walks and runs that veer, of several performers",
    "stray-gaits": "walks and runs that turn, of several performers",
    "actions": "six actions, such as boxing and jumps, each of one performer",
    "strides": "five walks of one performer, each left out in turn",
    "everything": "every tenth of all clips is left out",
    "strangers": "performers that the universal prior has not seen",
    "choice": "one set of strangers by which settings were chosen",
}
"""What each split trains and tests on."""
