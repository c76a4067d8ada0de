"""What the studio keeps on this machine: scenes with their parts, and a library of poses, in one SQLite database.

Several studios may use it together. A scene is written with its parts in one transaction, and only the number of newer
scenes decides which one is removed, so that a clock that jumps removes nothing. Parts (motions, models and pictures)
are named by their content: the same one is kept once. Files of earlier versions are taken over.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Annotated, Any, Literal, cast
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import Meta

from poise.errors import InvalidValueError, ParseError, PoiseError, UnknownNameError
from poise.formats.files import FileAccessError, make_folder, replacing
from poise.geometry import rotations
from poise.motion.cache import cache_folder
from poise.motion.motion import Motion
from poise.priors.model_file import load, save
from poise.priors.prior import Prior
from poise.priors.registry import Storable
from poise.skeleton.skeleton import Pose, Skeleton
from poise.studio.messages import Coordinate, Name, Quaternion

FILE, VERSION = "studio.sqlite", 1
PATIENCE = 30.0  # seconds to wait while another studio writes
MOST_SCENES, MOST_POSES = 50, 1000
LARGEST = 50_000_000  # bytes of a file of poses
JOURNAL = 16_000_000  # bytes that the journal of writes keeps on disk
_CHUNK = 1 << 20
_PART = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,8}")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLES = f"""
CREATE TABLE scenes (token TEXT PRIMARY KEY, number INTEGER, saved REAL, content BLOB);
CREATE TABLE parts (name TEXT PRIMARY KEY, content BLOB);
CREATE TABLE needs (token TEXT REFERENCES scenes ON DELETE CASCADE, part TEXT, PRIMARY KEY (token, part));
CREATE TABLE poses (id TEXT PRIMARY KEY, number INTEGER, content BLOB);
PRAGMA user_version = {VERSION};
"""


class Store:
    """The database in a folder; opened at the first use. Tokens are stored only as their hashes."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "studio"
        self._path = self.folder / FILE
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._names: WeakKeyDictionary[Motion | Prior, str] = WeakKeyDictionary()
        self._files: dict[Path, tuple[tuple[int, int], str]] = {}

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is written, or nothing. Inside another it is part of that."""
        with self._lock, self._clear_errors():
            connection = self._opened()
            if connection.in_transaction:
                yield connection
                return
            with _transaction(connection):
                yield connection

    def take_of(self, token: str) -> Path:
        """The path beside which a session's performance is stored until it is part of its scene."""
        return self.folder / "takes" / f"{_hashed(token)}.take"

    # --- scenes ----------------------------------------------------------------------------------------------------

    def put_scene(self, token: str, content: bytes) -> None:
        """Write the newest state of a scene; its parts must be here."""
        with self.writing() as database:
            _put_scene(database, _hashed(token), content, time.time())

    def scene(self, token: str) -> tuple[int, float, bytes] | None:
        """A scene: its number (newer ones have larger numbers), the time when it was saved, and its content."""
        found = self._rows("SELECT number, saved, content FROM scenes WHERE token = ?", _hashed(token))
        return cast("tuple[int, float, bytes]", found[0]) if found else None

    def tidy(self) -> None:
        """Remove all scenes but the newest, and parts that no scene needs."""
        if not self._path.exists() and not _earlier_files(self.folder):
            return
        with self.writing() as database:
            newest = "SELECT token FROM scenes ORDER BY number DESC LIMIT ?"
            database.execute(f"DELETE FROM scenes WHERE token NOT IN ({newest})", (MOST_SCENES,))
            database.execute("DELETE FROM parts WHERE name NOT IN (SELECT part FROM needs)")
        with self._lock, self._clear_errors():
            self._opened().execute("PRAGMA incremental_vacuum").fetchall()

    # --- parts of scenes -------------------------------------------------------------------------------------------

    def motion(self, motion: Motion) -> str:
        """Store a motion; return its name."""
        from safetensors.numpy import save as to_bytes

        def written() -> str:
            arrays = {"root_positions": motion.root_positions, "rotations": motion.rotations}
            kept = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in arrays.items()}
            return self._put(".motion", to_bytes(kept, {"fps": repr(motion.fps), "name": motion.name}))

        return self._known(motion, written)

    def model(self, prior: Prior) -> str:
        """Store a model; return its name."""

        def written() -> str:
            with tempfile.TemporaryDirectory(prefix="poise-model-") as folder:
                path = Path(folder) / "model.poise"
                save(cast(Storable, prior), path)
                return self._put(".poise", path.read_bytes())

        return self._known(prior, written)

    def file(self, path: Path) -> str:
        """Store a copy of a file; return its name."""
        now = path.stat().st_mtime_ns, path.stat().st_size
        stamp, name = self._files.get(path, (None, ""))
        if stamp != now or not self._has(name):
            name = self._put(path.suffix.lower(), path.read_bytes())
            self._files[path] = now, name
        return name

    def part(self, name: str) -> bytes:
        """The content of a part."""
        found = self._rows("SELECT content FROM parts WHERE name = ?", name)
        if not found:
            raise InvalidValueError(f"its part {name[:50]!r} is missing")
        return cast(bytes, found[0][0])

    def take(self, name: str, read: Callable[[int], bytes], most: int) -> int:
        """Store a part from elsewhere; return its size, which must not exceed `most`."""
        content = bytearray()
        while chunk := read(_CHUNK):
            content += chunk
            if len(content) > most:
                raise InvalidValueError(f"it unpacks to more than {most / 1e6:.0f} MB")
        if not _PART.fullmatch(name) or self._put(Path(name).suffix, bytes(content)) != name:
            raise InvalidValueError(f"its part {name[:50]!r} is damaged")
        return len(content)

    def read_motion(self, name: str, skeleton: Skeleton) -> Motion:
        """Load a motion."""
        from safetensors import SafetensorError
        from safetensors.numpy import load as from_bytes

        content, path = self.part(name), self._path
        try:
            frames = from_bytes(content)
            size = int.from_bytes(content[:8], "little")
            about = msgspec.json.decode(content[8 : 8 + size])["__metadata__"]
            roots, turns, fps = frames["root_positions"], frames["rotations"], float(about["fps"])
        except (SafetensorError, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise ParseError(f"not a motion of a scene: {error}", path=path) from error
        if any(array.dtype != np.float64 for array in (roots, turns)) or not 0.0 < fps <= 10_000.0:
            raise ParseError(f"not a motion of a scene: {roots.dtype} at {fps} Hz", path=path)
        motion = Motion(skeleton, fps, roots, turns, name=about.get("name", ""))
        self._names[motion] = name
        return motion

    def read_model(self, name: str) -> Prior:
        """Load a model."""
        with tempfile.TemporaryDirectory(prefix="poise-model-") as folder:
            path = Path(folder) / name
            path.write_bytes(self.part(name))
            prior = load(path)
        self._names[prior] = name
        return prior

    def _known(self, value: Motion | Prior, put: Callable[[], str]) -> str:
        if (name := self._names.get(value)) is None or not self._has(name):
            name = self._names[value] = put()
        return name

    def _has(self, name: str) -> bool:
        return bool(self._rows("SELECT 1 FROM parts WHERE name = ?", name))

    def _put(self, suffix: str, content: bytes) -> str:
        with self.writing() as database:
            return _put_part(database, suffix, content)

    # --- poses -----------------------------------------------------------------------------------------------------

    @property
    def poses(self) -> list[SavedPose]:
        """The library of poses, newest first."""
        rows = self._rows("SELECT content FROM poses ORDER BY number DESC")
        return [msgspec.json.decode(content, type=SavedPose) for (content,) in rows]

    def pose(self, name: str) -> SavedPose:
        """The pose with this id."""
        found = {saved.id: saved for saved in self.poses}
        if name not in found:
            raise UnknownNameError("pose", name, list(found) or ["(none is kept yet)"])
        return found[name]

    def add_pose(self, name: str, pose: Pose) -> None:
        """Add a pose."""
        turns = [(w, i, j, k) for w, i, j, k in pose.rotations.tolist()]
        root = (0.0, float(pose.root_position[1]), 0.0)
        self._add_poses([SavedPose(secrets.token_hex(8), name, list(pose.skeleton.names), root, turns)])

    def drop_pose(self, name: str) -> None:
        """Remove a pose."""
        with self.writing() as database:
            self.pose(name)
            database.execute("DELETE FROM poses WHERE id = ?", (name,))

    def read_poses(self, path: Path) -> None:
        """Add the poses of a file that are not here yet."""
        self._add_poses(_poses_of(path))

    def write_poses(self, path: Path) -> None:
        """The library as a file."""
        if not (poses := self.poses):
            raise InvalidValueError("the library is empty; keep a pose first")
        with replacing(path, "wb") as file:
            file.write(msgspec.json.encode(SavedPoses(poses)))

    def _add_poses(self, more: list[SavedPose]) -> None:
        with self.writing() as database:
            _put_poses(database, more)
            if database.execute("SELECT count(*) FROM poses").fetchone()[0] > MOST_POSES:
                raise InvalidValueError(f"the library has room for {MOST_POSES} poses; remove some first")

    def _rows(self, question: str, *values: object) -> list[Any]:
        """The rows that answer a question; none before anything was stored."""
        if not self._path.exists() and not _earlier_files(self.folder):
            return []
        with self._lock, self._clear_errors():
            return self._opened().execute(question, values).fetchall()

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise FileAccessError(f"the studio's store {self._path} cannot be used: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            make_folder(self.folder)
            try:
                self._connection = self._connected()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", None) not in _DAMAGED:
                    raise
                aside = self._path.with_suffix(f".damaged-{secrets.token_hex(4)}")
                os.replace(self._path, aside)  # for whoever can repair it
                self._connection = self._connected()
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        """A connection to a database with its tables; earlier files are taken over with their creation."""
        database = sqlite3.connect(
            self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA foreign_keys = ON")
            database.execute(f"PRAGMA journal_size_limit = {JOURNAL}").fetchall()
            taken: list[Path] = []
            if _version(database) == 0:
                with _transaction(database):
                    if _version(database) == 0:  # else another studio was faster
                        for statement in filter(str.strip, _TABLES.split(";")):
                            database.execute(statement)
                        taken = _take_over(database, self.folder)
            for path in taken:
                with suppress(OSError):
                    path.unlink()
            if _version(database) > VERSION:
                raise InvalidValueError(f"{self._path} was written by a newer Poise; upgrade")
        except BaseException:
            database.close()
            raise
        return database


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

    poses: Annotated[list[SavedPose], Meta(max_length=MOST_POSES)]
    poise: Literal["poses"] = "poses"
    version: int = 1


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk has ended it already
            database.execute("ROLLBACK")
        raise


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _put_scene(database: sqlite3.Connection, token: str, content: bytes, saved: float) -> None:
    database.execute("DELETE FROM scenes WHERE token = ?", (token,))
    number = "(SELECT coalesce(max(number), 0) + 1 FROM scenes)"
    database.execute(f"INSERT INTO scenes VALUES (?, {number}, ?, ?)", (token, saved, content))
    named = set(_PART.findall(content.decode(errors="replace")))
    database.executemany("INSERT INTO needs VALUES (?, ?)", [(token, part) for part in named])


def _put_part(database: sqlite3.Connection, suffix: str, content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()[:32] + suffix
    database.execute("INSERT OR IGNORE INTO parts VALUES (?, ?)", (name, content))
    return name


def _put_poses(database: sqlite3.Connection, poses: list[SavedPose]) -> None:
    number = "(SELECT coalesce(max(number), 0) + 1 FROM poses)"
    for saved in reversed(poses):
        row = saved.id, msgspec.json.encode(saved)
        database.execute(f"INSERT OR IGNORE INTO poses VALUES (?, {number}, ?)", row)


def _earlier_files(folder: Path) -> list[Path]:
    """The scenes, the oldest first, and the library of poses of Poise 0.2 and earlier."""
    scenes = sorted((folder / "scenes").glob("*.scene"), key=lambda path: path.stat().st_mtime)
    return scenes + [path for path in [folder / "library.poses"] if path.exists()]


def _take_over(database: sqlite3.Connection, folder: Path) -> list[Path]:
    """Take over files of earlier versions; return those that are not needed any more."""
    taken, parts = [], list((folder / "scenes" / "parts").glob("*.*"))
    for path in _earlier_files(folder):
        try:
            if path.suffix == ".poses":
                _put_poses(database, _poses_of(path))
            else:
                content = path.read_bytes()
                for part in set(_PART.findall(content.decode(errors="replace"))):
                    file = folder / "scenes" / "parts" / part
                    if file.is_file():
                        _put_part(database, file.suffix, file.read_bytes())
                _put_scene(database, path.stem, content, path.stat().st_mtime)
        except (OSError, PoiseError):
            parts = []  # it stays where it is, with what it needs
            continue
        taken.append(path)
    for take in (folder / "scenes").glob("*.take.*"):
        with suppress(OSError):
            take.replace(make_folder(folder / "takes") / take.name)
    return taken + parts


def _poses_of(path: Path) -> list[SavedPose]:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise msgspec.DecodeError(f"more than {LARGEST / 1e6:.0f} MB")
        poses = msgspec.json.decode(text, type=SavedPoses).poses
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not a file of poses: {error}", path=path) from error
    for saved in poses:
        turns = saved.turns
        if len(turns) != len(saved.joints) or not all(np.linalg.norm(turn) > 0.5 for turn in turns):
            raise ParseError(f"the pose {saved.name!r} has not one rotation for each joint", path=path)
    return poses
