"""Make a motion from a keyframe script: a few handles on paths, the rest of the body by a learned model.

Grochow et al. 2004, section 7.2. Frames are solved one after the other and then all together (`solvers.sequence`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.apps.inbetweening import PoseKey, Stance, skeleton_of, through_keys
from poise.apps.keyframing_bearing import balances_of, headings_of, places_of
from poise.apps.keyframing_script import MODEL, HandlePath, HeldHandle, Script, follow, read_script
from poise.errors import InvalidValueError, PoiseError, SkeletonError
from poise.priors.model_file import load
from poise.priors.motion.prior import Between
from poise.priors.prior import Prior
from poise.priors.terms import Term
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.skeleton import Pose
from poise.solvers.bearing import FLOOR_ROLES
from poise.solvers.constraints import Constraint, floor
from poise.solvers.posture import FORWARD, Manner, Posture
from poise.solvers.problem import Problem
from poise.solvers.sequence import Frame, Smoothness, frame_by_frame, solve_motion
from poise.solvers.solution import MotionSolution
from poise.solvers.terms import PosePriors
from poise.types import Array, Progress

_POLL = 0.2  # seconds between checks of a watched file


def keyframe(
    prior: Prior,
    script: Script | str | os.PathLike[str],
    *,
    heading: bool = True,
    balance: bool = True,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """Return the motion of a script or of its file, on the body of the model.

    By default, hips softly face the walking direction of the feet and the weight stays over them; `heading` and
    `balance` switch that off. Between whole poses (`keys`) the motion prior moves the body, and the model as well.
    """
    script = script if isinstance(script, Script) else read_script(Path(script))
    if script.keys:
        return through_script(script, prior, progress=progress)
    script = replace(
        script,
        keeps_heading=script.keeps_heading and heading,
        keeps_balance=script.keeps_balance and balance,
    )
    names, weights = script.weights()
    priors = _priors(script, prior, names)
    return _held_pose(script, priors) or keyframe_in(script, priors, weights, progress=progress)


def inbetween(
    keys: Sequence[PoseKey | tuple[float, Pose | Mapping[str, Sequence[float]]]] | str | os.PathLike[str],
    *,
    fps: float = 30.0,
    contacts: bool | Sequence[Stance] = True,
    loop: bool = False,
    variant: int = 0,
) -> MotionSolution:
    """Return the motion through keys at times in seconds, or that of a script's file, by the motion prior.

    Keys that are whole poses are met exactly; all must have one skeleton. A key of handles is a pose by the universal
    prior first, around where the body passes between the whole poses, or where it stands. With `contacts`, feet that
    stand stay in place; a list says which foot stands when. With `loop`, the motion ends in its first pose, where the
    last key stands. Variants 1, 2, ... are other motions through the same keys, drawn from the prior.
    """
    if isinstance(keys, str | os.PathLike):
        return through_script(read_script(Path(keys)), None, variant=variant)
    made = [key if isinstance(key, PoseKey) else PoseKey(*key) for key in keys]
    return through_keys(made, fps=fps, contacts=contacts, loop=loop, variant=variant)


def through_script(
    script: Script,
    prior: Prior | None,
    *,
    variant: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """The motion through a script's poses that also follows its handles, pins and constraints, and its models."""
    if len(script.keys) < 2:
        raise InvalidValueError(f"{script.name or 'the script'} needs at least two poses as [[keys]]")
    body = (prior or UniversalPrior()).on_body(skeleton_of(script.keys))
    names, weights = script.weights()

    def layer(found: Between, space: PoseSpace) -> tuple[list[list[Constraint]], list[Term]]:
        own = replace(script, keeps_heading=False, keeps_balance=False, pins=_where(script, found))
        priors = _priors(own, body, names)
        frames = plan(own, priors, weights)
        wanted = [list(frame.constraints) for frame in frames]
        if prior is None and len(priors) == 1:
            return wanted, []
        handles = [Problem(space, one).handles for one in wanted]
        return wanted, [PosePriors(priors, space, handles, [frame.weights for frame in frames])]

    made = through_keys(
        script.keys, fps=script.fps, contacts=script.contacts, loop=script.loop, variant=variant, layer=layer
    )
    progress(1, 1)
    return replace(made, name=script.name)


def _where(script: Script, found: Between) -> list[HeldHandle]:
    """The pins, in place: those without one, where the body has the handle when the pin begins."""
    paths, motion = {path.handle: path for path in script.paths}, found.motion
    space = PoseSpace(motion.skeleton)
    pins = []
    for pin in script.pins:
        at, frame = _place_of(pin, paths.get(pin.handle)), round(pin.start * script.fps)
        if at is None:
            q = space.q_from_frames(motion.root_positions[frame], motion.rotations[frame])
            at = space.handle_positions(q, space.handles([pin.handle]))[0][0]
        pins.append(replace(pin, at=at))
    return pins


