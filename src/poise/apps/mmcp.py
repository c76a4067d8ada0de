"""Motion for other programs over HTTP, by the Motion Model Context Protocol, MMCP (`poise serve --mmcp`).

A client sends its skeleton, whole or partial poses at frames, places and rotations of joints, and a path of the root.
It gets a glTF document with every frame. The notes of the answer say the largest error of all constraints, measured on
the answer itself, every constraint that is missed, and how certain the motion is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import anyio.to_thread
import numpy as np
from jaxtyping import Float
from motionmcp import Backbone, GenerateRequest, ModelSpec, MotionResult, ProtocolError, build_app
from motionmcp.backbone import Limits
from motionmcp.schemas import Joint
from motionmcp.schemas import Skeleton as ClientSkeleton
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from poise.apps.inbetweening import PoseKey, through_keys
from poise.apps.serving import HOST, ServedBone, below_pelvis, skeleton_of
from poise.bounds import FARTHEST
from poise.errors import PoiseError
from poise.geometry import rotations
from poise.motion.carrying import check_person
from poise.motion.motion import Motion
from poise.performer.bodies import Body
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.bearing import heading_of
from poise.solvers.constraints import Constraint, Orientation, Pinned, Plane, Position
from poise.solvers.posture import Manner, Posture
from poise.solvers.solution import MotionSolution
from poise.types import Array, silent

PORT = 39551
RATE = 30.0
LONGEST = 30.0  # seconds
RATES = (5.0, 240.0)  # frames a second
FREE_HEIGHT = np.array([0.0, np.nan, 0.0])
STRIDE = 0.3  # metres: a path that leads this far says where the body faces
APART = 0.4  # seconds: between frames whose whole pose is found first, from the places of joints there
MET = {"m": 0.001, "degrees": 0.1}  # largest error of a constraint that counts as met
LOCAL = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?|null"  # pages that may ask


class ClientBody:
    """A client's skeleton, and ours: its joints from the pelvis down, with the axes of the world at rest."""

    def __init__(self, joints: Sequence[Joint]) -> None:
        self.names = [joint.name for joint in joints]
        self.above = [-1 if joint.parent is None else self.names.index(joint.parent) for joint in joints]
        self.offsets = np.stack([_point(joint.rest_translation) for joint in joints])
        self.rests = np.stack([_wxyz(joint.rest_rotation) for joint in joints])
        self.heads, self.axes = self.world(self.offsets[self.above.index(-1)], self.rests)
        parents = [None if above < 0 else self.names[above] for above in self.above]
        bones = [
            ServedBone(name, parent, tuple(head))
            for name, parent, head in zip(self.names, parents, self.heads.tolist(), strict=True)
        ]
        self.body = below_pelvis(skeleton_of(bones))
        check_person(Motion.of_poses([Pose.rest(self.body)]), what="the skeleton")
        self.at = [self.names.index(name) for name in self.body.names]
        self.lift = self.heads[self.at[0]] - self.heads[self.above.index(-1)]  # from the root to the pelvis

    def constraints(self, wish: Wish) -> list[Constraint]:
        """A wish as constraints on the body."""
        at = wish.joint in self.at
        name, lift = (self.names[wish.joint], np.zeros(3)) if at else (self.body.names[0], self.lift)
        if wish.turn is not None:
            own = rotations.multiply(wish.turn, rotations.conjugate(self.axes[wish.joint]))
            return [Orientation(name, own)]
        assert wish.place is not None
        place = wish.place + lift
        return on_path(self.body, place) if np.isnan(place[1]) else [Position(name, place)]

    @cached_property
    def prior(self) -> UniversalPrior:
        """The universal prior on the body."""
        return UniversalPrior(self.body)

    def world(self, root: Array, turns: Float[Array, "joints 4"]) -> tuple[Array, Array]:
        """Places and rotations of all joints in the world."""
        places, found = np.zeros((len(turns), 3)), np.zeros((len(turns), 4))
        for joint, above in enumerate(self.above):
            if above < 0:
                places[joint], found[joint] = root, turns[joint]
            else:
                places[joint] = places[above] + rotations.rotate(found[above], self.offsets[joint])
                found[joint] = rotations.multiply(found[above], turns[joint])
        return places, found

    def pose(self, root: Array, turns: Float[Array, "joints 4"]) -> Pose:
        """The body's pose of the client's."""
        places, found = self.world(root, turns)
        world = rotations.multiply(found, rotations.conjugate(self.axes))[self.at]
        local = world.copy()
        above = self.body.parents[1:]
        local[1:] = rotations.multiply(rotations.conjugate(world[above]), world[1:])
        return Pose(self.body, places[self.at[0]], local)

    def answer(self, motion: Motion) -> tuple[Float[Array, "frames 3"], Float[Array, "frames joints 4"]]:
        """The root's places, and all joints' rotations in the client's axes; what is above the pelvis rests."""
        turns = np.tile(self.rests, (len(motion), 1, 1))
        for ours, joint in enumerate(self.at):
            before = self.above[joint]
            axes = rotations.IDENTITY if before < 0 else self.axes[before]
            local = rotations.multiply(rotations.conjugate(axes), motion.rotations[:, ours])
            turns[:, joint] = rotations.multiply(local, self.axes[joint])
        return motion.root_positions - self.lift, turns


