"""From observations of a person by cameras to a moving body: size, poses, uncertainty and the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.capture.people.body import fitted_body, size_on_floor
from poise.capture.people.solving import Trust, solve_person
from poise.motion.contacts import floor_height
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import Handle
from poise.solvers.constraints import Position
from poise.solvers.follow import Follower
from poise.solvers.solution import MotionSolution
from poise.solvers.solve import Solver
from poise.types import Array, Progress
from poise.vision.people.person import NAMES, handles_of
from poise.vision.people.unknown_camera import upright_camera
from poise.vision.people.watched import WatchedPerson, flattened, rough_places, with_sides

GUESSED = 0.25  # share of unusual proportions that is believed with one camera
ROUGH = 0.05  # metres: tolerance of the initial guess to rough positions


def capture_person(
    person: WatchedPerson,
    *,
    prior: Prior | None = None,
    known: bool = True,
    height: float | None = None,
    trust: Trust | None = None,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """The person's motion. If the camera is not `known` (one alone), up and the floor are estimated from the person."""
    person, prior, alone = with_sides(person), prior or UniversalPrior(), len(person.cameras) == 1
    places = rough_places(person)
    if not known:
        person = replace(person, cameras=[upright_camera(person.cameras[0], places, person.fps)])
        places = rough_places(person)
    elif alone and height is None:
        places = _at_size(person, places, size_on_floor(person.cameras[0], places))
    fitted = partial(fitted_body, prior.space.skeleton, seen_share=GUESSED if alone else 1.0)
    shapes = flattened(person.cameras[0], places) if alone else None
    guessed, skeleton = fitted(places), fitted(places if shapes is None else shapes)
    if height is not None or not known:
        skeleton = skeleton.scaled((height or guessed.height) / skeleton.height)
    if height is not None and shapes is not None:
        places, shapes = (_at_size(person, one, height / guessed.height) for one in (places, shapes))
    body = prior.on_body(skeleton)
    handles, looser = handles_of(body.space.skeleton)
    start = rough_poses(body, handles, places)
    found = solve_person(body, handles, looser, person, shapes, start, trust or Trust(), progress)
    return found if known else _on_floor(found)


def detected_motion(person: WatchedPerson, found: MotionSolution) -> Motion:
    """The detector's own shapes, or meeting rays, fitted frame by frame with the same body: the baseline."""
    seen, skeleton = replace(with_sides(person), cameras=found.cameras), found.motion.skeleton
    places, body = rough_places(seen), UniversalPrior().on_body(skeleton)
    if len(person.cameras) == 1:
        places = _at_size(seen, places, skeleton.height / fitted_body(skeleton, places).height)
    poses = rough_poses(body, handles_of(skeleton)[0], places)
    return Motion(skeleton, person.fps, *body.space.frames_from_q(poses))


def _at_size(person: WatchedPerson, places: Array, factor: float) -> Float[Array, "frames 33 3"]:
    """The same picture of a larger or smaller person: nearer or farther."""
    centre = person.cameras[0].centre
    return np.asarray(centre + factor * (places - centre))


def rough_poses(
    prior: Prior, handles: Sequence[Handle], places: Float[Array, "frames 33 3"]
) -> Float[Array, "frames size"]:
    """Each frame by itself from rough positions; frames without observations repeat the previous one."""
    follower, found = Follower(partial(Solver, prior)), []
    for frame in places:
        seen = np.isfinite(frame).all(axis=1)
        rows = [
            Position(handle, place, tolerance=ROUGH)
            for handle, place, is_seen in zip(handles, frame, seen, strict=True)
            if is_seen
        ]
        found.append(follower.step(rows).q if len(rows) > len(NAMES) // 4 else follower.last)
    first = next(q for q in found if q is not None)
    return np.stack([first if q is None else q for q in found])


def _on_floor(found: MotionSolution) -> MotionSolution:
    """The same picture with the floor at zero and the person at the origin: both move together."""
    start = found.q[0, :3]
    shift = -np.array([start[0], floor_height(found.motion), start[2]])
    cameras = [replace(one, translation=one.translation - one.rotation @ shift) for one in found.cameras]
    shifted = np.concatenate([shift, np.zeros(found.space.size - 3)])
    return replace(
        found, solutions=[replace(one, q=one.q + shifted) for one in found.solutions], cameras=cameras
    )
