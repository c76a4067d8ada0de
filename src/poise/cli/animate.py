"""`poise animate MODEL CONSTRAINTS -o FILE`: a motion from foot contacts, paths of handles and keyframes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput, draw_way, write_motion
from poise.errors import InvalidValueError

app = App(
    name="animate",
    help_epilogue="""\
The constraints are a TOML file: duration, fps, floor, contacts (a handle that
stays in place), paths of handles, keyframes (poses of recordings).
Times are in seconds, places in metres, Y up. docs/dynamics.md
describes the file.

  duration = 3.0
  [[contacts]]
  handle = "left_toes"
  from = 0.2
  to = 0.9
  at = [0.1, 0.02, 0.4]

--contacts-from writes this file from the foot contacts of a recording, for you
to edit. --wider and --longer change all contacts.

Examples:
  poise animate walks.poise steps.toml --contacts-from walk.bvh
  poise animate walks.poise steps.toml -o walk_again.gif
  poise animate walks.poise wide.toml --contacts-from walk.bvh --wider 0.1
  poise animate walks.poise wide.toml -o wide.glb --picture way.png
""",
)


@app.default
def animate(
    model: Annotated[Path, Parameter(help="A model written by poise learn --kind dynamics.")],
    constraints: Annotated[Path, Parameter(help="The constraint file, TOML.")],
    *,
    output: OptionalOutput = None,
    contacts_from: Annotated[
        Path | None, Parameter(help="Write the constraint file, with this clip's foot contacts.")
    ] = None,
    wider: Annotated[
        float, Parameter(help="With --contacts-from: widen steps by this many metres to each side.")
    ] = 0.0,
    longer: Annotated[
        float, Parameter(help="With --contacts-from: scale the stride length by this factor.")
    ] = 1.0,
    seed: Annotated[int, Parameter(help="The random seed of the initial simulations.")] = 0,
    picture: Annotated[Path | None, Parameter(help="Also draw the path through the latent space.")] = None,
    onto: Onto = None,
) -> None:
    """Make a motion from constraints at any frames."""
    if contacts_from is not None:
        _write_contacts(contacts_from, constraints, wider=wider, longer=longer)
    elif output is None:
        raise InvalidValueError("say where to write the motion: -o walk.bvh; or --contacts-from CLIP")
    else:
        _animate(model, constraints, output, seed=seed, picture=picture, onto=onto)


def _write_contacts(clip: Path, path: Path, *, wider: float, longer: float) -> None:
    from poise.apps.animate_script import contacts_text
    from poise.apps.foot_targets import changed, contacts_in
    from poise.apps.learning import read_motion
    from poise.formats.files import replacing

    motion = read_motion(clip)
    contacts = contacts_in(motion)
    if not contacts:
        raise InvalidValueError(f"no foot contact was found in {clip.name}")
    along = motion.root_positions[-1] - motion.root_positions[0]
    contacts = changed(contacts, along=along, wider=wider, longer=longer)
    with replacing(path, "w") as file:
        file.write(contacts_text(contacts, frames=len(motion), fps=motion.fps))
    print(f"{path}: {len(contacts)} foot contacts over {motion.seconds:.2f} s")


def _animate(
    model: Path, constraints: Path, output: Path, *, seed: int, picture: Path | None, onto: Path | None
) -> None:
    from poise.apps.animate import animate, load_dynamics

    prior = load_dynamics(model)
    with terminal.counting("animating") as report:
        found = animate(prior, constraints, seed=seed, progress=report)
    written = write_motion(found.motion, output, onto=onto)
    if found.unmet:
        terminal.warn(
            f"constraints of {len(found.unmet)} frames cannot be met; up to {1000 * found.worst:.0f} mm are missing"
        )
    print(written)
    if picture is not None:
        print(draw_way(prior, "animated", found.latents, picture))