class Wish(NamedTuple):
    """What one constraint of a request asks of a joint in one frame."""

    constraint: int
    frame: int
    joint: int
    place: Array | None = None  # in the world; NaN where it is free
    turn: Array | None = None
    local: bool = False  # whether the turn is relative to the parent, else to the world

    def error(self, places: Array, worlds: Array, turns: Array) -> tuple[float, str]:
        """How far the joint is from it, and the unit."""
        if self.place is not None:
            return float(np.sqrt(np.nansum((places[self.joint] - self.place) ** 2))), "m"
        assert self.turn is not None
        found = (turns if self.local else worlds)[self.joint]
        return float(np.degrees(rotations.geodesic_distance(found, self.turn))), "degrees"


def wishes_of(request: GenerateRequest, rig: ClientBody) -> list[Wish]:
    """All that a request asks for, joint by joint and frame by frame."""
    found, root = [], rig.above.index(-1)
    for number, one in enumerate(request.constraints):
        if one.type == "root_path":
            for frame, (x, z) in zip(one.frames, one.positions_xz, strict=True):
                found.append(Wish(number, frame, root, _point((x, 0.0, z)) + FREE_HEIGHT))
        elif one.type == "effector_target":
            joint = rig.names.index(one.joint)
            if joint not in rig.at and (joint != root or one.rotations is not None):
                raise ProtocolError(
                    "invalid_request", f"{one.joint} is not a part of the body that Poise moves"
                )
            for frame, place in zip(one.frames, one.positions, strict=True):
                found.append(Wish(number, frame, joint, _point(place)))
            for frame, turn in zip(one.frames, one.rotations or (), strict=False):
                found.append(Wish(number, frame, joint, turn=_wxyz(turn)))
        elif one.type == "pose_keyframe":
            for name, turn in one.joint_rotations.items():
                found.append(Wish(number, one.frame, rig.names.index(name), turn=_wxyz(turn), local=True))
            if one.root_position is not None:
                found.append(Wish(number, one.frame, root, _point(one.root_position)))
    return found


