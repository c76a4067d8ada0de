"""`poise serve`: poses characters of other programs over a local socket."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal

app = App(
    name="serve",
    help_epilogue="""\
The add-on for Blender (poise-blender.zip) connects to it. Any program may: it sends
its bones and where handles are, a line of JSON each, and gets every joint's turn. Only
programs on this machine can connect. Ctrl-C ends it.

Examples:
  poise serve
  poise serve --port 40000
""",
)


@app.default
def serve(
    *, port: Annotated[int, Parameter(help="The port to listen on; 0 is any that is free.")] = 39550
) -> None:
    """Pose characters of other programs, such as Blender, over a local socket."""
    from poise.apps import serving

    with suppress(KeyboardInterrupt):
        serving.serve(port, ready=lambda bound: terminal.note(f"listening on {serving.HOST}:{bound}"))
