"""`poise model check FILE...` and `poise model show FILE`: whether model files are sound, and what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError, PoiseError

app = App(
    name="model",
    help_epilogue="""\
A model from somebody else may be damaged or malicious. Loading it runs no code
from it and checks every number. This command reports the result.

Examples:
  poise model check walk.poise
  poise model check models/*.poise
  poise model show walk.poise
""",
)


@app.command
def check(*files: Annotated[Path, Parameter(help="Model files.")]) -> None:
    """Check that model files are valid and can solve poses."""
    if not files:
        raise InvalidValueError("name at least one model file; see poise model check --help")
    failures = [file for file in files if not _is_sound(file)]
    if failures:
        raise PoiseError(
            f"{len(failures)} of {len(files)} models are not valid: {', '.join(map(str, failures))}"
        )


def _is_sound(file: Path) -> bool:
    """Load a model and solve a pose with it; return the result in words."""
    from poise.priors.model_file import load
    from poise.solvers.constraints import Position
    from poise.solvers.solve import solve

    try:
        prior = load(file)
        skeleton, moving = prior.space.skeleton, len(prior.space.moving)
        solve(prior, [Position(skeleton.names[-1], (0.0, 1.0, 0.0))])
    except PoiseError as error:
        terminal.warn(str(error))
        return False
    print(f"{file}: a sound model of {len(skeleton)} joints, of which {moving} turn")
    return True


@app.command
def show(file: Annotated[Path, Parameter(help="A model file.")]) -> None:
    """Show the kind of a model, its body, and its training clips with their hashes."""
    from poise.priors.model_file import load

    prior = load(file)
    skeleton, header = prior.space.skeleton, prior.header()
    print(f"{file}: {prior.kind}, {prior.summary}, {terminal.file_size(file)}")
    moving = len(prior.space.moving)
    print(
        f"body: {len(skeleton)} joints, {moving} moving, {skeleton.height:.2f} m tall, {len(skeleton.roles)} roles"
    )
    known = getattr(prior, "known_frames", None)
    clips = [(name, digest, "") for name, digest in header.get("clips", ())]
    for name, digest, licence in known.sources if known is not None else clips:
        print(f"  learned from {name}  {digest[:12]}  {licence or 'licence not given'}")
    settings = {name: value for name, value in header.items() if isinstance(value, bool | int | float | str)}
    if settings:
        print("settings: " + ", ".join(f"{name} {value}" for name, value in settings.items()))
