"""`poise studio` in the browser; `poise serve` and `poise stream` for other programs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from poise.cli import terminal
from poise.cli.options import AS_FOUND, ReadingOptions, about, command
from poise.errors import InvalidValueError, MissingExtraError


@command("""\
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
""")
def studio(
    *files: Annotated[Path, about("Models, clips, characters, pictures, takes, videos, scenes.")],
    host: Annotated[str, about("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int | None, about("The port. Default: the first free one from 8420.")] = None,
    token: Annotated[str | None, about("The token that other machines need. Default: a random one.")] = None,
    no_open: Annotated[bool, about("Do not open the browser.")] = False,
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
        terminal.stay()
        with terminal.watching(lambda: None if pace.over else f"first start, compiling: {pace.words}"):
            ready.serve(open_browser=not no_open)


@command("""\
The Blender add-on (poise-blender.zip) connects to it, and so can any program:
it sends its bones and handles as lines of JSON and receives the rotation of
every joint. With --mmcp it speaks the Motion Model Context Protocol over HTTP:
pose keys, places of joints and paths in, a glTF animation out, with the error
of every constraint. Only programs on this machine can connect. Ctrl-C ends it.

Examples:
  poise serve
  poise serve --port 40000
  poise serve --mmcp
""")
def serve(
    *,
    port: Annotated[
        int | None, about("The port; 0 selects a free one. Default: 39550, with --mmcp 39551.")
    ] = None,
    mmcp: Annotated[bool, about("Serve motions over HTTP, by the Motion Model Context Protocol.")] = False,
) -> None:
    """Pose characters of other programs, such as Blender, over a local socket."""
    from poise.apps import serving

    run, given = serving.serve, serving.PORT
    if mmcp:
        try:
            from poise.apps.mmcp import PORT
            from poise.apps.mmcp import serve as run
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                error.name or "motionmcp-sdk", extra="agents", purpose="--mmcp"
            ) from error
        given = PORT

    def listening(port: int) -> None:
        terminal.note(f"listening on {serving.HOST}:{port}")
        terminal.stay()

    with suppress(KeyboardInterrupt):
        run(given if port is None else port, ready=listening)


@command("""\
An agent program starts this command and talks to it over its standard input and
output. In its settings, name the command `poise` with the arguments `mcp` and
the folder. The tools list and describe files, pose a body, make the motion
between keys, retarget, repair, draw and convert. They see no other folder.

Example:
  poise mcp scenes/
""")
def mcp(folder: Annotated[Path, about("The folder whose files agents may read and write.")]) -> None:
    """Serve the tools of Poise to agents, by the Model Context Protocol (MCP)."""
    try:
        from poise.apps.agents import Server
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "mcp", extra="agents", purpose="poise mcp") from error
    server = Server(folder)
    terminal.stay()
    with suppress(KeyboardInterrupt):
        server.run()


@command("""\
The receiver understands the Virtual Motion Capture protocol: Blender and Unreal
with a plug-in, Unity, VSeeFace, Warudo and other VTuber tools. The studio can
send its pose in the same way.

Examples:
  poise stream walk.bvh
  poise stream walk.bvh --loop
  poise stream dance.amc --to 192.168.1.20:39540
""")
def stream(
    clip: Annotated[Path, about("A motion file.")],
    *,
    to: Annotated[str, about("The receiver, HOST:PORT.")] = "127.0.0.1:39539",
    loop: Annotated[bool, about("Repeat until Ctrl+C.")] = False,
    times: Annotated[int, about("How many times to send it.")] = 1,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Send a motion live over OSC, in real time."""
    from poise.apps.streaming import VmcSender, address_from_text
    from poise.apps.streaming import stream as send

    if times < 1:
        raise InvalidValueError(f"a motion is sent once or more often; got {times}")
    host, port = address_from_text(to)
    motion = reading.motion(clip)
    sender = VmcSender(motion.skeleton, host=host, port=port, samples=motion.rotations)
    print(f"{clip.name}: {len(motion)} frames at {motion.fps:g} Hz to {host}:{port}", flush=True)
    with terminal.counting("sending") as report:
        send(motion, sender.send, loops=None if loop else times, progress=report)
    sender.close()
