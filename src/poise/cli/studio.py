"""`poise studio [FILE...]`: the studio in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError, MissingExtraError

app = App(
    name="studio",
    help_epilogue="""\
Without a model, the studio starts with the universal prior. It learns its
other models once, in the background, from the procedural performer. A named
file opens as if you had dropped it on the page: a clip on the timeline, a
character with its mesh (GLB, VRM), a picture in Photo, markers (C3D, TRC) and
videos in Capture, a scene, or the keys of a keyframe script (TOML). By default
only this machine can connect. Other addresses require a token.

Examples:
  poise studio
  poise studio pitch.poise walk.bvh
  poise studio hero.vrm
  poise studio --port 9000 --no-open
  poise studio --host 0.0.0.0
""",
)


@app.default
def studio(
    *files: Annotated[Path, Parameter(help="Models, clips, characters, pictures, takes, videos, scenes.")],
    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int | None, Parameter(help="The port. Default: the first free one from 8420.")] = None,
    token: Annotated[
        str | None, Parameter(help="The token that other machines need. Default: a random one.")
    ] = None,
    no_open: Annotated[bool, Parameter(help="Do not open the browser.")] = False,
) -> None:
    """Open the studio: pose, keyframe and explore styles in the browser."""
    try:
        from poise.studio import launch
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "starlette", extra="studio", purpose="the studio") from error
    if port is not None and not 0 <= port < 65536:
        raise InvalidValueError(f"a port is a number from 0 to 65535; got {port}")
    named, others = launch.sorted_out(files)
    models = launch.models_of(named)
    pace = launch.compiling(everything=bool(named))
    with launch.prepared(
        models, host=host, port=port, token=token, files=others, preparing=pace, ahead=not named
    ) as ready:
        print(f"{ready.address}  (Ctrl+C ends it)", flush=True)
        with terminal.watching(lambda: None if pace.over else f"first start, compiling: {pace.words}"):
            ready.serve(open_browser=not no_open)
