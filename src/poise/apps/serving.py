"""Pose characters of other programs over a local socket: one line of JSON in, one out (`poise serve`).

`{"open": [{"name": "Hips", "parent": null, "head": [x, y, z]}, ...]}` sets a character in its rest pose (metres, Y up)
and returns its roles and its first joint. `{"pose": {"left_hand": [x, y, z], ...}}` returns the position of the first
joint and every joint's rotation (wxyz) relative to its parent and the rest pose. The same handles always give the same
pose, that of `poise.pose`; `{"rest": true}` is answered and changes nothing. Errors are returned as `{"error": ...}`.

`{"motion": {"fps": 30, "places": [[x, y, z], ...], "turns": {"Hips": [[w, x, y, z], ...], ...}}}` is a motion in the
same terms, frame by frame. With `"repair": true` it comes back mended, with `"keys": true` as curves through few keys
(frames, values and slopes per frame), within 1 cm and 2 degrees; `notes` say what was done.
`{"between": {"fps": 30, "keys": [{"frame": 0, "place": [x, y, z], "turns": {...}}, ...]}}` returns the motion between
whole poses, also with `"keys": true`.

`{"track": {"head": [x, y, z, w, x, y, z], ...}, "time": 1.25}` follows oriented trackers (`capture.trackers`), and also
returns the deviation of every joint in metres; a tracker that is left out is not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from poise.bounds import FARTHEST
from poise.capture.trackers import ALL, TrackerPerformance
from poise.errors import InvalidValueError, PoiseError, UnknownNameError
from poise.geometry.rotations import IDENTITY, continuous
from poise.motion.carrying import check_person
from poise.motion.keys import KeyedCurve, few_keys
from poise.motion.motion import Motion
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.roles import subtree
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.bearing import heading_of
from poise.solvers.constraints import Position
from poise.solvers.posture import Manner, Posture
from poise.types import silent

HOST, PORT = "127.0.0.1", 39550
LONGEST = 32_000_000  # bytes per line
MOST_FRAMES = 20_000
LONGEST_TIME = 1e12  # seconds
Coordinate = Annotated[float, Meta(ge=-FARTHEST, le=FARTHEST)]
Place = tuple[Coordinate, Coordinate, Coordinate]
Seven = tuple[Coordinate, Coordinate, Coordinate, Coordinate, Coordinate, Coordinate, Coordinate]
Turn = tuple[Coordinate, Coordinate, Coordinate, Coordinate]
Rate = Annotated[float, Meta(gt=0.0, le=1000.0)]
Name = Annotated[str, Meta(max_length=200)]


class ServedBone(msgspec.Struct):
    """A bone at rest."""

    name: Name
    parent: Name | None
    head: Place


class ServedMotion(msgspec.Struct, forbid_unknown_fields=True):
    """Where the first joint is and how every joint is turned, in every frame."""

    fps: Rate
    places: Annotated[list[Place], Meta(min_length=1, max_length=MOST_FRAMES)]
    turns: dict[Name, list[Turn]]


class ServedKey(msgspec.Struct, forbid_unknown_fields=True):
    """A whole pose at a frame."""

    frame: Annotated[int, Meta(ge=0, le=MOST_FRAMES)]
    place: Place
    turns: dict[Name, Turn]


class ServedKeys(msgspec.Struct, forbid_unknown_fields=True):
    """Poses to move between."""

    fps: Rate
    keys: Annotated[list[ServedKey], Meta(min_length=2, max_length=2000)]


class ServedRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The possible requests, one at a time."""

    open: Annotated[list[ServedBone], Meta(max_length=2000)] | None = None
    pose: Annotated[dict[Name, Place], Meta(max_length=200)] | None = None
    motion: ServedMotion | None = None
    between: ServedKeys | None = None
    repair: bool = False
    keys: bool = False
    track: Annotated[dict[Name, Seven], Meta(max_length=200)] | None = None
    time: Annotated[float, Meta(ge=-LONGEST_TIME, le=LONGEST_TIME)] | None = None
    rest: bool = False


