"""`poise clean MOTION -o OUT`: a motion without foot slide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, Output, ReadingOptions

app = App(
    name="clean",
    help_epilogue="""\
Foot contacts are found by height and speed. A foot in contact stays in place.

Examples:
  poise clean walk.bvh -o clean.bvh
  poise clean slides.glb -o stands.glb
""",
)


@app.default
def clean(
    motion: Annotated[Path, Parameter(help="The motion to clean.")],
    *,
    output: Output,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Remove the foot slide of a motion."""
    from poise.apps.outputs import save
    from poise.apps.planting import clean, slides

    source = reading.motion(motion)
    with terminal.counting("standing") as report:
        found = clean(source, progress=report)
    save(found, output)
    before, after = (1000.0 * max(slides(one, source), default=0.0) for one in (source, found))
    print(
        f"{output}: {len(found)} frames; standing feet slid by up to {before:.0f} mm before, {after:.0f} mm now"
    )
