"""`poise stream CLIP --to HOST:PORT`: a motion live over OSC (VMC)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, ReadingOptions
from poise.errors import InvalidValueError

app = App(
    name="stream",
    help_epilogue="""\
The receiver understands the Virtual Motion Capture protocol: Blender and Unreal
with a plug-in, Unity, VSeeFace, Warudo and other VTuber tools. The studio can
send its pose in the same way.

Examples:
  poise stream walk.bvh
  poise stream walk.bvh --loop
  poise stream dance.amc --to 192.168.1.20:39540
""",
)


@app.default
def stream(
    clip: Annotated[Path, Parameter(help="A motion file.")],
    *,
    to: Annotated[str, Parameter(help="The receiver, HOST:PORT.")] = "127.0.0.1:39539",
    loop: Annotated[bool, Parameter(help="Repeat until Ctrl+C.")] = False,
    times: Annotated[int, Parameter(help="How many times to send it.")] = 1,
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