class ServedCharacter:
    """One client's character."""

    def __init__(self) -> None:
        self._skeleton: Skeleton | None = None
        self._tracking: TrackerPerformance | None = None
        self._posture: Posture | None = None
        self._manner = Manner()

    def answer(self, line: bytes) -> dict[str, Any]:
        """The reply to one line."""
        try:
            asked = msgspec.json.decode(line, type=ServedRequest)
            if asked.open is not None:
                return self._open(asked.open)
            if asked.rest and self._posture is not None:
                return {}
            if asked.pose:
                return self._pose(asked.pose)
            if asked.motion is not None:
                return self._motion(asked.motion, mends=asked.repair, keys=asked.keys)
            if asked.between is not None:
                return self._between(asked.between, keys=asked.keys)
            if asked.track is not None:
                return self._track(asked.track, asked.time)
            raise InvalidValueError(
                "expected a line with open (bones), pose (positions by handle), track (positions and rotations by "
                "role), motion, between or rest (true)"
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, PoiseError) as error:
            return {"error": str(error)}

    def _open(self, bones: list[ServedBone]) -> dict[str, Any]:
        skeleton = below_pelvis(skeleton_of(bones))
        check_person(Motion.of_poses([Pose.rest(skeleton)]), what="the armature")
        self._posture, self._skeleton, self._tracking = Posture(UniversalPrior(skeleton)), skeleton, None
        heading = heading_of(Pose.rest(skeleton))
        x, _, z = (0.0, 0.0, 1.0) if heading is None else np.round(heading, 3).tolist()
        self._manner = Manner(heading=(x, 0.0, z))  # as the character stands in its scene
        return {"root": skeleton.names[0], "roles": dict(skeleton.roles), "joints": list(skeleton.names)}

    def _pose(self, places: dict[str, Place]) -> dict[str, Any]:
        if self._posture is None:
            raise InvalidValueError("no character is open; send its bones first")
        asked = [Position(name, place) for name, place in places.items()]
        pose = self._posture.solve(asked, self._manner).pose
        gaps = {
            name: np.linalg.norm(pose.positions[name] - np.array(place)) for name, place in places.items()
        }
        far = {name: round(float(gap), 4) for name, gap in gaps.items()}
        return shown(pose) | {"far": far}

    def _motion(self, asked: ServedMotion, *, mends: bool, keys: bool) -> dict[str, Any]:
        skeleton, count = self._opened(), len(asked.places)
        turns = np.tile(IDENTITY, (count, len(skeleton), 1))
        for name, each in asked.turns.items():
            if len(each) != count:
                raise InvalidValueError(
                    f"{name} has {len(each)} rotations; expected {count}, one of each place"
                )
            turns[:, _joint(skeleton, name)] = each
        motion = Motion(skeleton, asked.fps, np.array(asked.places), turns)
        if not mends:
            return _moving(motion, keys=keys)
        from poise.apps.repairing import repair  # as large as all else here

        found = repair(motion)
        return _moving(found.motion, keys=keys) | {"notes": str(found).splitlines()}

    def _between(self, asked: ServedKeys, *, keys: bool) -> dict[str, Any]:
        from poise.apps.inbetweening import PoseKey, through_keys

        skeleton, poses = self._opened(), []
        for key in asked.keys:
            turns = np.tile(IDENTITY, (len(skeleton), 1))
            for name, turn in key.turns.items():
                turns[_joint(skeleton, name)] = turn
            poses.append(PoseKey(key.frame / asked.fps, Pose(skeleton, np.array(key.place), turns)))
        return _moving(through_keys(poses, fps=asked.fps).motion, keys=keys)

    def _opened(self) -> Skeleton:
        if self._skeleton is None:
            raise InvalidValueError("no character is open; send its bones first")
        return self._skeleton

    def _track(self, seen: dict[str, Seven], at: float | None) -> dict[str, Any]:
        skeleton = self._opened()
        if self._tracking is None:
            worn = [role for role in skeleton.roles if role in ALL or role in seen]
            self._tracking = TrackerPerformance(worn, skeleton=skeleton)
        names = self._tracking.names
        if unknown := [name for name in seen if name not in names]:
            raise UnknownNameError("tracker", unknown[0], names)
        frame = self._tracking.step(np.array([seen.get(name, (np.nan,) * 7) for name in names]), at=at)
        deviations = {name: None if np.isnan(one) else round(one, 4) for name, one in frame.deviation.items()}
        return shown(frame.pose) | {"deviations": deviations, "notes": list(frame.notes)}


