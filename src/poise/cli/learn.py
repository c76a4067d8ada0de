"""`poise learn OUT CLIPS...`: a model of how someone moves, from their recordings."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import KeepFirst, Units, Up, reading, warn_of
from poise.errors import InvalidValueError

app = App(
    name="learn",
    help_epilogue="""\
Kinds:
  gaussian   clusters of poses, each a Gaussian (seconds for minutes of motion)

Examples:
  poise learn walk.poise --kind gaussian walk_1.bvh walk_2.bvh
  poise learn sport.poise --clusters 400 clips/*.bvh
""",
)


@app.default
def learn(
    output: Annotated[Path, Parameter(help="The model file to write.")],
    *clips: Annotated[Path, Parameter(help="Motion files of one skeleton.")],
    kind: Annotated[str, Parameter(help="What kind of model.")] = "gaussian",
    clusters: Annotated[int, Parameter(help="How many clusters of poses.")] = 100,
    units: Units = None,
    keep_first: KeepFirst = False,
    up: Up = None,
) -> None:
    """Learn a model of poses from motion files."""
    if not clips:
        raise InvalidValueError("name the clips to learn from: poise learn walk.poise walk_1.bvh walk_2.bvh")
    from poise.apps.learning import learn as learn_model
    from poise.apps.learning import read_motion
    from poise.apps.outputs import make_folder
    from poise.priors.model_file import save

    begun = time.perf_counter()
    options = reading(units=units, keep_first=keep_first, up=up)
    with terminal.working("reading"):
        motions = [read_motion(clip, **options) for clip in clips]
    warn_of(*motions)
    with terminal.counting("learning") as report:
        prior = learn_model(
            motions, kind=kind, clusters=clusters, progress=lambda share: report(int(100 * share), 100)
        )
    make_folder(output.parent)
    save(prior, output)
    print(
        f"{output}: {kind}, {len(prior.means)} clusters of {prior.means.shape[1]} rotational freedoms from "
        f"{len(clips)} clips in {time.perf_counter() - begun:.1f} s, {terminal.file_size(output)}"
    )
