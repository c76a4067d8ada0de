"""`poise learn OUT CLIPS...`: a model of how someone moves, from their recordings."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, Onto, ReadingOptions, flags_of, warn_of
from poise.errors import InvalidValueError, MissingExtraError
from poise.priors import registry

KINDS = registry.learnable()
Flags = flags_of({name: kind.Options for name, kind in KINDS.items()})
Options = Annotated[Flags, Parameter(name="*")]  # type: ignore[valid-type]


def _kinds() -> str:
    lines = [f"{name:<10} {kind.about}" for name, kind in KINDS.items()]
    return "\n".join(
        textwrap.fill(line, 79, initial_indent="  ", subsequent_indent=13 * " ") for line in lines
    )


app = App(
    name="learn",
    help_epilogue=f"""\
Kinds:
{_kinds()}

--topology sets the latent space of a dynamics model: a model's name (gplvm,
gpdm, back-constrained, locally-linear, topology, transitions, hybrid), or
parts joined by +, such as cylinder, torus, or
"circle(phase) by back-constraints + smooth style axis by local linearity".

Kernels of a style: rbf, laplacian, matern32, matern52, rational-quadratic,
rbf+linear, linear, periodic; auto takes the one that predicts held-out poses
best.

Examples:
  poise learn walk.poise --kind gaussian walk_1.bvh walk_2.bvh
  poise learn sport.poise --clusters 400 clips/*.bvh
  poise learn pitch.poise --kind style pitch.bvh
  poise learn pitch.poise --kind style pitch.bvh --dimensions 3 --active 100
  poise learn gaits.poise --kind dynamics walk_1.bvh walk_2.bvh run.bvh
  poise learn gaits.poise --kind dynamics *.bvh \\
      --topology cylinder --transitions none
  poise phase *.bvh -o rhythm.toml
  poise learn gaits.poise --kind dynamics --rhythm rhythm.toml *.bvh
""",
)


@app.default
def learn(
    output: Annotated[Path, Parameter(help="The model file to write.")],
    *clips: Annotated[Path, Parameter(help="Motion files of one skeleton.")],
    kind: Annotated[str, Parameter(help=f"What kind of model: {', '.join(KINDS)}.")] = "gaussian",
    options: Options = Flags(),  # noqa: B008 - an empty, frozen one
    picture: Annotated[
        Path | None, Parameter(help="The picture of the latent space. Default: OUT with .png.")
    ] = None,
    curve: Annotated[Path | None, Parameter(help="The picture of a style's learning curve.")] = None,
    licence: Annotated[
        str, Parameter(help="The licence of the clips. The model and its outputs name it.")
    ] = "",
    reading: ReadingOptions = AS_FOUND,
    onto: Onto = None,
) -> None:
    """Learn a model of poses from motion files."""
    if not clips:
        raise InvalidValueError("name the clips to learn from: poise learn walk.poise walk_1.bvh walk_2.bvh")
    from poise.apps.learning import calibrated, read_motion
    from poise.apps.outputs import check_model_name
    from poise.formats import each_animation
    from poise.formats.files import make_folder
    from poise.priors.model_file import save

    check_model_name(output)
    begun = time.perf_counter()
    settings = registry.options_for(kind, vars(options))
    with terminal.working("reading"):
        motions = [read_motion(part, **reading.given) for clip in clips for part in each_animation(clip)]
    warn_of(*motions)
    if onto is not None:
        from poise.apps.retargeting import retarget

        with terminal.counting(f"carrying onto {onto.name}") as report:
            motions = [retarget(motion, onto, progress=report) for motion in motions]
    with terminal.sharing("learning") as progress:
        prior = calibrated(motions, kind, settings, licence=licence, progress=progress)
    seconds = time.perf_counter() - begun
    make_folder(output.parent)
    save(prior, output)
    print(
        f"{output}: {kind}, {prior.summary}, from {len(motions)} clips in {seconds:.1f} s, "
        f"{terminal.file_size(output)}"
    )
    if hasattr(prior, "pose_at"):
        try:
            _draw(output, picture or output.with_suffix(".png"))
        except MissingExtraError as error:
            if picture:
                raise
            terminal.warn(f"its latent space is not drawn: {error}")
        if curve is not None:
            _draw(output, curve, view="curve")
    elif drawing := picture or curve:
        terminal.warn(f"{drawing} is not drawn: only a style or a motion model has a latent space")


def _draw(model: Path, picture: Path, *, view: str = "map") -> None:
    from poise.apps.latent import draw_latent, load_style, save_picture

    with terminal.working(f"drawing {picture.name}"):
        save_picture(draw_latent(load_style(model), view=view), picture)
    print(
        f"{picture}: its {'learning curve' if view == 'curve' else 'latent space'}, {terminal.file_size(picture)}"
    )
