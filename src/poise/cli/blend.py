"""`poise blend A B --weight 0.3 -o AB`: a style between styles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError

app = App(
    name="blend",
    help_epilogue="""\
Each weight is the share of a model after the first, in order. The first model
has the rest. Models can be of different kinds if they have the same skeleton.
The file holds all of them and works like any other model.

Examples:
  poise blend old.poise proud.poise --weight 0.3 -o between.poise
  poise blend a.poise b.poise c.poise --weight 0.2 --weight 0.5 -o abc.poise
  poise pose between.poise --handle left_hand=0.4,1.3,0.3 -o pose.png
""",
)


@app.default
def blend(
    *models: Annotated[Path, Parameter(help="Two models or more, written by poise learn.")],
    weight: Annotated[
        tuple[float, ...],
        Parameter(help="The share of each model after the first. Default with two models: 0.5."),
    ] = (),
    output: Annotated[Path, Parameter(name=("--output", "-o"), help="The model file to write.")],
) -> None:
    """Blend models into one."""
    if len(models) < 2:
        raise InvalidValueError(
            "name two models or more: poise blend old.poise proud.poise --weight 0.3 -o AB.poise"
        )
    given = weight or ((0.5,) if len(models) == 2 else ())
    if len(given) != len(models) - 1:
        raise InvalidValueError(
            f"{len(models)} models need {len(models) - 1} --weight, one for each after the first; got {len(given)}"
        )
    from poise.apps.outputs import save
    from poise.priors.blend import BlendPrior
    from poise.priors.model_file import load

    blended = BlendPrior([load(model) for model in models], [1.0 - sum(given), *given])
    save(blended, output)
    shares = ", ".join(
        f"{share:.0%} {model.stem}" for share, model in zip(blended.weights, models, strict=True)
    )
    print(f"{output}: {shares}, {terminal.file_size(output)}")
