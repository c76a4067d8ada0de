"""`poise latent MODEL -o map.png`: look at the latent space of a style."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Picture
from poise.errors import InvalidValueError

app = App(
    name="latent",
    help_epilogue="""\
Light means likely. A plus is a training pose, blue to green by time, red if it
is active. Orange bodies were recorded, green ones are generated.

Examples:
  poise latent pitch.poise -o map.png
  poise latent pitch.poise -o annealed.png --annealed
  poise latent pitch.poise -o mixture.png --mixture
""",
)


@app.default
def latent(
    model: Annotated[Path, Parameter(help="A style written by poise learn --kind style.")],
    *,
    output: Picture,
    annealed: Annotated[
        bool,
        Parameter(help="Draw the model, the intermediate one and the smooth one side by side.", negative=()),
    ] = False,
    mixture: Annotated[
        bool, Parameter(help="Compare with a mixture of Gaussians on principal components.", negative=())
    ] = False,
    seed: Annotated[int, Parameter(help="The random seed of generated poses.")] = 0,
) -> None:
    """Draw the latent space of a style."""
    if annealed and mixture:
        raise InvalidValueError("--annealed and --mixture are two pictures; ask for one at a time")
    from poise.apps.latent import draw_latent, load_style, save_picture

    view = "annealed" if annealed else "mixture" if mixture else "map"
    prior = load_style(model)
    with terminal.working(f"drawing {output.name}"):
        save_picture(draw_latent(prior, view=view, seed=seed), output)
    print(f"{output}: {terminal.file_size(output)}")
