"""A motion library on disk: a folder with a catalogue, one shard per clip, and all poses in one memory-mapped file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats import read
from poise.formats.files import FileAccessError, not_a_link
from poise.library.catalogue import FILE, Catalogue, Clip
from poise.library.poses import Poses, map_poses, write_poses
from poise.library.search import ExhaustiveSearch
from poise.library.shards import CANONICAL, FOLDER, on_canonical, read_clip
from poise.library.tensor_file import sha256_of
from poise.motion.edit import frames_between
from poise.motion.motion import Motion
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.skeleton import Skeleton

POSES_FILE = "poses.safetensors"
CACHE = "cache"
LOCK_FILE = "changing.lock"


@dataclass(frozen=True)
class Finding:
    """A problem found by a check, and whether clips are lost by it."""

    what: str
    clip: str = ""


class Library:
    """An open library. Data are read on demand only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        not_a_link(folder / FOLDER)
        self.catalogue = Catalogue(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Library:
        """Open the library in a folder."""
        place = Path(folder)
        if not (place / FILE).is_file():
            raise FileAccessError(
                f"{place} is not a motion library (it has no {FILE}); make one with: poise library build {place} CLIPS"
            )
        return cls(place)

    @classmethod
    def create(cls, folder: str | Path) -> Library:
        """Create or open the library in a folder; raise if the folder contains other things."""
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise FileAccessError(f"{place} is a file; expected a folder for the library")
        if place.is_dir() and any(place.iterdir()) and not (place / FILE).is_file():
            raise FileAccessError(
                f"{place} is not empty and not a motion library; expected a new or empty folder"
            )
        try:
            (place / FOLDER).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot create the folder {place}: {error.strerror or error}") from error
        return cls(place)

    @property
    def clips(self) -> list[Clip]:
        """The catalogue's rows, by name."""
        return self.catalogue.clips()

    @property
    def sound(self) -> list[Clip]:
        """The clips not known to be damaged."""
        damaged = self.catalogue.damaged
        return [clip for clip in self.clips if clip.name not in damaged]

    @property
    def skeleton(self) -> Skeleton:
        """The canonical skeleton, on which all clips can be compared."""
        canonical = self.catalogue.canonical
        if canonical is None:
            raise InvalidValueError(f"the library in {self.folder} is empty")
        return canonical.skeleton

    def motion(self, name: str) -> Motion:
        """A clip as it was recorded, on its own skeleton."""
        clip = self.catalogue.clip(name)
        return read_clip(self.folder / clip.shard, self.catalogue.skeleton(clip.skeleton), name=clip.name)

    def canonical_motion(self, name: str) -> Motion:
        """A clip on the canonical skeleton."""
        return self._canonical(self.catalogue.clip(name), self.skeleton)

    def search(self, words: Iterable[str] = (), *, performer: str = "") -> list[Clip]:
        """Clips whose name, tags, performer or source contain all the words."""
        wanted, found = [word.casefold() for word in words], []
        for clip in self.clips:
            named = (clip.name, clip.performer, clip.variant, *clip.tags, Path(clip.source).name)
            text = " ".join(named).casefold()
            if performer.casefold() in clip.performer.casefold() and all(word in text for word in wanted):
                found.append(clip)
        return found

    def remove(self, names: Sequence[str]) -> None:
        """Remove clips: first their rows, then their shards."""
        with only_one(self.folder):
            shards = [self.folder / self.catalogue.clip(name).shard for name in names]
            self.catalogue.remove(names)
            for shard in shards:
                shard.unlink(missing_ok=True)
            self.refresh()

    # --- all poses -------------------------------------------------------------------------------------------------

    @cached_property
    def poses(self) -> Poses:
        """All poses on the canonical skeleton, memory-mapped; assembled again after clips were added or removed."""
        self.refresh()
        if not self.clips:
            raise InvalidValueError(f"the library in {self.folder} has no clips")
        return map_poses(self._poses_file, self.skeleton)[0]

    def refresh(self) -> None:
        """Assemble all poses again if they do not match the catalogue's clips, or are damaged."""
        self.__dict__.pop("poses", None)
        if not self.clips or (self._is_current() and not self._poses_damaged()):
            return
        self.note_damage()
        sound = self.sound
        if not sound:
            raise ParseError("all of its clips are damaged; build it again", path=self.folder)
        header, skeleton = {"clips": _fingerprint(sound)}, self.skeleton
        motions = partial(map, lambda clip: self._canonical(clip, skeleton), sound)
        frames = sum(clip.frames for clip in sound)
        digest = write_poses(self._poses_file, motions, frames=frames, header=header)
        self.catalogue.poses_sha256 = digest

    @property
    def cache(self) -> Path:
        """The folder for data that can be recomputed, such as neighbour graphs."""
        return self.folder / CACHE

    @property
    def fingerprint(self) -> str:
        """A hash that distinguishes libraries with different clips."""
        return _fingerprint(self.sound)

    # --- damage ----------------------------------------------------------------------------------------------------

    def check(self) -> Iterator[Finding]:
        """Verify the checksum of every shard, and search for files that nothing refers to."""
        for reason in self.catalogue.broken().values():
            yield Finding(reason, clip="a row of the catalogue")
        for clip in self.clips:
            if reason := self._damage(clip):
                yield Finding(f"{clip.shard}: {reason}", clip=clip.name)
        known = {clip.shard for clip in self.clips}
        for file in sorted((self.folder / FOLDER).iterdir()):
            if str(file.relative_to(self.folder)) not in known:
                yield Finding(f"{file.relative_to(self.folder)}: left by a build that was interrupted")
        again = "it is assembled again when the library is used"
        if self.clips and not self._is_current():
            yield Finding(f"{POSES_FILE}: does not match these clips; {again}")
        elif self.clips and self._poses_damaged():
            yield Finding(f"{POSES_FILE}: its checksum differs from the recorded one; {again}")

    def repair(self) -> None:
        """Remove damaged clips, and unneeded files."""
        with only_one(self.folder):
            self.note_damage()
            self.catalogue.drop(self.catalogue.broken())
            self.catalogue.remove(sorted(self.catalogue.damaged))
            self.clear_away()
            self.refresh()

    def note_damage(self) -> None:
        """Verify the checksum of every shard, and record the damaged clips, which are left out of the poses."""
        damaged = {clip.name for clip in self.clips if self._damage(clip)}
        if damaged != self.catalogue.damaged:
            self.catalogue.damaged = damaged

    def clear_away(self) -> None:
        """Remove files left by interrupted builds, and damaged poses."""
        known = {clip.shard for clip in self.clips}
        for file in (self.folder / FOLDER).iterdir():
            if str(file.relative_to(self.folder)) not in known:
                file.unlink()
        if self._poses_file.is_file() and self._poses_damaged():
            self._poses_file.unlink()

    def _damage(self, clip: Clip) -> str:
        """What is wrong with a clip's shard; empty if it is intact."""
        path = self.folder / clip.shard
        try:
            if sha256_of(not_a_link(path)) != clip.shard_sha256:
                return "its checksum differs from the recorded one"
        except (PoiseError, OSError) as error:
            return str(error)
        return ""

    def _poses_damaged(self) -> bool:
        return sha256_of(not_a_link(self._poses_file)) != self.catalogue.poses_sha256

    # --- private ---------------------------------------------------------------------------------------------------

    @property
    def _poses_file(self) -> Path:
        return self.folder / POSES_FILE

    def _canonical(self, clip: Clip, skeleton: Skeleton) -> Motion:
        return read_clip(self.folder / clip.shard, skeleton, CANONICAL, name=clip.name)

    def _is_current(self) -> bool:
        try:
            _, header = map_poses(self._poses_file, self.skeleton)
        except (ParseError, FileAccessError):
            return False
        return bool(header.get("clips") == self.fingerprint)


def _fingerprint(clips: Sequence[Clip]) -> str:
    return sha256("\n".join(f"{clip.name} {clip.shard_sha256}" for clip in clips).encode()).hexdigest()[:24]


class BusyError(PoiseError):
    """Another process is changing the same library."""


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of a library; raise at once if another process holds it."""
    with closing(sqlite3.connect(folder / LOCK_FILE, timeout=0.0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise FileAccessError(f"the library in {folder} cannot be changed: {error}") from error
            raise BusyError(
                f"the library in {folder} is being changed by another process ({error}); "
                "wait until it has finished, then try again"
            ) from error
        yield


# --- frames of a library with the most similar poses -----------------------------------------------------------------


def frames_like(
    library: Library, file: Path, *, second: float = 0.0, count: int = 10
) -> list[tuple[str, float, float]]:
    """The clips with the most similar poses: names, times, and mean distances in degrees per joint."""
    motion, canonical = read(file), library.catalogue.canonical
    if not isinstance(motion, Motion) or canonical is None:
        raise InvalidValueError(f"{file.name} holds markers; a pose needs the motion of a skeleton")
    frame = frames_between(motion, second).start
    pose = on_canonical(motion, canonical)[np.array([frame])]
    poses = library.poses
    q = poses.space.q_from_frames(pose.root_positions, pose.rotations)[0, ROOT_SIZE:]
    found = ExhaustiveSearch(poses.maps).nearest(q, len(poses))
    nearest: dict[str, tuple[str, float, float]] = {}
    for hit in found.frames.tolist():
        clip = int(poses.clip_of[hit])
        if poses.names[clip] not in nearest:
            gaps = np.linalg.norm((poses.maps[hit] - q).reshape(-1, 3), axis=-1)
            when = (hit - int(poses.starts[clip])) / float(poses.rates[clip])
            nearest[poses.names[clip]] = (poses.names[clip], when, float(np.degrees(gaps.mean())))
        if len(nearest) == count:
            break
    return list(nearest.values())
