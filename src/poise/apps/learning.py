"""Read motions and learn a model from them: `poise.learn`, and the input of `poise learn`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.errors import InvalidValueError
from poise.formats import extensions, motion_files, read
from poise.motion.motion import Motion

if TYPE_CHECKING:
    from poise.priors.model_file import Storable
    from poise.priors.registry import PriorOptions

Clip = Motion | str | os.PathLike[str]


def learn(
    clips: Clip | Iterable[Clip],
    kind: str = "gaussian",
    *,
    licence: str = "",
    progress: Callable[[float], None] = lambda _share: None,
    **options: Any,
) -> Storable:
    """Learn a model of one kind from motions, motion files or folders of them, all of one skeleton.

    Options are those of the kind: `learn(clips, kind="style", dimensions=3)`; each kind's class has its `Options`. The
    model stores the clips' names, hashes and `licence`. `progress` is called with the fraction done.
    """
    from poise.priors import registry  # compiled code, which reading a motion does not need

    chosen = registry.options_for(kind, options)
    return calibrated(motions_from(clips), kind, chosen, licence=licence, progress=progress)


def calibrated(
    motions: Sequence[Motion],
    kind: str,
    options: PriorOptions,
    *,
    licence: str = "",
    progress: Callable[[float], None] = lambda _share: None,
) -> Storable:
    """A model of a kind with its training frames and its held-out calibration."""
    from poise.priors import registry
    from poise.priors.held_out import kept
    from poise.priors.known_frames import KnownFrames
    from poise.solvers.calibration import calibrate

    again = getattr(registry.PRIORS.named(kind), "learns_again", True)
    share = 1.0 / (1 + again)
    prior = registry.learn(motions, kind, options, progress=lambda done: progress(share * done))
    if again:
        calibrate(prior, motions, lambda own: registry.learn(own, kind, options))
        progress(1.0)
    return kept(prior, known_frames=KnownFrames.of(prior.space, motions, licence))


def motions_from(clips: Clip | Iterable[Clip]) -> list[Motion]:
    """Motions, and those of files and folders, in order."""
    if isinstance(clips, Motion | str | os.PathLike) or not isinstance(clips, Iterable):
        clips = [clips]
    if not (found := [motion for clip in clips for motion in _motions_of(clip)]):
        raise InvalidValueError("no clips given; give motions, motion files or a folder of them")
    return found


def _motions_of(clip: Clip) -> list[Motion]:
    if isinstance(clip, Motion):
        return [clip]
    if not isinstance(clip, str | os.PathLike):
        raise InvalidValueError(f"a clip must be a motion, a motion file or a folder of them; got {clip!r}")
    path = Path(clip)
    if not (files := motion_files([path], markers=False)):
        known = extensions(markers=False)
        raise InvalidValueError(f"there is no motion file in {path}; known extensions: {', '.join(known)}")
    return [read_motion(file) for file in files]


def read_motion(path: Path, **options: Any) -> Motion:
    """Read a motion from a file, with the reader's options; raise for a file of markers, which has no skeleton."""
    motion = read(path, **options)
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"{path.name} holds markers; this needs the motion of a skeleton")
    return motion
