"""`poise learn OUT CLIPS...`: a model of how someone moves, from their recordings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import KeepFirst, Units, Up, reading, warn_of
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from poise.apps.rhythm import Told
    from poise.motion.motion import Motion

app = App(
    name="learn",
    help_epilogue="""\
Kinds:
  gaussian   clusters of poses, each a Gaussian (seconds for minutes of motion)
  style      one way of moving as a latent space that can be looked at and
             blended; a picture of it is written beside the model
  local      the examples themselves; local models are made for the handles or
             markers at hand (what poise perform uses)
  dynamics   a latent space of motion, such as a cylinder of walks and runs,
             for poise simulate and poise animate; drawn likewise

The latent space of a motion model is described in a line: a model's name
(gplvm, gpdm, back-constrained, locally-linear, topology, transitions,
hybrid) or parts joined by +, such as cylinder, torus, or
"circle(phase) by back-constraints + smooth style axis by local linearity".

Kernels of a style: rbf, matern32, matern52, rational-quadratic, rbf+linear,
linear, periodic, or auto for the one that suits poses left out best.

Examples:
  poise learn walk.poise --kind gaussian walk_1.bvh walk_2.bvh
  poise learn sport.poise --clusters 400 clips/*.bvh
  poise learn pitch.poise --kind style pitch.bvh
  poise learn pitch.poise --kind style pitch.bvh --dimensions 3 --active 100
  poise learn gaits.poise --kind dynamics walk_1.bvh walk_2.bvh run_1.bvh run_2.bvh
  poise learn gaits.poise --kind dynamics --topology cylinder --transitions none *.bvh
  poise phase *.bvh -o rhythm.toml
  poise learn gaits.poise --kind dynamics --rhythm rhythm.toml *.bvh
""",
)


@app.default
def learn(
    output: Annotated[Path, Parameter(help="The model file to write.")],
    *clips: Annotated[Path, Parameter(help="Motion files of one skeleton.")],
    kind: Annotated[
        str, Parameter(help="What kind of model: gaussian, style, local or dynamics.")
    ] = "gaussian",
    clusters: Annotated[int | None, Parameter(help="Of a gaussian model: how many clusters; 100.")] = None,
    dimensions: Annotated[
        int | None, Parameter(help="Of a style's latent space; chosen by the data if not given.")
    ] = None,
    active: Annotated[
        int | None, Parameter(help="Poses that a style keeps; chosen by the data if not given.")
    ] = None,
    kernel: Annotated[str | None, Parameter(help="Of a style: rbf, another, or auto.")] = None,
    algorithm: Annotated[str | None, Parameter(help="Of a style: heuristic or full.")] = None,
    topology: Annotated[
        str | None, Parameter(help="Of a motion model: how its latent space is laid out; transitions.")
    ] = None,
    transitions: Annotated[
        str | None, Parameter(help="Of a motion model: auto, where feet land; or none.")
    ] = None,
    activities: Annotated[
        str | None, Parameter(help="What each clip does: walk,walk,run; told by the feet if not given.")
    ] = None,
    rhythm: Annotated[
        Path | None,
        Parameter(
            help="Phases, activities and transitions, as poise phase writes them and you corrected them."
        ),
    ] = None,
    phase: Annotated[
        str | None,
        Parameter(
            help="Of a motion model: found (or given), or learned along with it; as the topology says."
        ),
    ] = None,
    picture: Annotated[
        Path | None, Parameter(help="Where a latent space is drawn; OUT with .png if not given.")
    ] = None,
    curve: Annotated[Path | None, Parameter(help="Where a style's learning curve is drawn.")] = None,
    units: Units = None,
    keep_first: KeepFirst = False,
    up: Up = None,
) -> None:
    """Learn a model of poses from motion files."""
    if not clips:
        raise InvalidValueError("name the clips to learn from: poise learn walk.poise walk_1.bvh walk_2.bvh")
    from poise.apps import learning
    from poise.formats.files import make_folder
    from poise.priors.model_file import save

    begun = time.perf_counter()
    options = reading(units=units, keep_first=keep_first, up=up)
    with terminal.working("reading"):
        motions = [learning.read_motion(clip, **options) for clip in clips]
    warn_of(*motions)
    with terminal.sharing("learning") as progress:
        prior = learning.learn(
            motions, kind=kind, clusters=clusters, dimensions=dimensions, active=active, kernel=kernel,
            algorithm=algorithm, topology=topology, transitions=transitions, activities=_names(activities),
            rhythm=_told(rhythm, clips, motions), phase=phase,
            progress=progress,
        )  # fmt: skip
    seconds = time.perf_counter() - begun
    make_folder(output.parent)
    save(prior, output)
    print(
        f"{output}: {learning.summary(prior)}, from {len(clips)} clips in {seconds:.1f} s, "
        f"{terminal.file_size(output)}"
    )
    if kind in (learning.STYLE, learning.DYNAMICS):
        _draw(output, picture or output.with_suffix(".png"))
        if curve is not None:
            _draw(output, curve, view="curve")
    elif drawing := picture or curve:
        terminal.warn(f"{drawing} is not drawn: only a style or a motion model has a latent space")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _told(rhythm: Path | None, clips: Sequence[Path], motions: Sequence[Motion]) -> Told | None:
    if rhythm is None:
        return None
    from poise.apps.rhythm import read_rhythms, told_by

    return told_by(read_rhythms(rhythm), [clip.stem for clip in clips], motions)


def _draw(model: Path, picture: Path, *, view: str = "map") -> None:
    from poise.apps.latent import draw_latent, load_style, save_picture

    with terminal.working(f"drawing {picture.name}"):
        save_picture(draw_latent(load_style(model), view=view), picture)
    print(
        f"{picture}: its {'learning curve' if view == 'curve' else 'latent space'}, {terminal.file_size(picture)}"
    )