def keyframe_in(
    script: Script,
    priors: Sequence[Prior],
    weights: Float[Array, "frames styles"],
    *,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """The motion of a script under priors of one skeleton, with each frame's weights over them."""
    made = solve_motion(
        priors,
        plan(script, priors, weights),
        fps=script.fps,
        smoothness=_smoothness(script),
        progress=progress,
    )
    return replace(made, name=script.name)


def _held_pose(script: Script, priors: Sequence[Prior]) -> MotionSolution | None:
    """A script whose keys are all of one moment is a pose, which is held; None for others."""
    times = [path.times for path in script.paths] + [turn.times for turn in script.turns]
    moments = np.unique(np.concatenate([*times, np.empty(0)]))
    if len(moments) != 1 or script.pins or script.constraints or len(priors) > 1:
        return None
    _check_handles(script, priors[0])
    forward = script.heading or (FORWARD if script.keeps_heading else None)
    manner = Manner(
        script.floor, heading=forward, keeps_heading=script.heading is not None, balance=script.keeps_balance,
        arms=script.keeps_balance,
    )  # fmt: skip
    (asked,) = follow(script.paths, script.turns, moments)
    held = Posture(priors[0]).solve(asked, manner)
    return MotionSolution([held] * len(script.times), script.fps, name=script.name)


def plan(
    script: Script,
    priors: Sequence[Prior],
    weights: Float[Array, "frames styles"],
    *,
    span: tuple[int, int] = (0, sys.maxsize),
) -> list[Frame]:
    """The constraints of all frames, or of a range of them."""
    _check_handles(script, priors[0])
    return _frames(script, _with_pins(script, priors, weights), weights, priors[0], span)


def watched(path: Path, *, pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Yield at once, and again whenever the file has been saved."""
    seen = None
    while True:
        stamp = path.stat().st_mtime_ns if path.exists() else seen
        if stamp != seen or seen is None:
            seen = stamp
            yield
        pause(_POLL)


def _priors(script: Script, prior: Prior, names: Sequence[str]) -> list[Prior]:
    """The models by name, all on the body of the first."""
    skeleton, found = prior.space.skeleton, []
    for name in names:
        own = prior if name == MODEL else load(script.models[name])
        if not own.space.skeleton.same_topology(skeleton):
            raise SkeletonError(
                f"style {name!r} has another skeleton than the model; blended styles need the same skeleton"
            )
        found.append(own.on_body(skeleton))
    return found


def _check_handles(script: Script, prior: Prior) -> None:
    for handle in (*(path.handle for path in script.paths), *(turn.handle for turn in script.turns)):
        _named(f"handles.{handle.joint}", handle, prior)
    for number, pin in enumerate(script.pins, start=1):
        _named(f"pins[{number}].handle", pin.handle, prior)


def _named(place: str, handle: Handle, prior: Prior) -> None:
    try:
        prior.space.skeleton.index(handle.joint)
    except PoiseError as error:
        raise PoiseError(f"{place}: {error}") from error


def _smoothness(script: Script) -> Smoothness:
    """Twice the smoothness is half the accelerations; with zero, frames are independent."""
    usual = Smoothness()
    if script.smoothness == 0.0:
        return replace(usual, rounds=0)
    return replace(usual, turning=usual.turning / script.smoothness, moving=usual.moving / script.smoothness)


def _with_pins(
    script: Script, priors: Sequence[Prior], weights: Float[Array, "frames styles"]
) -> list[HandlePath]:
    """Paths that stand still while their handles are pinned."""
    paths = {path.handle: path for path in script.paths}
    open_pins = []
    for pin in script.pins:
        at = _place_of(pin, paths.get(pin.handle))
        if at is None:
            open_pins.append(pin)
        else:
            paths[pin.handle] = _pinned(paths.get(pin.handle), replace(pin, at=at))
    for pin in open_pins:  # the body's handle position when the pin begins
        count = int(np.ceil(pin.start * script.fps - 1e-6)) + 1
        frames = _frames(script, list(paths.values()), weights, priors[0], (0, count))
        space = priors[0].space
        q = frame_by_frame(priors, frames, space, fps=script.fps)[-1]
        at = space.handle_positions(q, space.handles([pin.handle]))[0][0]
        paths[pin.handle] = _pinned(paths.get(pin.handle), replace(pin, at=at))
    return list(paths.values())


def _place_of(pin: HeldHandle, path: HandlePath | None) -> Float[Array, "3"] | None:
    """The pin's own position, else that of its handle's path; None if neither is given."""
    if pin.at is not None or path is None:
        return pin.at
    at = path.at(np.array([pin.start]))[0]
    return at if np.all(np.isfinite(at)) else None


def _pinned(path: HandlePath | None, pin: HeldHandle) -> HandlePath:
    """The path with two keys at the pin's position, at rest there."""
    assert pin.at is not None
    times, points, still = np.array([pin.start, pin.end]), np.stack([pin.at, pin.at]), np.zeros((2, 3))
    if path is None:
        return HandlePath(pin.handle, times, points, still, ("none", "none"))
    kept = (path.times < pin.start - 1e-9) | (path.times > pin.end + 1e-9)
    order = np.argsort(np.concatenate([path.times[kept], times]))
    before = [ease for ease, keep in zip(path.eases, kept, strict=True) if keep]
    eases = [*before, "none", path.eases[0]]
    return replace(
        path,
        times=np.concatenate([path.times[kept], times])[order],
        points=np.concatenate([path.points[kept], points])[order],
        tangents=np.concatenate([path.tangents[kept], still])[order],
        eases=tuple(eases[number] for number in order),
    )


def _frames(
    script: Script,
    paths: Sequence[HandlePath],
    weights: Float[Array, "frames styles"],
    prior: Prior,
    span: tuple[int, int],
) -> list[Frame]:
    """The constraints of every frame of a span."""
    some = slice(*span)
    roles = [role for role in FLOOR_ROLES if role in prior.space.skeleton.roles]
    ground: list[Constraint] = [] if script.floor is None else [*floor(roles, height=script.floor)]
    skeleton, times = prior.space.skeleton, script.times[some]
    places = places_of(paths, skeleton)
    facing = headings_of(script, places, skeleton, times)
    carried = balances_of(script, places, skeleton, times)
    followed = follow(paths, script.turns, times)
    for timed in script.constraints:
        for frame in np.flatnonzero(timed.holds(script.times)[some]):
            followed[frame].append(timed.constraint)
    return [
        Frame([*constraints, *ground, *heading, *balance], tuple(shares))
        for constraints, heading, balance, shares in zip(
            followed, facing, carried, weights[some].tolist(), strict=True
        )
    ]
