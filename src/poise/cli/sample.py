"""`poise sample MODEL -o poses.png`: random poses of a style."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Output

app = App(
    name="sample",
    help_epilogue="""\
Poses come from points of the latent space that are about as likely as the
training poses. A .png is a page of poses; .bvh, .amc and .glb have one pose per
frame.

Examples:
  poise sample pitch.poise -o poses.png
  poise sample pitch.poise --count 30 --seed 4 -o poses.bvh
""",
)


@app.default
def sample(
    model: Annotated[Path, Parameter(help="A style written by poise learn --kind style.")],
    *,
    output: Output,
    count: Annotated[int, Parameter(help="How many poses.")] = 8,
    seed: Annotated[int, Parameter(help="The random seed.")] = 0,
) -> None:
    """Draw random poses from a style."""
    from poise.apps.latent import load_style, sample_poses, save_samples

    poses = sample_poses(load_style(model), count=count, seed=seed)
    with terminal.working(f"writing {output.name}"):
        save_samples(poses, output)
    print(f"{output}: {count} poses, {terminal.file_size(output)}")