class AskedMotion:
    """The poses and constraints through which a motion goes."""

    def __init__(self, request: GenerateRequest, rig: ClientBody, fps: float) -> None:
        self.rig, self.fps, self.last = rig, fps, max(request.total_frames - 1, 1)
        self.wishes = wishes_of(request, rig)
        self.rests = {one.frame for one in request.constraints if getattr(one, "fill_mode", "") == "rest"}
        self.ways: dict[int, float] = {}
        for one in request.constraints:
            if one.type == "root_path" and one.heading_radians is not None:
                self.ways |= dict(zip(one.frames, one.heading_radians, strict=True))
        self.posture = Posture(rig.prior)
        self.poses: dict[int, Pose] = {}
        gap, targets = round(APART * fps), sorted({one.frame for one in self.wishes if not one.local})
        for frame in sorted({one.frame for one in self.wishes if one.local}):
            self.poses[frame] = self._keyed(frame)
        for frame in targets:
            if all(abs(frame - other) >= gap for other in self.poses) and self._effectors(frame):
                self.poses[frame] = self._solved(frame)
        for frame in (0, self.last):
            if frame not in self.poses:
                self.poses[frame] = self._solved(frame)

    @property
    def keys(self) -> list[PoseKey]:
        """The whole poses."""
        return [PoseKey(frame / self.fps, pose) for frame, pose in sorted(self.poses.items())]

    def constraints(self, frame: int) -> list[Constraint]:
        """What is asked of a frame, but for rotations relative to parents."""
        found: list[Constraint] = []
        for one in self.wishes:
            if one.frame == frame and not one.local:
                found += self.rig.constraints(one)
        return found

    def _effectors(self, frame: int) -> bool:
        return any(
            one.frame == frame and one.place is not None and np.all(np.isfinite(one.place))
            for one in self.wishes
        )

    def _solved(self, frame: int, pinned: Sequence[Constraint] = ()) -> Pose:
        """A whole pose for a frame: as asked, where the body is around then, and standing if it may."""
        asked, roots = self.constraints(frame), self._roots()
        if (
            roots
            and not any(one.kind == Plane.kind for one in asked)
            and not (asked and self._effectors(frame))
        ):
            at = sorted(roots)
            x, z = (np.interp(frame, at, [roots[each][axis] for each in at]) for axis in range(2))
            asked += on_path(self.rig.body, np.array([x, 0.0, z]) + self.rig.lift)
        way = self._way(frame)
        return self.posture.solve([*asked, *pinned], Manner(heading=(np.sin(way), 0.0, np.cos(way)))).pose

    def _keyed(self, frame: int) -> Pose:
        """The whole pose of a keyframe, or one that has its rotations."""
        turns = self.rig.rests.copy()
        given = {one.joint: one.turn for one in self.wishes if one.frame == frame and one.local}
        for joint, turn in given.items():
            turns[joint] = turn
        places = [
            one.place
            for one in self.wishes
            if one.frame == frame and one.joint not in self.rig.at[1:] and one.place is not None
        ]
        root = np.where(np.isfinite(places[-1]), places[-1], 0.0) if places else np.zeros(3)
        pose = self.rig.pose(root, turns)
        is_whole = frame in self.rests or set(self.rig.at) <= set(given)
        if is_whole and places and np.all(np.isfinite(places[-1])):
            return pose
        names = [
            name
            for name, joint in zip(self.rig.body.names, self.rig.at, strict=True)
            if is_whole or joint in given
        ]
        turned = [name for name in names if name != self.rig.body.names[0]]
        space = self.rig.prior.space
        pinned: list[Constraint] = [Pinned(turned, space.q_from_pose(pose))] if turned else []
        if self.rig.at[0] in given or is_whole:
            pinned.append(Orientation(self.rig.body.names[0], pose.rotations[0]))
        found = self._solved(frame, pinned)
        kept = found.rotations.copy()
        numbers = [self.rig.body.names.index(name) for name in names]
        kept[numbers] = pose.rotations[numbers]
        return Pose(self.rig.body, found.root_position, kept)

    def _roots(self) -> dict[int, Array]:
        """Where the root is on the floor, in frames in which that is known."""
        root = self.rig.above.index(-1)
        found = {frame: (pose.root_position - self.rig.lift)[[0, 2]] for frame, pose in self.poses.items()}
        asked = {
            one.frame: one.place[[0, 2]] for one in self.wishes if one.joint == root and one.place is not None
        }
        return found | asked

    def _way(self, frame: int) -> float:
        """The heading, in radians from +Z to +X: as asked, else as in the nearest pose, else along the path."""
        found = {at: way for at, pose in self.poses.items() if (way := way_of(pose)) is not None} | self.ways
        if found:
            return found[min(found, key=lambda at: abs(at - frame))]
        roots = self._roots()
        step = roots[max(roots)] - roots[min(roots)] if roots else np.zeros(2)
        return float(np.arctan2(*step)) if np.linalg.norm(step) > STRIDE else 0.0


