"""From observations of a person by cameras to a moving body: size, poses, uncertainty and the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from poise.capture.people.solving import Trust, solve_person
from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.motion.contacts import floor_height
from poise.motion.motion import Motion
from poise.priors.motion.prior import MotionPrior
from poise.priors.prior import Prior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.roles import SIDES, common_ancestor, path
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Position
from poise.solvers.solution import MotionSolution
from poise.solvers.solve import Follower, Solver
from poise.types import Array, Progress
from poise.vision.people.person import INDEX, NAMES, handles_of
from poise.vision.people.unknown_camera import upright_camera
from poise.vision.people.watched import WatchedPerson, flattened, rough_places, with_sides

FEWEST = 3  # smallest number of limbs with a visible length
SIZES = (0.5, 1.5)  # range of a limb's length, relative to the template's
_LIMBS = {
    "thigh": ("hip", "knee", "thigh", "shin"), "shin": ("knee", "ankle", "shin", "foot"),
    "upper arm": ("shoulder", "elbow", "upper_arm", "forearm"), "forearm": ("elbow", "wrist", "forearm", "hand"),
}  # fmt: skip
SOLE, ON_FLOOR = 0.03, 0.05  # metres: height of the landmarks of standing feet, and its standard deviation
USUAL_SIZE = 0.1  # relative standard deviation of sizes
OTHER_FLOOR = 0.5  # the same, beyond which the floor is not at zero
EXTENDED, STRAIGHTEST = 75.0, 0.995  # percentile of a take in which legs are straightest; their extent there
BENT, NEARLY = 0.78, 0.85  # of a leg's length: extents at which legs are bent, and straight but for errors
_ROUNDS = 4
GUESSED = 0.25  # share of unusual proportions that is believed with one camera
ROUGH = 0.05  # metres: tolerance of the initial guess to rough positions


def fitted_body(
    skeleton: Skeleton, places: Float[Array, "frames 33 3"], *, seen_share: float = 1.0
) -> Skeleton:
    """The template with the person's size; `seen_share` of how proportions differ from its own is believed.

    The size follows from rough landmark positions over a whole take: one length per limb, shared by both sides.
    """
    at = {name: places[:, number] for name, number in INDEX.items()}
    tops, ends = ((at[f"left_{joint}"] + at[f"right_{joint}"]) / 2 for joint in ("shoulder", "hip"))
    spans = {part: [(at[f"{s}_{a}"], at[f"{s}_{b}"]) for s in SIDES] for part, (a, b, _, _) in _LIMBS.items()}
    for part, joint in (("shoulders", "shoulder"), ("hips", "hip")):
        spans[part] = [(at[f"left_{joint}"], at[f"right_{joint}"])]
    spans["trunk"] = [(tops, ends)]
    seen = {}  # the median of each length over all frames in which it is visible
    for part, pairs in spans.items():
        found = np.concatenate([np.linalg.norm(a - b, axis=1) for a, b in pairs])
        if np.isfinite(found).any():
            seen[part] = float(np.nanmedian(found))
    if len(seen) < FEWEST:
        raise InvalidValueError(
            "too little of the person is visible to estimate their size; show arms and legs"
        )
    own = {role: skeleton.index(role) for role in skeleton.roles}
    ways = {
        part: [(own[f"{s}_{a}"], own[f"{s}_{b}"]) for s in SIDES] for part, (_, _, a, b) in _LIMBS.items()
    }
    for part, role in (("shoulders", "upper_arm"), ("hips", "thigh")):
        middle = common_ancestor(skeleton, own[f"left_{role}"], own[f"right_{role}"])
        ways[part] = [(middle, own[f"{side}_{role}"]) for side in SIDES]
    ways["trunk"] = [(ways["hips"][0][0], ways["shoulders"][0][0])]
    # The joints whose bones make up each length.
    groups = {part: [j for way in found for j in path(skeleton, *way)[1:]] for part, found in ways.items()}
    lengths = _own_lengths(skeleton)
    ratios = {part: float(np.log(np.clip(length / lengths[part], *SIZES))) for part, length in seen.items()}
    overall = float(np.mean(list(ratios.values())))
    more = {part: overall + seen_share * (ratios.get(part, overall) - overall) for part in groups}
    wanted = {part: lengths[part] * np.exp(by) for part, by in more.items()}
    skeleton = skeleton.scaled(np.exp(overall))
    for _ in range(_ROUNDS):
        lengths, factors = _own_lengths(skeleton), np.ones(len(skeleton))
        for part, joints in groups.items():
            factors[joints] = wanted[part] / lengths[part]
        skeleton = skeleton.with_offsets(skeleton.offsets * factors[:, None])
    return skeleton


def straightening(skeleton: Skeleton, shapes: Float[Array, "frames 33 3"]) -> float:
    """The factor on a body's size with which its legs are straight when the person's are straightest.

    Errors in depth lengthen the bones of a shape more than the way from hip to ankle, and a body with legs too long
    would squat. Legs that are far from straight in the whole take say nothing.
    """
    at = {
        name: shapes[:, INDEX[name]]
        for name in (f"{side}_{end}" for side in SIDES for end in ("hip", "ankle"))
    }
    reach = np.stack([np.linalg.norm(at[f"{side}_hip"] - at[f"{side}_ankle"], axis=1) for side in SIDES])
    if not np.isfinite(reach).any():
        return 1.0
    lengths = _own_lengths(skeleton)
    seen = float(np.nanpercentile(reach, EXTENDED)) / (lengths["thigh"] + lengths["shin"])
    surely = float(np.clip((seen - BENT) / (NEARLY - BENT), 0.0, 1.0))
    return 1.0 + surely * (seen / STRAIGHTEST - 1.0)


def size_on_floor(camera: Camera, places: Float[Array, "frames 33 3"]) -> float:
    """The factor on the person's size and distance with which the feet stand on the floor at zero.

    It is more precise for a higher camera; if it is far from one, the floor is assumed to be elsewhere.
    """
    feet = places[:, [[INDEX[f"{side}_{part}"] for part in ("heel", "foot_index")] for side in SIDES], 1]
    lowest = feet.mean(axis=2).min(axis=1)
    above, seen = float(camera.centre[1]) - SOLE, lowest[np.isfinite(lowest)]
    if above <= 0.0 or not len(seen) or camera.centre[1] - np.median(seen) <= 0.0:
        return 1.0
    factor = np.log(above / (float(camera.centre[1]) - float(np.median(seen))))
    exact, usual = (above / ON_FLOOR) ** 2, USUAL_SIZE**-2
    return float(np.exp(factor * exact / (exact + usual))) if abs(factor) < OTHER_FLOOR else 1.0


def _own_lengths(skeleton: Skeleton) -> dict[str, float]:
    """The same lengths of a skeleton that stands upright."""
    places = neutral_pose(skeleton).positions
    at = {role: places[skeleton.index(role)] for role in skeleton.roles}
    tops, ends = ((at[f"left_{role}"] + at[f"right_{role}"]) / 2 for role in ("upper_arm", "thigh"))
    pairs = {part: (at[f"left_{a}"], at[f"left_{b}"]) for part, (_, _, a, b) in _LIMBS.items()} | {
        "shoulders": (at["left_upper_arm"], at["right_upper_arm"]),
        "hips": (at["left_thigh"], at["right_thigh"]),
        "trunk": (tops, ends),
    }
    return {part: max(float(np.linalg.norm(a - b)), 1e-6) for part, (a, b) in pairs.items()}


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
    if shapes is not None:
        factor = straightening(skeleton, shapes)
        if height is None:
            skeleton = skeleton.scaled(factor)
        else:
            places, shapes = (_at_size(person, one, 1.0 / factor) for one in (places, shapes))
    body = prior.on_body(skeleton)
    handles, looser = handles_of(body.space.skeleton)
    start = rough_poses(body, handles, places)
    found = solve_person(body, handles, looser, person, shapes, start, trust or Trust(), progress)
    unseen = ~np.any(person.weights > 0.0, axis=(1, 2))
    if known:
        return bridged(found, unseen)
    # The same picture with the floor at zero and the person at the origin: both move together.
    shift = -np.array([found.q[0, 0], floor_height(found.motion), found.q[0, 2]])
    cameras = [replace(one, translation=one.translation - one.rotation @ shift) for one in found.cameras]
    shifted = np.concatenate([shift, np.zeros(found.space.size - 3)])
    moved = [replace(one, q=one.q + shifted) for one in found.solutions]
    return bridged(replace(found, solutions=moved, cameras=cameras), unseen)


def bridged(found: MotionSolution, unseen: Bool[Array, "frames"]) -> MotionSolution:
    """The motion prior moves the body while no camera sees it, from when it was seen to when it is seen again."""
    seen = np.flatnonzero(~unseen)
    part = slice(seen[0], seen[-1] + 1)
    if not unseen[part].any():
        return found
    between = MotionPrior(found.motion.skeleton).filled(found.motion[part], ~unseen[part]).motion
    q = found.space.q_from_frames(between.root_positions, between.rotations)
    solutions = list(found.solutions)
    for frame in np.flatnonzero(unseen[part]):
        solutions[part.start + frame] = replace(solutions[part.start + frame], q=q[frame])
    return replace(found, solutions=solutions)


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
        seen = [k for k, place in enumerate(frame) if np.isfinite(place).all()]
        rows = [Position(handles[k], frame[k], tolerance=ROUGH) for k in seen]
        found.append(follower.step(rows).q if len(rows) > len(NAMES) // 4 else follower.last)
    first = next(q for q in found if q is not None)
    return np.stack([first if q is None else q for q in found])
