"""`poise demo`: the whole workflow in a few seconds, without a screen."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal

app = App(
    name="demo",
    help_epilogue="""\
Writes a procedural motion as BVH, GLB and contact sheet, reads the files back
and compares them with the motion. Then poses a body with the universal prior:
the feet stay, the right hand goes up, and the body follows.

Examples:
  poise demo
  poise demo -o /tmp/poise --action walk --style sneaky
""",
)


@app.default
def demo(
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"), help="The folder to write into.")] = Path(
        "out"
    ),
    action: Annotated[str, Parameter(help="The action; poise act --list shows all of them.")] = "throw",
    style: Annotated[str, Parameter(help="The style of the motion.")] = "energetic",
) -> None:
    """Write a motion and a pose, to see that everything works."""
    start = time.perf_counter()
    with terminal.steps() as step:
        step("loading and compiling")
        from poise.apps.demo import demo as run

        done = run(output, action=action, style=style, step=step)
    motion, height = done.motion, done.motion.skeleton.height
    print(
        f"{motion.name}: {motion.seconds:.1f} s, {len(motion)} frames at {motion.fps:g} Hz, {height:.2f} m tall"
    )
    print(f"  acted in {done.acting_seconds:.2f} s")
    for file in done.files:
        checked = (
            "" if file.difference_mm is None else f", read back within {max(file.difference_mm, 1e-4):.1g} mm"
        )
        print(f"  {file.path}  {terminal.size(file.bytes)}, {file.seconds:.2f} s{checked}")
    print(f"posed by three handles: {done.posed}")
    print(f"done in {time.perf_counter() - start:.1f} s; look at {done.files[-1].path} and {done.picture}")
