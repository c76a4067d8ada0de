"""Drag the path of one handle through a clip; the rest of the body follows (Huang et al. 2017, Fig. 5).

A frame starts from the recording. The prior predicts how poses change when the handle's target changes: the wanted
pose is the recorded one plus the difference of two predictions, in the prior's covariance. An edit that changes
nothing returns the recording, and the body's other ends stay in place unless the dragged handle pulls them along.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.bounds import CLOSEST, FARTHEST, checked_text
from poise.errors import InvalidValueError, ParseError
from poise.geometry.splines import curve_through, smoothstep
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.solvers.constraints import Position
from poise.solvers.problem import Problem, Settings
from poise.types import Array, Progress, silent

PLANTED = ("left_foot", "right_foot")
STEADY = ("head", "left_hand", "right_hand")
STEADY_TOLERANCE = 0.05  # metres: tolerance of the other ends
GIVES_WAY = 1e-3  # variance of the root, which gives way a little before the body breaks
EASE = 0.25  # seconds before and after the path for blending in and out


@dataclass(frozen=True, eq=False)
class Path3:
    """The path of a handle: points at times in seconds, in the world or relative to the recording."""

    times: Float[Array, "keys"]
    points: Float[Array, "keys 3"]
    relative: bool = False


@dataclass(frozen=True, eq=False)
class Edit:
    """An edited clip, with statistics."""

    motion: Motion
    handle_distances: Float[Array, "frames"]
    unmet: tuple[int, ...]


def drag(prior: Prior, clip: Motion, handle: str, path: Path3, *, progress: Progress = silent) -> Edit:
    """The clip with its handle on the path; frames outside the path and its ease are unchanged."""
    prior = prior.on_body(clip.skeleton)
    space = prior.space
    joint = space.skeleton.index(handle)
    known = [role for role in (*PLANTED, *STEADY) if role in clip.skeleton.roles]
    names = [handle, *(role for role in known if space.skeleton.index(role) != joint)]
    truth = space.q_from_frames(clip.root_positions, clip.rotations)
    recorded = np.stack([space.handle_positions(q, space.handles(names))[0] for q in truth])
    targets = recorded.copy()
    targets[:, 0] += displacements(path, recorded[:, 0], clip.fps)
    constraints = [
        Position(name, (0.0, 0.0, 0.0), tolerance=STEADY_TOLERANCE if name in STEADY and number else None,
                 priority=int(number > 0))
        for number, name in enumerate(names)
    ]  # fmt: skip
    problem = Problem(space, constraints, root="solved", limits=prior.limits, settings=Settings())
    guide = prior.guide(space.handles(names))
    poses, unmet = truth.copy(), []
    for frame in np.flatnonzero(np.any(targets[:, 0] != recorded[:, 0], axis=1)):
        mean, covariance = guide.change(truth[frame], recorded[frame], targets[frame])
        problem.with_targets(targets[frame])
        metric = np.zeros((space.freedoms, space.freedoms))
        metric[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = covariance
        metric[range(ROOT_FREEDOMS), range(ROOT_FREEDOMS)] = GIVES_WAY
        _, _, errors = problem.run(poses[frame], mean, metric)
        if np.linalg.norm(errors[:3]) > problem.settings.tolerance:
            unmet.append(int(frame))
        progress(int(frame) + 1, len(clip))
    roots, quaternions = space.frames_from_q(poses)
    quaternions[:, ~space.is_moving] = clip.rotations[:, ~space.is_moving]
    quaternions[:, 0] = poses[:, 3:7]
    reached = np.stack([space.handle_positions(q, space.handles([handle]))[0][0] for q in poses])
    distances = np.linalg.norm(reached - targets[:, 0], axis=1)
    return Edit(clip.with_frames(roots, quaternions), distances, tuple(unmet))


def displacements(path: Path3, recorded: Float[Array, "frames 3"], fps: float) -> Float[Array, "frames 3"]:
    """The displacement of the handle from its recording, frame by frame, eased in and out."""
    times = np.arange(len(recorded)) / fps
    if path.times[0] > times[-1] or path.times[-1] < 0:
        raise InvalidValueError(
            f"the path runs from {path.times[0]:g} to {path.times[-1]:g} s; the clip lasts {times[-1]:g} s"
        )
    points, inside = path.points, curve_through(path.times, path.points, times)
    if not path.relative:
        at = np.clip(np.rint(path.times * fps).astype(int), 0, len(recorded) - 1)
        points, inside = points - recorded[at], inside - recorded
    fade_in = smoothstep((times - path.times[0]) / EASE + 1.0)[:, None]
    fade_out = smoothstep((path.times[-1] - times) / EASE + 1.0)[:, None]
    outside = np.where(times[:, None] < path.times[0], points[0], points[-1])
    within = (times >= path.times[0]) & (times <= path.times[-1])
    return np.asarray(np.where(within[:, None], inside, outside * fade_in * fade_out))


def read_path(path: Path, *, relative: bool = False) -> Path3:
    """Read a path from a CSV file of rows `time,x,y,z` in seconds and metres; a heading row is skipped."""
    try:
        lines = checked_text(path.read_text(encoding="utf-8-sig")).splitlines()
    except (OSError, UnicodeDecodeError, InvalidValueError) as error:
        raise ParseError(f"cannot be read: {error}", path=path) from error
    rows: list[list[float]] = []
    for number, row in enumerate(lines, start=1):
        if not row.strip(", \t"):
            continue
        try:
            values = [float(cell) for cell in row.split(",")]
        except ValueError:
            if not rows and number == 1:
                continue
            words = f"expected four numbers time,x,y,z; got {row!r:.200}"
            raise ParseError(words, path=path, line=number) from None
        if len(values) != 4 or not np.all(np.abs(values) <= FARTHEST):  # also true for NaN
            words = f"expected four finite numbers time,x,y,z within {FARTHEST:,.0f}; got {row!r:.200}"
            raise ParseError(words, path=path, line=number)
        rows.append(values)
    if not rows:
        raise ParseError("no points; expected rows time,x,y,z in seconds and metres", path=path)
    table = np.array(rows)
    if np.any(np.diff(table[:, 0]) < CLOSEST):
        raise ParseError(f"the times must increase from row to row, by {CLOSEST:g} s at least", path=path)
    return Path3(table[:, 0], table[:, 1:], relative=relative)
