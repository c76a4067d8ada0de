"""`poise video VIDEO ... -o out.bvh`: a whole body from ordinary videos of a person, without markers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput

app = App(
    name="video",
    help_epilogue="""\
One video gives a body of about the right size; the vertical and the floor are
estimated from the person. Several videos of the same moment, with the file of
their cameras (poise cameras calibrate), give metres. People are found by
networks that Poise ships. Your videos stay on your machine.

Examples:
  poise video walk.mp4 -o walk.bvh --film check.mp4
  poise video walk.mp4 -o walk.glb --height 1.82 --fov 40
  poise video walk.mp4 -o walk.glb --onto me.glb
  poise video left.mp4 right.mp4 --cameras cams.toml \\
      -o walk.bvh --picture check.png
  poise video duet.mp4 --person 2 -o second.bvh
""",
)


@app.default
def video(
    *videos: Annotated[str, Parameter(help="A video or a folder of images; several, one per camera.")],
    output: OptionalOutput = None,
    cameras: Annotated[Path | None, Parameter(help="The file of the cameras, for several videos.")] = None,
    person: Annotated[int | None, Parameter(help="Which person, from 1, if there are several.")] = None,
    height: Annotated[float | None, Parameter(help="The person's height in metres, if known.")] = None,
    fov: Annotated[float | None, Parameter(help="Vertical field of view in degrees, if known.")] = None,
    model: Annotated[Path | None, Parameter(help="A model. Default: the universal prior.")] = None,
    start: Annotated[float, Parameter(help="Start at this second.")] = 0.0,
    end: Annotated[float | None, Parameter(help="End at this second.")] = None,
    sync: Annotated[str, Parameter(help="How to align videos: time, flash, clap or motion.")] = "time",
    film: Annotated[
        Path | None, Parameter(help="Write the video with the skeleton, next to the body (.mp4).")
    ] = None,
    picture: Annotated[Path | None, Parameter(help="Write some frames of it as a picture (.png).")] = None,
    uncertainty: Annotated[
        bool, Parameter(help="Also write the uncertainty of each joint, per frame (.uncertainty.json).")
    ] = False,
    onto: Onto = None,
    json: Annotated[bool, Parameter(help="Print the result as JSON.")] = False,
) -> None:
    """Find a person in videos and write their motion."""
    from poise.apps import video as app
    from poise.apps.outputs import save, save_deviations
    from poise.priors.model_file import load
    from poise.vision.rig import load_rig

    rig = None if cameras is None else load_rig(cameras)
    prior = None if model is None else load(model)
    with terminal.counting("finding people") as count:
        take = app.watch_videos(
            videos, rig=rig, fov=fov, part=app.VideoPart(start, end, sync),
            progress=lambda _what, done, total: count(done, total),
        )  # fmt: skip
    with terminal.counting("solving the body") as count:
        found = app.capture(
            take, person=person, prior=prior, height=height,
            progress=lambda _what, done, total: count(done, total),
        )  # fmt: skip
    files = [] if output is None else [save(found.motion, output, onto=onto)]
    if output is not None and uncertainty:
        files.append(save_deviations(output, found.motion, found.sigmas))
    if film is not None:
        with terminal.counting("drawing") as count:
            files.append(
                app.draw_film(take, found, film, progress=lambda _what, done, total: count(done, total))
            )
    if picture is not None:
        files.append(app.draw_sheet(take, found, picture))
    _say(app.report(found), files, json=json)


def _say(facts: dict[str, object], files: list[Path], *, json: bool) -> None:
    if json:
        terminal.print_json(facts)
        return
    uncertainty = facts["uncertainty_cm"]
    assert isinstance(uncertainty, dict)
    print(f"{facts['frames']} frames at {facts['fps']:g} a second; a body {facts['height_m']} m tall")
    terminal.print_table(
        ("joint", "uncertain by"), [(name, f"{value} cm") for name, value in uncertainty.items()]
    )
    for file in files:
        print(f"{file}: {terminal.file_size(file)}")
