"""`poise learn OUT CLIPS...`: a model of how someone moves; `poise phase`: the rhythm of clips, for inspection."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, Onto, ReadingOptions, about, command, flags_of, warn_of
from poise.errors import InvalidValueError, MissingExtraError
from poise.priors import registry

KINDS = registry.learnable()
Flags = flags_of({name: kind.Options for name, kind in KINDS.items()})
Options = Annotated[Flags, Parameter(name="*")]  # type: ignore[valid-type]


_KINDS = "\n".join(
    textwrap.fill(f"{name:<10} {kind.about}", 79, initial_indent="  ", subsequent_indent=13 * " ")
    for name, kind in KINDS.items()
)


@command(f"""\
Kinds:
{_KINDS}

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
""")
def learn(
    output: Annotated[Path, about("The model file to write.")],
    *clips: Annotated[Path, about("Motion files of one skeleton.")],
    kind: Annotated[str, about(f"What kind of model: {', '.join(KINDS)}.")] = "gaussian",
    options: Options = Flags(),  # noqa: B008 - an empty, frozen one
    picture: Annotated[Path | None, about("The picture of the latent space. Default: OUT with .png.")] = None,
    curve: Annotated[Path | None, about("The picture of a style's learning curve.")] = None,
    licence: Annotated[str, about("The licence of the clips. The model and its outputs name it.")] = "",
    reading: ReadingOptions = AS_FOUND,
    onto: Onto = None,
) -> None:
    """Learn a model of poses from motion files."""
    if not clips:
        raise InvalidValueError("name the clips to learn from: poise learn walk.poise walk_1.bvh walk_2.bvh")
    from poise.apps.learning import calibrated, draw_latent, load_style
    from poise.apps.outputs import check_model_name, save_picture
    from poise.formats import each_animation, read_motion
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
    source = f"from {len(motions)} clips in {seconds:.1f} s"
    print(f"{output}: {kind}, {prior.summary}, {source}, {terminal.file_size(output)}")
    if not hasattr(prior, "pose_at"):
        if drawing := picture or curve:
            terminal.warn(f"{drawing} is not drawn: only a style or a motion model has a latent space")
        return
    views = [
        ("map", "latent space", picture or output.with_suffix(".png")),
        ("curve", "learning curve", curve),
    ]
    for view, what, drawing in views:
        if drawing is None:
            continue
        try:
            with terminal.working(f"drawing {drawing.name}"):
                save_picture(draw_latent(load_style(output), view=view), drawing)
            print(f"{drawing}: its {what}, {terminal.file_size(drawing)}")
        except MissingExtraError as error:
            if drawing in (picture, curve):
                raise
            terminal.warn(f"its latent space is not drawn: {error}")


@command("""\
For every clip this finds the activity (walk, run or other), the phase, and the
frames at which a foot lands. The left foot lands at whole turns of the phase,
the right foot at half turns; other motions get their strongest rhythm. One gait
may lead into another where a foot lands. The result is printed, drawn with
--picture, and written with -o as a file to correct by hand:

  [clips."walk_1"]
  activity = "walk"
  phase = [[0.12, 0.0], [0.63, 0.5], [1.15, 1.0]]   # seconds, turns
  transitions = { left = [0.12, 1.15], right = [0.63] }

`poise learn --kind dynamics --rhythm FILE` reads it. A key posture is a pair
of a time and a turn. Sets of transitions may have any names.

Examples:
  poise phase walk_1.bvh run_1.bvh --picture rhythm.png
  poise phase *.bvh -o rhythm.toml
  poise learn gaits.poise --kind dynamics --rhythm rhythm.toml *.bvh
""")
def phase(
    *clips: Annotated[Path, about("Motion files.")],
    output: Annotated[Path | None, about("The rhythm file to write, TOML.", "--output", "-o")] = None,
    picture: Annotated[Path | None, about("Draw phases, contacts and transitions.")] = None,
    rhythm: Annotated[Path | None, about("Draw and print this file instead of what is found.")] = None,
) -> None:
    """Show the rhythm of clips, and write it to a file that you can correct."""
    if not clips:
        raise InvalidValueError("name the clips to look at: poise phase walk_1.bvh --picture rhythm.png")
    from poise.formats import read_motion
    from poise.formats.files import replacing
    from poise.priors.dynamics.sequences import read_rhythms, rhythm_of, rhythm_text

    with terminal.working("reading"):
        motions = [read_motion(clip) for clip in clips]
    found = [rhythm_of(motion, name=clip.stem) for motion, clip in zip(motions, clips, strict=True)]
    if rhythm is not None:
        given = read_rhythms(rhythm)
        found = [(given.get(own.name, own), feet) for own, feet in found]
    for own, _ in found:
        sets = ", ".join(f"{len(times)} {name}" for name, times in own.transitions.items())
        turned = f"{own.turns[-1] - own.turns[0]:.2f} turns by {own.source}"
        print(f"{own.name}: {own.activity}, {turned}; transitions: {sets or 'none'}")
    if output is not None:
        with replacing(output, "w") as file:
            file.write(rhythm_text([own for own, _ in found]))
        print(f"{output}: the rhythm of {len(clips)} clips")
    if picture is not None:
        from poise.apps.outputs import save_picture
        from poise.pictures.latent_paths import draw_rhythms, rhythm_row

        rows = [rhythm_row(own, feet, motion) for (own, feet), motion in zip(found, motions, strict=True)]
        save_picture(draw_rhythms(rows), picture)
        print(f"{picture}: phases, contacts and transitions, {terminal.file_size(picture)}")
