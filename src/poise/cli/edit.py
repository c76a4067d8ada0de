"""`poise edit MODEL CLIP --handle NAME --trajectory FILE`: drag a handle's path, the rest of the body follows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, Output, ReadingOptions, write_motion

app = App(
    name="edit",
    help_epilogue="""\
The trajectory is a CSV file with rows time,x,y,z (seconds, metres). A smooth
curve connects them. With --relative they are offsets from the recording.

Examples:
  poise edit box.poise punch.bvh --handle left_hand --trajectory higher.csv \\
      -o higher.bvh
  poise edit box.poise punch.bvh --handle left_hand --trajectory up.csv \\
      --relative -o up.gif
""",
)


@app.default
def edit(
    model: Annotated[Path, Parameter(help="A model written by poise learn.")],
    clip: Annotated[Path, Parameter(help="The motion to edit.")],
    *,
    handle: Annotated[str, Parameter(help="The joint or role to move.")],
    trajectory: Annotated[Path, Parameter(help="CSV file: time,x,y,z per row.")],
    output: Output,
    relative: Annotated[bool, Parameter(help="Points are offsets from the recording.")] = False,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Change the path of one handle in a clip."""
    from poise.apps.dragging import drag, read_path
    from poise.priors.model_file import load

    path, prior = read_path(trajectory, relative=relative), load(model)
    motion = reading.motion(clip)
    with terminal.counting("solving") as report:
        edited = drag(prior, motion, handle, path, progress=report)
    written = write_motion(edited.motion, output)
    if edited.unmet:
        worst = 1000 * float(np.max(edited.handle_distances))
        terminal.warn(
            f"{handle} could not reach its path in {len(edited.unmet)} frames; up to {worst:.0f} mm are missing"
        )
    print(written)
