"""`poise data list` and `poise data get NAME`: public recordings, downloaded once and cached."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError
from poise.motion import datasets

app = App(
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


@app.command(name="list")
def list_clips(
    words: Annotated[str, Parameter(help="Only clips with this in their name or description.")] = "",
) -> None:
    """List the clips that can be downloaded, and which are here already."""
    wanted = words.casefold()
    clips = [clip for clip in datasets.catalogue() if wanted in f"{clip.name} {clip.description}".casefold()]
    terminal.print_table(
        ("clip", "size", "here", "what"),
        (
            (clip.name, terminal.size(clip.bytes), "yes" if clip.path.exists() else "", clip.description)
            for clip in clips
        ),
    )
    terminal.note(
        f"{len(clips)} clips. Fetch one with `poise data get 07_01`, all of a subject with `poise data get 07`."
    )
    terminal.note(datasets.LICENCE)


@app.command
def get(*names: Annotated[str, Parameter(help="Clips (07_01) or subjects (07).")]) -> None:
    """Download clips into the cache and print their paths.

    An interrupted download resumes. Every file is checked against its checksum; a
    clip outside the list against that of its first download.
    """
    if not names:
        raise InvalidValueError("name a clip (07_01) or a subject (07) to fetch; see poise data list")
    clips = [clip for name in names for clip in datasets.find(name)]
    for clip in clips:
        print(_fetch(clip))
    terminal.note(datasets.LICENCE)


def _fetch(clip: datasets.RemoteClip) -> Path:
    with terminal.counting(f"{clip.name} {clip.description}", download=True) as report:
        return datasets.fetch(clip, progress=report)
