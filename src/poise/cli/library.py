"""Libraries of many clips: `poise library`, and public recordings to put into them: `poise data`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App

from poise.cli import terminal
from poise.cli.options import AS_FOUND, Jobs, Output, ReadingOptions, Scheduler, about
from poise.errors import InvalidValueError, PoiseError
from poise.library import Clip, Library, Recipe, datasets
from poise.library import build as build_library

library = App(
    name="library",
    help_epilogue="""\
A library is a folder: a catalogue, one file per clip, and all poses on one
skeleton, memory-mapped. An interrupted build resumes the next time.

Examples:
  poise library build moves recordings/ more/*.bvh --jobs 4
  poise library build moves recordings/ --mirrored --speeds 0.8 1.25
  poise library info moves
  poise library search moves walk tired
  poise library search moves --like pose.bvh --at 1.5
  poise library export moves 07_01 -o walk.bvh
  poise library remove moves 07_01
  poise library check moves
""",
)

Folder = Annotated[Path, about("The library's folder.")]


@library.command
def build(
    folder: Folder,
    *sources: Annotated[Path, about("Motion files, and folders to look for them in.")],
    mirrored: Annotated[bool, about("Also keep every clip mirrored left to right.")] = False,
    speeds: Annotated[
        list[float] | None,
        about("Also keep copies at these speeds: 0.5 takes twice as long.", consume_multiple=True),
    ] = None,
    skeleton: Annotated[
        Path | None, about("A clip whose skeleton all clips are retargeted to. Default: the first clip.")
    ] = None,
    performer: Annotated[str, about("The performer. Default: read from the file names.")] = "",
    tags: Annotated[
        list[str] | None,
        about("Tags of the behaviour, in addition to those in the names.", consume_multiple=True),
    ] = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = "",
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Take clips into a library, which is made if it is not there."""
    from poise.engine import CLUSTER_PAYS, Engine

    recipe = Recipe(mirrored, tuple(speeds or ()), performer, tuple(tags or ()), reading.given)
    with terminal.counting("taking in") as report:
        built = build_library(
            folder, sources, recipe=recipe, skeleton=skeleton, engine=Engine(jobs, scheduler), progress=report
        )
    if scheduler and len(built.added) < CLUSTER_PAYS:
        terminal.note(
            f"{len(built.added)} clips on a cluster: below {CLUSTER_PAYS}, one process is about as fast"
        )
    for source, reason in built.refused.items():
        terminal.warn(f"left out: {Path(source).name}: {reason}")
    for name, source in built.damaged.items():
        remedy = f"build again with {source} to read it again, or remove it with check --repair"
        terminal.warn(f"damaged: {name}; {remedy}")
    for source, same in built.duplicates.items():
        terminal.note(f"left out: {Path(source).name} is the same as {same}")
    clips = Library.open(folder).clips
    print(
        f"{folder}: {len(built.added)} clips added, {built.kept} kept, {len(built.refused)} refused, "
        f"{len(built.duplicates)} duplicates; {_amount(clips)} in all"
    )


@library.command
def info(folder: Folder, *, json: Annotated[bool, about("Print JSON.")] = False) -> None:
    """Show what a library holds."""
    library = Library.open(folder)
    clips = library.clips
    tags = Counter(tag for clip in clips for tag in clip.tags)
    facts: dict[str, object] = {
        "clips": len(clips),
        "frames": sum(clip.frames for clip in clips),
        "seconds": round(sum(clip.seconds for clip in clips), 3),
        "performers": sorted({clip.performer for clip in clips if clip.performer}),
        "skeletons": len({clip.skeleton for clip in clips}),
        "canonical_joints": len(library.skeleton) if clips else 0,
        "tags": dict(tags.most_common(20)),
        "damaged": sorted(library.catalogue.damaged),
        "refused": library.catalogue.refused(),
    }
    if json:
        terminal.print_json(facts)
        return
    shown = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = [f"{tag} {count}" for tag, count in value.items()]
        elif value == []:
            continue
        if name != "refused":
            shown.append((name, ", ".join(value) if isinstance(value, list) else str(value)))
    terminal.print_facts(str(folder), shown)
    for source, reason in library.catalogue.refused().items():
        terminal.warn(f"not in it: {Path(source).name}: {reason}")


@library.command
def search(
    folder: Folder,
    *words: Annotated[str, about("Words in a clip's name, tags or performer; all must match.")],
    performer: Annotated[str, about("Only clips of this performer.")] = "",
    like: Annotated[
        Path | None, about("A motion file; find the frames most similar to one of its poses.")
    ] = None,
    at: Annotated[float, about("The second of that file.")] = 0.0,
    count: Annotated[int, about("How many frames to list, one of each clip.")] = 10,
) -> None:
    """List clips by words, or frames by a pose."""
    library = Library.open(folder)
    if like is not None:
        from poise.library.store import frames_like

        hits = frames_like(library, like, second=at, count=count)
        lines = [(clip, f"{second:.3f}", f"{degrees:.2f}") for clip, second, degrees in hits]
        terminal.print_table(("clip", "second", "degrees per joint"), lines)
        return
    found = library.search(words, performer=performer)
    rows = [
        (clip.name, clip.performer, f"{clip.seconds:.1f} s", str(clip.frames), ", ".join(clip.tags))
        for clip in found
    ]
    terminal.print_table(("clip", "performer", "length", "frames", "tags"), rows)
    terminal.note(_amount(found))


@library.command
def export(
    folder: Folder,
    clip: Annotated[str, about("The clip's name.")],
    *,
    output: Output,
    canonical: Annotated[bool, about("On the library's skeleton instead of its own.")] = False,
) -> None:
    """Write a clip as a motion file or a picture."""
    from poise.apps.outputs import save

    library = Library.open(folder)
    motion = library.canonical_motion(clip) if canonical else library.motion(clip)
    save(motion, output)
    print(f"{output}: {len(motion)} frames, {terminal.file_size(output)}")


@library.command
def remove(folder: Folder, *clips: Annotated[str, about("Names of clips.")]) -> None:
    """Take clips out of a library."""
    if not clips:
        raise InvalidValueError("name the clips to take out; poise library search lists them")
    library = Library.open(folder)
    library.remove(clips)
    print(f"{folder}: {len(clips)} clips removed; {_amount(library.clips)} left")


@library.command
def check(
    folder: Folder,
    *,
    repair: Annotated[bool, about("Take out clips that are damaged, and files nothing needs.")] = False,
) -> None:
    """Hold every file of a library to its checksum."""
    library = Library.open(folder)
    with terminal.working("checking"):
        findings = list(library.check())
    for finding in findings:
        terminal.warn(finding.what)
    damaged = [finding.clip for finding in findings if finding.clip]
    if repair:
        library.repair()
        print(f"{folder}: {len(damaged)} damaged clips taken out; build again to read them again")
    elif damaged:
        raise PoiseError(
            f"{len(damaged)} of {len(library.clips)} clips are damaged: {', '.join(damaged)}; build again, with their "
            "files at hand to read them again, or remove them with --repair"
        )
    else:
        print(f"{folder}: {_amount(library.clips)}, every checksum as recorded")


def _amount(clips: Sequence[Clip]) -> str:
    seconds = sum(clip.seconds for clip in clips)
    return f"{len(clips)} clips, {sum(clip.frames for clip in clips)} frames, {seconds / 60:.1f} minutes"


data = App(
    name="data",
    help_epilogue="""\
The recordings are the CMU motion capture database, as BVH. They are stored in
POISE_CACHE, or in the platform's cache folder. POISE_DATA_URL selects another
mirror (with 007/07_01.bvh in it).

Examples:
  poise data list
  poise data list boxing
  poise data get 07_01
  poise info $(poise data get 07)
""",
)


@data.command(name="list")
def list_clips(
    words: Annotated[str, about("Only clips with this in their name or description.")] = "",
) -> None:
    """List the clips that can be downloaded, and which are here already."""
    wanted = words.casefold()
    clips = [clip for clip in datasets.catalogue() if wanted in f"{clip.name} {clip.description}".casefold()]
    rows = [
        (clip.name, terminal.size(clip.bytes), "yes" if clip.path.exists() else "", clip.description)
        for clip in clips
    ]
    terminal.print_table(("clip", "size", "here", "what"), rows)
    one, several = "`poise data get 07_01`", "`poise data get 07`"
    terminal.note(f"{len(clips)} clips. Fetch one with {one}, all of a subject with {several}.")
    terminal.note(datasets.LICENCE)


@data.command
def get(*names: Annotated[str, about("Clips (07_01) or subjects (07).")]) -> None:
    """Download clips into the cache and print their paths.

    An interrupted download resumes. Every file is checked against its checksum; a
    clip outside the list against that of its first download.
    """
    if not names:
        raise InvalidValueError("name a clip (07_01) or a subject (07) to fetch; see poise data list")
    clips = [clip for name in names for clip in datasets.find(name)]
    for clip in clips:
        with terminal.counting(f"{clip.name} {clip.description}", download=True) as report:
            path = datasets.fetch(clip, progress=report)
        print(path)
    terminal.note(datasets.LICENCE)
