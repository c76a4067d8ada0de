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
from poise.apps.keyframing_script import MODEL, HandlePath, HeldHandle, Script, follow, read_script
from poise.errors import InvalidValueError, PoiseError, SkeletonError
from poise.geometry import rotations
from poise.geometry.splines import curve_through, turns_through
from poise.motion.motion import Motion
from poise.priors.model_file import load, opened
from poise.priors.motion.prior import Between
from poise.priors.prior import Prior
from poise.priors.terms import Term
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers import bearing
from poise.solvers.bearing import FLOOR_ROLES
from poise.solvers.constraints import Constraint, LookAt, Orientation, floor
from poise.solvers.posture import FORWARD, Manner, Posture
from poise.solvers.problem import Problem
from poise.solvers.sequence import Frame, PosePriors, Smoothness, frame_by_frame, solve_motion
from poise.solvers.solution import MotionSolution
from poise.types import Array, Progress, silent

Way = Float[Array, "frames 3"]

STEADY = 0.05  # radians: tolerance of the hips' heading
STRIDE = 1.2  # seconds: window over which the left and right sides of the feet are determined
APART = 0.03  # metres: smallest lateral distance of the feet in it
WOBBLE = 0.05  # metres: variation of that distance without a stride
AROUND = np.array([-0.35, -0.17, 0.0, 0.17, 0.35])  # seconds around a frame at which feet may carry weight
EDITED = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis")
CLOSE = 0.02  # metres: largest distance of the keys' curve from the recording
STILL = 0.03  # metres: a handle that moves less counts as pinned ...
STAYS = 0.3  # ... for at least this many seconds
SETTLES = 0.05  # seconds at both ends that are left to the path
_POLL = 0.2  # seconds between checks of a watched file


def keyframe(
    prior: Prior | str | os.PathLike[str],
    script: Script | str | os.PathLike[str],
    *,
    heading: bool = True,
    balance: bool = True,
    progress: Progress = silent,
) -> MotionSolution:
    """Return the motion of a script or of its file, on the body of the model, a prior or its file.

    By default, hips softly face the walking direction of the feet and the weight stays over them; `heading` and
    `balance` switch that off. Between whole poses (`keys`) the motion prior moves the body, and the model as well.
    """
    prior, script = opened(prior), script if isinstance(script, Script) else read_script(Path(script))
    if script.keys:
        return through_script(script, prior, progress=progress)
    heading, balance = script.keeps_heading and heading, script.keeps_balance and balance
    script = replace(script, keeps_heading=heading, keeps_balance=balance)
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
    script: Script, prior: Prior | None, *, variant: int = 0, progress: Progress = silent
) -> MotionSolution:
    """The motion through a script's poses that also follows its handles, pins and constraints, and its models."""
    if len(script.keys) < 2 and not any(key.walk for key in script.keys):
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
    space, pins = PoseSpace(motion.skeleton), []
    for pin in script.pins:
        if (placed := _placed(pin, paths.get(pin.handle))) is None:
            frame = round(pin.start * script.fps)
            q = space.q_from_frames(motion.root_positions[frame], motion.rotations[frame])
            placed = replace(pin, at=space.handle_positions(q, space.handles([pin.handle]))[0][0])
        pins.append(placed)
    return pins


def _placed(pin: HeldHandle, path: HandlePath | None) -> HeldHandle | None:
    """The pin at its own position, else at that of its handle's path; None if neither is given."""
    if pin.at is not None or path is None:
        return pin if pin.at is not None else None
    at = path.at(np.array([pin.start]))[0]
    return replace(pin, at=at) if np.all(np.isfinite(at)) else None


