"""Build a library: read files, transfer them to the canonical skeleton and store them, in parallel.

Everything is written under a temporary name first and moved into place when complete; a clip's row is committed after
its shard. So a build that is killed, or runs out of disk, leaves a valid library, and the next build resumes.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from poise.engine import Engine
from poise.errors import InvalidValueError, PoiseError
from poise.formats import motion_files, read
from poise.formats.registry import animation_of, stem_of
from poise.library.catalogue import Catalogue, Clip, skeleton_text
from poise.library.datasets import catalogue
from poise.library.shards import FOLDER, Canonical, frames_hash, on_canonical, write_shard
from poise.library.store import Library, only_one
from poise.library.tensor_file import sha256_of
from poise.motion.edit import mirror, resample
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Skeleton
from poise.types import Progress

SLOWEST, FASTEST = 0.1, 10.0
_BANDAI = re.compile(r"dataset-(?P<set>\d+)_(?P<action>[^_]+)_(?P<style>[^_]+)_\d+")
_CMU = re.compile(r"(?P<subject>\d{2,3})_\d{2}(_|$)")
_WORD = re.compile(r"[a-z]{3,}")
_LINKS = {"and", "the", "with", "underneath"}


@dataclass(frozen=True)
class Recipe:
    """Settings of a build: copies of each clip, the performer's name, and options of the readers."""

    mirrored: bool = False
    speeds: tuple[float, ...] = ()
    """Copies at other speeds: 0.5 takes twice as long."""
    performer: str = ""
    tags: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for speed in self.speeds:
            if not SLOWEST <= speed <= FASTEST or speed == 1.0:
                raise InvalidValueError(
                    f"a copy's speed must be {SLOWEST:g} to {FASTEST:g}, but not 1; got {speed:g}"
                )

    @property
    def variants(self) -> tuple[str, ...]:
        """The recording itself, then its copies."""
        return ("", *(["mirrored"] if self.mirrored else []), *(f"x{speed:g}" for speed in self.speeds))


@dataclass
class Built:
    """The outcome of a build."""

    added: list[str] = field(default_factory=list)
    kept: int = 0
    """Clips that were already in the library."""
    duplicates: dict[str, str] = field(default_factory=dict)
    """Files with the same content as another clip, and that clip."""
    refused: dict[str, str] = field(default_factory=dict)
    """Files that could not be added, and why."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Clips with damaged shards whose files were not read again by this build, and those files."""