def shown(pose: Pose) -> dict[str, Any]:
    """A pose as its first joint's position and all joints' rotations."""
    turns = dict(zip(pose.skeleton.names, np.round(pose.rotations, 7).tolist(), strict=True))
    return {"place": pose.root_position.tolist(), "turns": turns}


def _joint(skeleton: Skeleton, name: str) -> int:
    if name not in skeleton.names:
        raise UnknownNameError("joint", name, skeleton.names)
    return skeleton.names.index(name)


def _moving(motion: Motion, *, keys: bool) -> dict[str, Any]:
    """A motion, frame by frame or as curves."""
    names = motion.skeleton.names
    if keys:
        found = few_keys(motion)
        curves = {name: _curve(one) for name, one in zip(names, found.joints, strict=True)}
        return {"frames": len(motion), "place": _curve(found.root), "turns": curves, "keys": found.summary}
    turns = np.round(continuous(motion.rotations), 7)
    named = {name: turns[:, joint].tolist() for joint, name in enumerate(names)}
    return {"frames": len(motion), "places": motion.root_positions.tolist(), "turns": named}


def _curve(curve: KeyedCurve) -> dict[str, Any]:
    return {"frames": curve.frames.tolist(), "values": curve.values.tolist(), "slopes": curve.slopes.tolist()}


def skeleton_of(bones: list[ServedBone]) -> Skeleton:
    """The largest tree of the bones, with joints at their heads and world axes at rest."""
    above = {bone.name: bone.parent for bone in bones}
    if len(above) < len(bones) or not {None, *above}.issuperset(above.values()):
        raise InvalidValueError(
            "every bone needs a unique name, and a parent that is one of the bones or null"
        )
    trees = [[name] for name, parent in above.items() if parent is None]
    children: dict[str | None, list[str]] = {}
    for name, parent in above.items():
        children.setdefault(parent, []).append(name)
    for tree in trees:
        for name in tree:  # which grows: parents come first
            tree += children.get(name, [])
    names = max(trees, key=len, default=[])
    heads = {bone.name: np.array(bone.head) for bone in bones}
    number = {name: joint for joint, name in enumerate(names)}
    parents = [number.get(above[name] or "", -1) for name in names]
    offsets = [heads[name] - heads.get(above[name] or "", 0.0) for name in names]
    return Skeleton(tuple(names), np.array(parents), np.array(offsets), ("ZYX",) * len(names))


def below_pelvis(skeleton: Skeleton) -> Skeleton:
    """The skeleton from its pelvis down: joints above it are left out."""
    if "pelvis" not in skeleton.roles or skeleton.index("pelvis") == 0:
        return skeleton
    pelvis = skeleton.index("pelvis")
    kept = sorted(subtree(skeleton, pelvis))
    offsets = skeleton.offsets[kept].copy()
    above = pelvis
    while (above := int(skeleton.parents[above])) >= 0:
        offsets[0] += skeleton.offsets[above]
    parents = [-1, *(kept.index(int(skeleton.parents[joint])) for joint in kept[1:])]
    names = tuple(skeleton.names[joint] for joint in kept)
    return Skeleton(names, np.array(parents), offsets, tuple(skeleton.orders[joint] for joint in kept))


def serve(port: int = PORT, *, ready: Callable[[int], None] = silent) -> None:
    """Serve on this machine only until interrupted; every connection has its own character."""
    try:
        server = _Server((HOST, port), _Conversation)
    except OSError as error:
        raise PoiseError(f"cannot listen on {HOST}:{port}: {error.strerror or error}") from error
    with server:
        ready(int(server.server_address[1]))
        server.serve_forever(poll_interval=0.1)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class _Conversation(StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Handle lines until the client disconnects; a web page, which speaks HTTP, gets no answer."""
        character = ServedCharacter()
        web = (b"HTTP/1.1", b"HTTP/1.0")
        while (line := self.rfile.readline(LONGEST)) and not line.rstrip().endswith(web):
            self.wfile.write(msgspec.json.encode(character.answer(line)) + b"\n")
