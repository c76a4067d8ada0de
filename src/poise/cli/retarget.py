"""`poise retarget MOTION CHARACTER -o OUT`: a motion on one's own character."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, Output, ReadingOptions, write_motion

app = App(
    name="retarget",
    help_epilogue="""\
A character in T, A or I pose is enough. A .glb or .vrm output is the
character's own file with the motion added: mesh and materials stay unchanged.
`poise character me.glb` shows the role of each joint, and how to correct it.
Every command that writes a motion also accepts --onto CHARACTER.

Examples:
  poise retarget walk.bvh me.glb -o walking.glb
  poise retarget walk.bvh avatar.vrm -o walking.vrm
  poise retarget dance.glb#samba me.glb -o dance.mp4
""",
)


@app.default
def retarget(
    motion: Annotated[Path, Parameter(help="The motion to retarget.")],
    character: Annotated[Path, Parameter(help="The character: .glb, .vrm, .bvh ...")],
    *,
    output: Output,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Retarget a motion to a character."""
    from poise.apps.retargeting import retarget

    source = reading.motion(motion)
    with terminal.counting(f"carrying onto {character.name}") as report:
        found = retarget(source, character, progress=report)
    print(write_motion(found, output))
