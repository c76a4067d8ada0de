"""`poise phase CLIPS... -o rhythm.toml`: the rhythm of clips, for inspection and correction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError

app = App(
    name="phase",
    help_epilogue="""\
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
""",
)


@app.default
def phase(
    *clips: Annotated[Path, Parameter(help="Motion files.")],
    output: Annotated[
        Path | None, Parameter(name=("--output", "-o"), help="The rhythm file to write, TOML.")
    ] = None,
    picture: Annotated[Path | None, Parameter(help="Draw phases, contacts and transitions.")] = None,
    rhythm: Annotated[
        Path | None, Parameter(help="Draw and print this file instead of what is found.")
    ] = None,
) -> None:
    """Show the rhythm of clips, and write it to a file that you can correct."""
    if not clips:
        raise InvalidValueError("name the clips to look at: poise phase walk_1.bvh --picture rhythm.png")
    from poise.apps.learning import read_motion
    from poise.formats.files import replacing
    from poise.priors.dynamics.rhythm import read_rhythms, rhythm_of, rhythm_text

    with terminal.working("reading"):
        motions = [read_motion(clip) for clip in clips]
    found = [rhythm_of(motion, name=clip.stem) for motion, clip in zip(motions, clips, strict=True)]
    if rhythm is not None:
        given = read_rhythms(rhythm)
        found = [(given.get(own.name, own), feet) for own, feet in found]
    for own, _ in found:
        sets = ", ".join(f"{len(times)} {name}" for name, times in own.transitions.items())
        turned = own.turns[-1] - own.turns[0]
        print(
            f"{own.name}: {own.activity}, {turned:.2f} turns by {own.source}; transitions: {sets or 'none'}"
        )
    if output is not None:
        with replacing(output, "w") as file:
            file.write(rhythm_text([own for own, _ in found]))
        print(f"{output}: the rhythm of {len(clips)} clips")
    if picture is not None:
        from poise.apps.latent import save_picture
        from poise.pictures.rhythm import draw_rhythms, rhythm_row

        rows = [rhythm_row(own, feet, motion) for (own, feet), motion in zip(found, motions, strict=True)]
        save_picture(draw_rhythms(rows), picture)
        print(f"{picture}: phases, contacts and transitions, {terminal.file_size(picture)}")
