"""`poise fuse TAKE -o FILE`: one motion from several sources, and how far each of them is off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput

app = App(
    name="fuse",
    help_epilogue="""\
The take is a TOML file with a table per source: positions of joints (C3D, TRC,
CSV), orientations of segments or pixels of joints in a camera (CSV), each with
its noise, and [[constraints]] for keys and contacts. Clocks are corrected, and
a source that the others contradict is left out. docs/uncertainty.md shows a
file.

Examples:
  poise fuse take.toml -o take.bvh
  poise fuse take.toml --json
""",
)


@app.default
def fuse(
    take: Annotated[Path, Parameter(help="The take file, TOML.")],
    *,
    output: OptionalOutput = None,
    onto: Onto = None,
    json: Annotated[bool, Parameter(help="Print the agreement of the sources as JSON.")] = False,
) -> None:
    """Make one motion from several sources."""
    from dataclasses import asdict

    from poise.apps.fusing import fuse_take
    from poise.apps.outputs import save

    with terminal.working("fusing"):
        fused = fuse_take(take)
    if output is not None:
        save(fused.trajectory.motion(fused.fps, name=output.stem), output, onto=onto)
    if json:
        terminal.print_json({"sources": [asdict(report) for report in fused.reports]})
        return
    for report in fused.reports:
        print(report)
    if output is not None:
        print(f"{output}: {terminal.file_size(output)}")
