"""`poise simulate MODEL --from walk --to run -o FILE`: run a motion model by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from poise.cli.options import Onto, Output, draw_way, write_motion

app = App(
    name="simulate",
    help_epilogue="""\
The model starts at a training frame and continues by its dynamics. Activities
are those it was learned from (poise info MODEL names the clips): walk and
run, or names of your own. --to leads it from each activity into the next.
Without --to it continues with the most likely motion.

Examples:
  poise simulate gaits.poise --from run --seconds 6 -o run.gif
  poise simulate gaits.poise --from run --to walk --to run -o there_and_back.bvh
  poise simulate gaits.poise --from walk --pace 0.8 -o slow.glb
  poise simulate gaits.poise --from run --sample --seed 4 \\
      -o run_4.gif --picture path.png
""",
)


@app.default
def simulate(
    model: Annotated[Path, Parameter(help="A model written by poise learn --kind dynamics.")],
    *,
    output: Output,
    from_: Annotated[str | None, Parameter(name="--from", help="The activity to start in.")] = None,
    to: Annotated[tuple[str, ...], Parameter(help="The activity to change to; repeat for more.")] = (),
    seconds: Annotated[float, Parameter(help="How long.")] = 6.0,
    frame: Annotated[int | None, Parameter(help="The training frame to start at.")] = None,
    pace: Annotated[float, Parameter(help="The speed, as a ratio to the recording.")] = 1.0,
    sample: Annotated[bool, Parameter(help="Draw a random motion instead of the mean.")] = False,
    seed: Annotated[int, Parameter(help="The random seed.")] = 0,
    fps: Annotated[float, Parameter(help="Frames a second.")] = 60.0,
    inference: Annotated[
        Literal["guided", "plain"] | None,
        Parameter(
            help="guided: follow the surface and rhythm of the latent space; plain: use only the dynamics."
        ),
    ] = None,
    picture: Annotated[Path | None, Parameter(help="Also draw the path through the latent space.")] = None,
    onto: Onto = None,
) -> None:
    """Let a motion model move on its own."""
    from poise.apps.animate import load_dynamics
    from poise.apps.simulating import simulate

    prior = load_dynamics(model)
    activities = [from_ or prior.frames.activity_names[0], *to] if from_ or to else []
    simulated = simulate(
        prior,
        activities=activities,
        seconds=seconds,
        frame=frame,
        pace=pace,
        seed=seed if sample else None,
        fps=fps,
        inference=inference,
    )
    print(write_motion(simulated.motion, output, onto=onto))
    if picture is not None:
        print(draw_way(prior, simulated.motion.name, simulated.latents, picture))
