"""`poise serve`: pose characters of other programs over a local socket."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal

app = App(
    name="serve",
    help_epilogue="""\
The Blender add-on (poise-blender.zip) connects to it, and so can any program:
it sends its bones and handles as lines of JSON and receives the rotation of
every joint. Only programs on this machine can connect. Ctrl-C ends it.

Examples:
  poise serve
  poise serve --port 40000
""",
)


@app.default
def serve(
    *, port: Annotated[int, Parameter(help="The port to listen on; 0 selects a free one.")] = 39550
) -> None:
    """Pose characters of other programs, such as Blender, over a local socket."""
    from poise.apps import serving

    with suppress(KeyboardInterrupt):
        serving.serve(port, ready=lambda bound: terminal.note(f"listening on {serving.HOST}:{bound}"))
