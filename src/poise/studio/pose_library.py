"""The poses that a person stores: one file in the cache folder, which can be saved and opened."""

from __future__ import annotations

import secrets
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.files import make_folder, replacing
from poise.geometry import rotations
from poise.motion.cache import cache_folder
from poise.skeleton.skeleton import Pose, Skeleton
from poise.studio.messages import Coordinate, Name, Quaternion

MOST = 1000
LARGEST = 50_000_000  # bytes
_LOCK = Lock()


class SavedPose(msgspec.Struct):
    """A pose by the names of its joints."""

    id: Name
    name: Name
    joints: list[str]
    root: tuple[Coordinate, Coordinate, Coordinate]
    turns: list[Quaternion]

    def fits(self, skeleton: Skeleton) -> bool:
        """Whether a body has these joints."""
        return list(skeleton.names) == self.joints

    def pose(self, skeleton: Skeleton) -> Pose:
        """The pose of a body."""
        if not self.fits(skeleton):
            raise InvalidValueError(f"the pose {self.name!r} is of another skeleton than this body")
        return Pose(skeleton, np.array(self.root), rotations.normalize(np.array(self.turns)))


class SavedPoses(msgspec.Struct):
    """What a file of poses holds."""

    poses: Annotated[list[SavedPose], Meta(max_length=MOST)]
    poise: Literal["poses"] = "poses"
    version: int = 1


class PoseLibrary:
    """All poses stored on this machine; read again each time, because other pages add to it."""

    def __init__(self) -> None:
        self._path = cache_folder() / "studio" / "library.poses"

    @property
    def poses(self) -> list[SavedPose]:
        """The poses, newest first."""
        return _read(self._path) if self._path.exists() else []

    def find(self, name: str) -> SavedPose:
        """The pose with this id."""
        for saved in self.poses:
            if saved.id == name:
                return saved
        raise UnknownNameError("pose", name, [saved.id for saved in self.poses] or ["(none is kept yet)"])

    def add(self, name: str, pose: Pose) -> None:
        """Add a pose."""
        height = float(pose.root_position[1])
        turns = [(w, i, j, k) for w, i, j, k in pose.rotations.tolist()]
        self._add(
            [SavedPose(secrets.token_hex(8), name, list(pose.skeleton.names), (0.0, height, 0.0), turns)]
        )

    def drop(self, name: str) -> None:
        """Remove a pose."""
        self.find(name)
        with _LOCK:
            self._keep([saved for saved in self.poses if saved.id != name])

    def read(self, path: Path) -> None:
        """Add the poses of a file that are not here yet."""
        known = {saved.id for saved in self.poses}
        self._add([saved for saved in _read(path) if saved.id not in known])

    def write(self, path: Path) -> None:
        """All of them as a file."""
        if not self.poses:
            raise InvalidValueError("the library is empty; keep a pose first")
        with replacing(path, "wb") as file:
            file.write(msgspec.json.encode(SavedPoses(self.poses)))

    def _add(self, more: list[SavedPose]) -> None:
        with _LOCK:
            poses = [*more, *self.poses]
            if len(poses) > MOST:
                raise InvalidValueError(f"the library has room for {MOST} poses; remove some first")
            self._keep(poses)

    def _keep(self, poses: list[SavedPose]) -> None:
        make_folder(self._path.parent)
        with replacing(self._path, "wb") as file:
            file.write(msgspec.json.encode(SavedPoses(poses)))


def _read(path: Path) -> list[SavedPose]:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise msgspec.DecodeError(f"more than {LARGEST / 1e6:.0f} MB")
        poses = msgspec.json.decode(text, type=SavedPoses).poses
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not a file of poses: {error}", path=path) from error
    for saved in poses:
        if len(saved.turns) != len(saved.joints) or not all(
            np.linalg.norm(turn) > 0.5 for turn in saved.turns
        ):
            raise ParseError(f"the pose {saved.name!r} has not one rotation for each joint", path=path)
    return poses