def keyframe_in(
    script: Script,
    priors: Sequence[Prior],
    weights: Float[Array, "frames styles"],
    *,
    progress: Progress = silent,
) -> MotionSolution:
    """The motion of a script under priors of one skeleton, with each frame's weights over them."""
    usual, frames = Smoothness(), plan(script, priors, weights)
    if script.smoothness == 0.0:
        smoothness = replace(usual, rounds=0)  # frames are independent
    else:  # twice the smoothness is half the accelerations
        turning, moving = usual.turning / script.smoothness, usual.moving / script.smoothness
        smoothness = replace(usual, turning=turning, moving=moving)
    made = solve_motion(priors, frames, fps=script.fps, smoothness=smoothness, progress=progress)
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
    script: Script, priors: Sequence[Prior], weights: Float[Array, "frames styles"], *,
    span: tuple[int, int] = (0, sys.maxsize),
) -> list[Frame]:  # fmt: skip
    """The constraints of all frames, or of a range of them."""
    _check_handles(script, priors[0])
    return _frames(script, _with_pins(script, priors, weights), weights, priors[0], span)


def script_text(
    clip: Motion,
    handles: Sequence[str],
    *,
    close: float = CLOSE,
    turned: float | None = None,
    fps: float = 30.0,
) -> str:
    """A script whose handles follow a recording, by the few keys of their paths; handles at rest are pinned.

    Paths stay within `close` metres of the recording; with `turned`, handles also have rotations, within these radians.
    """
    if not handles:
        raise InvalidValueError("name at least one handle for the keys, such as left_foot and right_hand")
    if len(clip) < 2:
        raise InvalidValueError("keys need a clip of two frames or more; got one")
    times = np.arange(len(clip)) / clip.fps
    positions, axes = world_transforms(clip.skeleton, clip.root_positions, clip.rotations)
    text = f"# Taken from {clip.name or 'a clip'}.\nduration = {times[-1]:.3f}\nfps = {fps:g}\nfloor = true\n"
    for handle in handles:
        joint, inside = clip.skeleton.index(handle), np.zeros(len(times), dtype=np.bool_)
        way, parts = positions[:, joint], dict[int, list[str]]()
        stays = _resting_spans(way, clip.fps)
        for first, last in stays:
            inside[first + 1 : last + 1] = True
        moving = np.flatnonzero(~inside)
        for key in moving[fewest_keys(times[moving], way[moving], close)].tolist():
            parts.setdefault(key, []).append("at = [" + ", ".join(f"{value:.3f}" for value in way[key]) + "]")
        if turned is not None:
            turns = rotations.continuous(rotations.quaternion_from_matrix(axes[:, joint]))
            for key in fewest_turns(times, turns, turned):
                own = ", ".join(f"{value:.5f}" for value in turns[key])
                parts.setdefault(key, []).append(f"rotation = [{own}]")
        text += f"\n[handles.{handle}]\nkeys = [\n"
        for key, what in sorted(parts.items()):
            text += f"  {{ time = {times[key]:.3f}, {', '.join(what)} }},\n"
        text += "]\n"
        for first, last in stays:
            span = f"from = {times[first]:.3f}\nto = {times[last]:.3f}"
            text += f'\n[[pins]]\nhandle = "{handle}"\n{span}\n'
    return text


def fewest_keys(times: Float[Array, "n"], points: Float[Array, "n 3"], close: float) -> list[int]:
    """Indices of keys whose curve stays close to all points: both ends, then where the curve is farthest off."""
    return _fewest(
        len(times),
        lambda keys: np.linalg.norm(curve_through(times[keys], points[keys], times) - points, axis=1),
        close,
    )


def fewest_turns(times: Float[Array, "n"], turns: Float[Array, "n 4"], close: float) -> list[int]:
    """Indices of keys whose curve stays within some radians of all rotations."""
    return _fewest(
        len(times),
        lambda keys: rotations.geodesic_distance(turns_through(times[keys], turns[keys], times), turns),
        close,
    )


