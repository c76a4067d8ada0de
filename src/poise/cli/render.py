"""`poise render FILE -o PICTURE`: look at a motion without opening another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, End, Film, ReadingOptions, Start, warn_of

app = App(
    name="render",
    help_epilogue="""\
Left is blue, right is orange. A .png is a contact sheet of poses over time,
.gif and .mp4 are animations (.mp4 needs the extra poise[video]). Marker
files are drawn as dots.

Examples:
  poise render walk.bvh -o walk.png
  poise render walk.bvh -o walk.png --poses 12 --layout row
  poise render throw.bvh -o throw.gif --start 0.5 --end 2
  poise render take.c3d -o take.mp4 --size 1280 720 --fps 60
""",
)


@app.default
def render(
    file: Annotated[Path, Parameter(help="The motion to draw: BVH, AMC, GLB, C3D or TRC.")],
    *,
    output: Film,
    start: Start = None,
    end: End = None,
    title: Annotated[str | None, Parameter(help="A title of your own.")] = None,
    poses: Annotated[int | None, Parameter(help="How many poses on a contact sheet.")] = None,
    layout: Annotated[str | None, Parameter(help="Of a contact sheet: travel, row or auto.")] = None,
    width: Annotated[int | None, Parameter(help="Of a contact sheet, in pixels.")] = None,
    size: Annotated[
        tuple[int, int] | None, Parameter(help="Of an animation: width and height in pixels.")
    ] = None,
    fps: Annotated[float | None, Parameter(help="Of an animation: frames per second.")] = None,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Draw a motion as a contact sheet or an animation."""
    from poise.apps.outputs import draw
    from poise.formats import read
    from poise.motion.edit import edited

    asked = {"title": title, "poses": poses, "layout": layout, "width": width, "size": size, "fps": fps}
    options = {name: value for name, value in asked.items() if value is not None}
    with terminal.working(f"reading {file.name}"):
        original = read(file, **reading.given)
        shown = edited(original, start=start, end=end)
    warn_of(original)
    with terminal.counting(f"drawing {output.name}") as report:
        draw(shown, output, progress=report, **options)
    print(f"{output}: {terminal.file_size(output)}")