def build(
    folder: str | Path,
    sources: Sequence[Path],
    *,
    recipe: Recipe | None = None,
    skeleton: Path | None = None,
    engine: Engine | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Built:
    """Add files, and all motion files in folders, to the library in `folder`, which is created if needed.

    The canonical skeleton is that of `skeleton`, else of the first clip of a person; once chosen it is kept. Files
    that were added before, under any name, are not read again, unless their shards are damaged. Only one build at a
    time may work on a folder.
    """
    recipe, engine, files = recipe or Recipe(), engine or Engine(), motion_files(sources)
    library, built = Library.create(folder), Built()
    with only_one(library.folder):
        library.note_damage()
        library.clear_away()
        tasks = _tasks(library, files, recipe, built)
        if tasks:
            if library.catalogue.canonical is None:
                library.catalogue.canonical = _canonical(skeleton, tasks, recipe, built)
            canonical = library.catalogue.canonical
            ready = [replace(task, canonical=canonical) for task in tasks]
            frames = {clip.frames_sha256: clip.name for clip in library.sound}
            for count, done in enumerate(engine.each(_converted, ready), start=1):
                _take_in(
                    library, ready[done.number], done.value or _Outcome(refused=done.lost), frames, built
                )
                progress(count, len(ready))
        try:
            library.refresh()
        except OSError as error:
            built.refused[str(folder)] = f"the poses of all clips could not be assembled: {error}"
    built.damaged = {name: library.catalogue.clip(name).source for name in sorted(library.catalogue.damaged)}
    return built


# --- tasks and outcomes --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """One file and the copies of it that are still needed."""

    file: Path
    sha256: str
    name: str
    variants: tuple[str, ...]
    folder: Path
    recipe: Recipe
    canonical: Canonical | None = None


@dataclass(frozen=True)
class _Outcome:
    """The clips of one file with their skeleton, or the reason why there are none."""

    clips: tuple[Clip, ...] = ()
    skeleton: Skeleton | None = None
    refused: str = ""


def _tasks(library: Library, files: Sequence[Path], recipe: Recipe, built: Built) -> list[_Task]:
    """The files not in the library yet; a file with the bytes of another is a duplicate."""
    known = {(clip.source_sha256, clip.variant): clip for clip in library.clips}
    present = {(clip.source_sha256, clip.variant) for clip in library.sound}
    names = {clip.name for clip in library.clips}
    tasks: dict[str, _Task] = {}
    for file in files:
        try:
            whole, animation = animation_of(file)
            digest = sha256_of(whole)
        except (PoiseError, OSError) as error:
            _refuse(library.catalogue, built, str(file), str(error))
            continue
        if animation is not None:
            digest = hashlib.sha256(f"{digest}#{animation}".encode()).hexdigest()
        original = known.get((digest, ""))
        moved = original is not None and Path(original.source) != file.absolute()
        if digest in tasks or (moved and (digest, "") in present):
            built.duplicates[str(file)] = original.name if original else tasks[digest].name
            continue
        wanted = tuple(variant for variant in recipe.variants if (digest, variant) not in present)
        built.kept += len(recipe.variants) - len(wanted)
        if wanted:
            stem = stem_of(file)
            numbered = (f"{stem}.{number}" for number in itertools.count(2))  # if another file has this name
            free = (name for name in itertools.chain([stem], numbered) if name not in names)
            name = original.name if original else next(free)
            names.add(name)
            tasks[digest] = _Task(file.absolute(), digest, name, wanted, library.folder, recipe)
    return list(tasks.values())


def _canonical(skeleton: Path | None, tasks: Sequence[_Task], recipe: Recipe, built: Built) -> Canonical:
    """The requested skeleton, or that of the first file of a person."""
    if skeleton is not None:
        return Canonical.of(_read(skeleton, recipe))
    for task in tasks:
        try:
            return Canonical.of(_read(task.file, recipe))
        except (PoiseError, OSError) as error:
            built.refused[str(task.file)] = str(error)
    raise InvalidValueError(
        f"none of the {len(tasks)} files has a person's skeleton for the library: "
        + "; ".join(f"{Path(file).name}: {reason}" for file, reason in list(built.refused.items())[:3])
    )


# --- doing it ------------------------------------------------------------------------------------------------------


def _take_in(library: Library, task: _Task, outcome: _Outcome, frames: dict[str, str], built: Built) -> None:
    """Commit the clips of a file, whose shards are written, unless another file has the same frames."""
    if outcome.refused or outcome.skeleton is None:
        _refuse(library.catalogue, built, str(task.file), outcome.refused)
        return
    for clip in outcome.clips:
        if (same := frames.get(clip.frames_sha256)) is not None:
            built.duplicates[clip.source] = same
            (library.folder / clip.shard).unlink(missing_ok=True)
            continue
        try:
            library.catalogue.add(clip, outcome.skeleton)
        except PoiseError as error:
            built.refused[clip.source] = str(error)
            continue
        frames[clip.frames_sha256] = clip.name
        built.added.append(clip.name)
        built.refused.pop(clip.source, None)


def _refuse(catalogue: Catalogue, built: Built, source: str, reason: str) -> None:
    built.refused[source] = reason
    try:
        catalogue.refuse(source, reason)
    except PoiseError:
        return  # the disk is full: the reason is reported, and the next build finds it again


def _converted(task: _Task) -> _Outcome:
    """Read a file and write its shards, in a separate process; any failure becomes a reason."""
    try:
        motion = _read(task.file, task.recipe)
        clips = tuple(_written(task, motion, variant) for variant in task.variants)
    except (PoiseError, OSError) as error:
        return _Outcome(refused=" ".join(str(error).split()))
    except Exception as error:  # one unreadable file must not end the build of ten thousand
        return _Outcome(refused=f"unexpected {type(error).__name__}: {error}")
    return _Outcome(clips, motion.skeleton)


def _written(task: _Task, motion: Motion, variant: str) -> Clip:
    assert task.canonical is not None
    copy = motion
    if variant == "mirrored":
        copy = mirror(motion)
    elif variant:
        slowed = resample(motion, motion.fps / float(variant.removeprefix("x")))
        copy = replace(slowed, fps=motion.fps)
    name, described = f"{task.name}~{variant}" if variant else task.name, skeleton_text(motion.skeleton)
    shard = Path(FOLDER) / f"{task.sha256[:24]}{'-' if variant else ''}{variant}.safetensors"
    header = {"name": name, "skeleton": described}
    digest = write_shard(task.folder / shard, copy, on_canonical(copy, task.canonical), header=header)
    words = (*task.recipe.tags, *tags_of(stem_of(task.file)), *([variant] if variant else []))
    return Clip(
        name=name,
        variant=variant,
        performer=task.recipe.performer or performer_of(stem_of(task.file)),
        tags=tuple(dict.fromkeys(words)),
        skeleton=hashlib.sha256(described.encode()).hexdigest()[:16],
        fps=copy.fps,
        frames=len(copy),
        source=str(task.file),
        source_sha256=task.sha256,
        frames_sha256=frames_hash(copy),
        shard=str(shard),
        shard_sha256=digest,
        provenance=asdict(motion.origin),
    )


def _read(file: Path, recipe: Recipe) -> Motion:
    motion = read(file, **recipe.reading)
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"{file.name} holds markers; a library needs the motion of a skeleton")
    return motion


def performer_of(name: str) -> str:
    """The performer, or nothing if the name does not contain one."""
    if found := _CMU.match(name):
        return f"CMU {found['subject']}"
    if found := _BANDAI.match(name):
        return f"Bandai {found['set']}"
    return ""


def tags_of(name: str) -> tuple[str, ...]:
    """Words for the action and its style."""
    if found := _BANDAI.match(name):
        return tuple(dict.fromkeys((*_words(found["action"].replace("-", " ")), found["style"])))
    described = {clip.name: clip.description for clip in catalogue()}
    return _words(described.get(name, name))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(_WORD.findall(text.casefold())) if word not in _LINKS)