def _fewest(count: int, off: Callable[[list[int]], Float[Array, "n"]], close: float) -> list[int]:
    chosen = sorted({0, count - 1})
    while len(chosen) < count:
        apart = off(chosen)
        if apart.max() <= close:
            break
        chosen = sorted({*chosen, int(apart.argmax())})
    return chosen


def _resting_spans(way: Float[Array, "n 3"], fps: float) -> list[tuple[int, int]]:
    """Frame ranges in which a point stays within a small ball for a while, without a margin at both ends."""
    spans, first = [], 0
    while first < len(way):
        away = np.linalg.norm(way[first:] - way[first], axis=1) > STILL
        last = first + (int(away.argmax()) if away.any() else len(away)) - 1
        margin = round(SETTLES * fps)
        if (last - first - 2 * margin) / fps >= STAYS:
            spans.append((first + margin, last - margin))
            first = last + 1
        else:
            first += 1
    return spans


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
    handles = [path.handle for path in script.paths] + [turn.handle for turn in script.turns]
    placed = [(f"handles.{handle.joint}", handle) for handle in handles]
    pinned = [(f"pins[{number}].handle", pin.handle) for number, pin in enumerate(script.pins, start=1)]
    for place, handle in placed + pinned:
        try:
            handle.on(prior.space.skeleton)
        except PoiseError as error:
            raise PoiseError(f"{place}: {error}") from error


def _with_pins(
    script: Script, priors: Sequence[Prior], weights: Float[Array, "frames styles"]
) -> list[HandlePath]:
    """Paths that stand still while their handles are pinned."""
    paths, space = {path.handle: path for path in script.paths}, priors[0].space
    open_pins = []
    for pin in script.pins:
        if (placed := _placed(pin, paths.get(pin.handle))) is None:
            open_pins.append(pin)
        else:
            paths[pin.handle] = _pinned(paths.get(pin.handle), placed)
    for pin in open_pins:  # the body's handle position when the pin begins
        count = int(np.ceil(pin.start * script.fps - 1e-6)) + 1
        frames = _frames(script, list(paths.values()), weights, priors[0], (0, count))
        q = frame_by_frame(priors, frames, space, fps=script.fps)[-1]
        at = space.handle_positions(q, space.handles([pin.handle]))[0][0]
        paths[pin.handle] = _pinned(paths.get(pin.handle), replace(pin, at=at))
    return list(paths.values())


def _pinned(path: HandlePath | None, pin: HeldHandle) -> HandlePath:
    """The path with two keys at the pin's position, at rest there."""
    assert pin.at is not None
    times, points, still = np.array([pin.start, pin.end]), np.stack([pin.at, pin.at]), np.zeros((2, 3))
    if path is None:
        return HandlePath(pin.handle, times, points, still, ("none", "none"))
    kept = (path.times < pin.start - 1e-9) | (path.times > pin.end + 1e-9)
    order = np.argsort(np.concatenate([path.times[kept], times]))
    eases = [*(ease for ease, keep in zip(path.eases, kept, strict=True) if keep), "none", path.eases[0]]
    return replace(
        path,
        times=np.concatenate([path.times[kept], times])[order],
        points=np.concatenate([path.points[kept], points])[order],
        tangents=np.concatenate([path.tangents[kept], still])[order],
        eases=tuple(eases[number] for number in order),
    )


def _frames(
    script: Script, paths: Sequence[HandlePath], weights: Float[Array, "frames styles"], prior: Prior,
    span: tuple[int, int],
) -> list[Frame]:  # fmt: skip
    """The constraints of every frame of a span."""
    some = slice(*span)
    roles = [role for role in FLOOR_ROLES if role in prior.space.skeleton.roles]
    ground: list[Constraint] = [] if script.floor is None else [*floor(roles, height=script.floor)]
    skeleton, times = prior.space.skeleton, script.times[some]
    on = [(*path.handle.on(skeleton), path) for path in paths]
    at = {joint: path for joint, offset, path in on if offset == (0.0, 0.0, 0.0)}
    places = {role: at[skeleton.index(role)] for role in skeleton.roles if skeleton.index(role) in at}
    ways = _forward(script, places, times)
    facing = _headings(script, places, skeleton, ways)
    carried = _balances(script, places, skeleton, times, ways)
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