class Generator(Backbone):  # type: ignore[misc]  # a package without types
    """Poise as a model of the protocol."""

    model_id = "poise"

    def __init__(self) -> None:
        self._one = anyio.CapacityLimiter(1)

    def capabilities(self) -> ModelSpec:
        """What it can do."""
        body = Body().skeleton
        joints = [
            Joint(
                name=name,
                parent=body.names[above] if above >= 0 else None,
                rest_translation=tuple(offset),
                rest_rotation=(0.0, 0.0, 0.0, 1.0),
            )
            for name, above, offset in zip(body.names, body.parents, body.offsets.tolist(), strict=True)
        ]
        return ModelSpec(
            id=self.model_id,
            fps=RATE,
            canonical_skeleton=ClientSkeleton(joints=joints),
            supports_retargeting=True,
            supports_loop=True,
            supports_segment_seed=True,
            supported_constraints=["root_path", "effector_target", "pose_keyframe"],
            supported_segments=["unconditioned"],
            supported_guidance_types=["nocfg"],
            predicted_contact_joints=[body.roles[f"{side}_foot"] for side in SIDES],
            native_clip_seconds=LONGEST,
            recommended_max_duration_seconds=LONGEST,
            limits=Limits(max_duration_seconds=LONGEST),
        )

    async def generate(self, request: GenerateRequest) -> MotionResult:
        """Answer a request, one at a time."""
        return await anyio.to_thread.run_sync(generated, request, limiter=self._one)


def generated(request: GenerateRequest) -> MotionResult:
    """The answer to a request."""
    options, fps = request.options, request.fps(RATE)
    if not RATES[0] <= fps <= RATES[1]:
        raise ProtocolError("invalid_options", f"the frame rate is {RATES[0]:g} to {RATES[1]:g}; got {fps:g}")
    seeds = [one.seed for one in request.segments] + [options.seed if options else None]
    seed = next((one for one in seeds if one is not None), None)
    samples = options.num_samples if options else 1
    try:
        rig = ClientBody(request.skeleton.joints)
        plan = AskedMotion(request, rig, fps)
        keys, loop = plan.keys, bool(options and options.loop)

        def layer(found: Any, _space: PoseSpace) -> tuple[list[list[Constraint]], list[Any]]:
            free = set(range(len(found.motion))) - set(found.keys.tolist())
            return [
                plan.constraints(frame) if frame in free else [] for frame in range(len(found.motion))
            ], []

        made = [
            through_keys(
                keys,
                fps=fps,
                loop=loop,
                layer=layer,
                variant=number if seed is None else 1 + abs(seed) + number,
            )
            for number in range(samples)
        ]
    except PoiseError as error:
        raise ProtocolError("invalid_request", str(error)) from error
    count = request.total_frames
    motions = [one.motion[:count] for one in made]
    answers = [rig.answer(motion) for motion in motions]
    feet = {rig.body.roles[f"{side}_foot"]: number for number, side in enumerate(SIDES)}
    return MotionResult(
        rotations=np.stack([turns[..., [1, 2, 3, 0]] for _, turns in answers]),
        root_translations=np.stack([roots for roots, _ in answers]),
        foot_contacts={
            name: np.stack([one.standing[:count, foot] for one in made]) for name, foot in feet.items()
        },
        notes=[*_errors(plan, answers), *_headings(plan, motions), _doubt(rig, made)],
    )