# --- the soft default posture of a keyed body ------------------------------------------------------------------------
#
# Its hips face the walking direction of the feet, its weight is over them. Two feet at one moment do not determine the
# heading; over a stride, one is to the left of the other. In a stride one foot carries the body, which falls from one
# to the next; within a third of a second before and after, both do.


def _headings(
    script: Script, places: dict[str, HandlePath], skeleton: Skeleton, ways: Way
) -> Iterator[list[Constraint]]:
    """Soft hip headings: from the script, else from its feet, unless other keys say where the body faces."""
    turned = any(isinstance(timed.constraint, Orientation | LookAt) for timed in script.constraints)
    besides = any(role.startswith(SIDES) and not role.endswith("_foot") for role in places)
    free = script.keeps_heading and not (script.turns or turned or besides)
    asked = "pelvis" in skeleton.roles and (script.heading is not None or free)
    for way in ways:
        known = asked and np.all(np.isfinite(way))
        yield [bearing.facing(way, skeleton, at=np.zeros(3), tolerance=STEADY)] if known else []


def _forward(script: Script, places: dict[str, HandlePath], times: Float[Array, "frames"]) -> Way:
    """The forward direction: from the script, else perpendicular to the feet's left-right direction over a stride.

    NaN without feet or if they cross.
    """
    if script.heading is not None:
        return np.tile(np.array(script.heading, dtype=np.float64), (len(times), 1))
    if not all(f"{side}_foot" in places for side in SIDES):
        return np.full((len(times), 3), np.nan)
    left, right = (places[f"{side}_foot"].at(script.times)[:, [0, 2]] for side in SIDES)
    half = round(0.5 * STRIDE * script.fps)
    first = np.clip(np.rint(times * script.fps).astype(int) - half, 0, max(len(left) - 2 * half - 1, 0))
    return np.array([_across((left - right)[one : one + 2 * half + 1]) for one in first])


def _across(apart: Float[Array, "moments 2"]) -> Float[Array, "3"]:
    """The forward direction from the vectors between right and left foot: perpendicular to their least variation.

    Striding feet pass each other along the walking direction, not across it.
    """
    known = apart[np.all(np.isfinite(apart), axis=1)]
    if len(known) == 0:
        return np.full(3, np.nan)
    mean, away = known.mean(axis=0), known - known.mean(axis=0)
    x, z = np.linalg.solve(away.T @ away / len(known) + WOBBLE**2 * np.eye(2), mean)
    size = np.hypot(x, z)
    left = mean @ (x, z) / max(size, 1e-12)
    return np.array([-z, 0.0, x]) / size if left > APART else np.full(3, np.nan)


def _balances(
    script: Script,
    places: dict[str, HandlePath],
    skeleton: Skeleton,
    times: Float[Array, "frames"],
    ways: Way,
) -> Iterator[list[Constraint]]:
    """The balance constraint of every frame; none if the feet are not keyed."""
    feet = {f"{side}_foot" for side in SIDES}
    asked = script.keeps_balance and feet <= set(places)
    for moment, forward in zip(times, ways, strict=True):
        moments = np.clip(moment + AROUND, 0.0, script.times[-1])
        at = {role: path.at(moments) for role, path in places.items()} if asked else {}
        known = {role: way for role, way in at.items() if np.all(np.isfinite(way))}
        if not (feet <= set(known) and np.all(np.isfinite(forward))):
            yield []
            continue
        stood = [
            bearing.with_toes({role: way[k] for role, way in known.items()}, skeleton, forward)
            for k in range(len(moments))
        ]
        balance = bearing.balanced_among(stood, skeleton, held=known)
        yield [] if balance is None else [balance]