def _errors(plan: AskedMotion, answers: Sequence[tuple[Array, Array]]) -> list[dict[str, Any]]:
    """The worst error of all constraints, and each constraint that is missed, measured on the answer."""
    worst = {"m": 0.0, "degrees": 0.0}
    missed: dict[tuple[int, str], tuple[float, int, str, int]] = {}
    for sample, (roots, turns) in enumerate(answers):
        for wish in plan.wishes:
            places, worlds = plan.rig.world(roots[wish.frame], turns[wish.frame])
            error, unit = wish.error(places, worlds, turns[wish.frame])
            worst[unit] = max(worst[unit], error)
            key = wish.constraint, unit
            if error > MET[unit] and error > missed.get(key, (0.0, 0, "", 0))[0]:
                missed[key] = error, wish.frame, plan.rig.names[wish.joint], sample
    words = f"constraints are met within {1000 * worst['m']:.3g} mm and {worst['degrees']:.3g} degrees"
    notes: list[dict[str, Any]] = [{"code": "worst_error", "severity": "info", "message": words,
                                    "worst_m": worst["m"], "worst_degrees": worst["degrees"]}]  # fmt: skip
    for (number, unit), (error, frame, joint, sample) in missed.items():
        off = f"{1000 * error:.3g} mm" if unit == "m" else f"{error:.3g} degrees"
        notes.append({"code": "constraint_missed", "severity": "warning", "constraint": number, "frame": frame,
                      "joint": joint, "sample": sample, "error": error, "unit": unit,
                      "message": f"constraint {number}: {joint} is {off} off in frame {frame}"})  # fmt: skip
    return notes


def _headings(plan: AskedMotion, motions: Sequence[Motion]) -> list[dict[str, Any]]:
    """The worst error of the headings along a path, which guide the body and are not met exactly."""
    off = []
    for motion in motions:
        for frame, asked in plan.ways.items():
            found = way_of(motion[frame])
            off.append(
                180.0 if found is None else abs(np.degrees((found - asked + np.pi) % (2 * np.pi) - np.pi))
            )
    if not off:
        return []
    words = f"headings are followed within {max(off):.0f} degrees"
    return [{"code": "headings", "severity": "info", "message": words, "worst_degrees": float(max(off))}]


def _doubt(rig: ClientBody, made: Sequence[MotionSolution]) -> dict[str, Any]:
    """How certain the motion is, joint by joint."""
    most = np.max([one.deviations.max(axis=0) for one in made], axis=0)
    by_joint = dict(zip(rig.body.names, most.round(4).tolist(), strict=True))
    widest = max(by_joint, key=lambda name: by_joint[name])
    return {"code": "doubt", "severity": "info", "deviation_m": by_joint,
            "message": f"least certain is {widest}, by {100 * by_joint[widest]:.0f} cm (one deviation)"}  # fmt: skip


def way_of(pose: Pose) -> float | None:
    """The heading of a pose, in radians from +Z to +X; None for a body on its side."""
    heading = heading_of(pose)
    return None if heading is None else float(np.arctan2(heading[0], heading[2]))


def on_path(body: Skeleton, pelvis: Array) -> list[Constraint]:
    """The pelvis over a point of the floor."""
    point = (pelvis[0], 0.0, pelvis[2])
    return [
        Plane(body.names[0], point, axis, name="root_path") for axis in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    ]


def _point(place: Sequence[float]) -> Array:
    found = np.array(place)
    if not np.all(np.abs(found) <= FARTHEST):
        raise ProtocolError(
            "invalid_request", f"places must be finite, up to {FARTHEST:g} m; got {tuple(place)}"
        )
    return found


def _wxyz(turn: Sequence[float]) -> Array:
    found = np.array(turn)[[3, 0, 1, 2]]
    if not np.linalg.norm(found) > 1e-6 or not np.all(np.isfinite(found)):
        raise ProtocolError(
            "invalid_request", f"rotations must be unit quaternions (xyzw); got {tuple(turn)}"
        )
    return rotations.normalize(found)


def application() -> Any:
    """The protocol as an ASGI application, for this machine alone: programs, and pages that it serves itself."""
    app = build_app(Generator(), title="Poise")
    app.add_middleware(
        CORSMiddleware, allow_origin_regex=LOCAL, allow_methods=["GET", "POST"], allow_headers=["*"]
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]"])
    return app


def serve(port: int = PORT, *, ready: Callable[[int], None] = silent) -> None:
    """Serve on this machine until interrupted."""
    import socket

    import uvicorn

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise PoiseError(f"cannot listen on {HOST}:{port}: {error.strerror or error}") from error
        listening.listen(100)  # from now on, those who connect wait
        ready(int(listening.getsockname()[1]))
        uvicorn.Server(uvicorn.Config(application(), log_level="warning")).run(sockets=[listening])
