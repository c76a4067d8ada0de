"""What to do with learned models: check and describe them, blend, draw and sample their latent spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App

from poise.cli import terminal
from poise.cli.options import ModelFile, Output, Picture, Style, about, command
from poise.errors import InvalidValueError, MissingExtraError, PoiseError

model = App(
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


@model.command
def check(*files: Annotated[Path, about("Model files.")]) -> None:
    """Check that model files are valid and can solve poses."""
    if not files:
        raise InvalidValueError("name at least one model file; see poise model check --help")
    from poise.priors.model_file import load
    from poise.solvers.constraints import Position
    from poise.solvers.solve import solve

    failures = []
    for file in files:
        try:
            prior = load(file)
            skeleton, moving = prior.space.skeleton, len(prior.space.moving)
            solve(prior, [Position(skeleton.names[-1], (0.0, 1.0, 0.0))])
        except PoiseError as error:
            terminal.warn(str(error))
            failures.append(file)
        else:
            print(f"{file}: a sound model of {len(skeleton)} joints, of which {moving} turn")
    if failures:
        raise PoiseError(
            f"{len(failures)} of {len(files)} models are not valid: {', '.join(map(str, failures))}"
        )


@model.command
def show(file: Annotated[Path, about("A model file.")]) -> None:
    """Show the kind of a model, its body, and its training clips with their hashes."""
    from poise.priors.model_file import load

    prior = load(file)
    skeleton, header = prior.space.skeleton, prior.header()
    joints, moving, roles = len(skeleton), len(prior.space.moving), len(skeleton.roles)
    print(f"{file}: {prior.kind}, {prior.summary}, {terminal.file_size(file)}")
    print(f"body: {joints} joints, {moving} moving, {skeleton.height:.2f} m tall, {roles} roles")
    known = getattr(prior, "known_frames", None)
    clips = [(name, digest, "") for name, digest in header.get("clips", ())]
    for name, digest, licence in known.sources if known is not None else clips:
        print(f"  learned from {name}  {digest[:12]}  {licence or 'licence not given'}")
    settings = {name: value for name, value in header.items() if isinstance(value, bool | int | float | str)}
    if settings:
        print("settings: " + ", ".join(f"{name} {value}" for name, value in settings.items()))


@command("""\
Each weight is the share of a model after the first, in order. The first model
has the rest. Models can be of different kinds if they have the same skeleton.
The file holds all of them and works like any other model.

Examples:
  poise blend old.poise proud.poise --weight 0.3 -o between.poise
  poise blend a.poise b.poise c.poise --weight 0.2 --weight 0.5 -o abc.poise
  poise pose between.poise --handle left_hand=0.4,1.3,0.3 -o pose.png
""")
def blend(
    *models: Annotated[Path, about("Two models or more, written by poise learn.")],
    weight: Annotated[
        tuple[float, ...], about("The share of each model after the first. Default with two models: 0.5.")
    ] = (),
    output: ModelFile,
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
    shares = [f"{share:.0%} {model.stem}" for share, model in zip(blended.weights, models, strict=True)]
    print(f"{output}: {', '.join(shares)}, {terminal.file_size(output)}")


@command("""\
Light means likely. A plus is a training pose, blue to green by time, red if it
is active. Orange bodies were recorded, green ones are generated.

Examples:
  poise latent pitch.poise -o map.png
  poise latent pitch.poise -o annealed.png --annealed
  poise latent pitch.poise -o mixture.png --mixture
""")
def latent(
    model: Style,
    *,
    output: Picture,
    annealed: Annotated[
        bool, about("Draw the model, the intermediate one and the smooth one side by side.", negative=())
    ] = False,
    mixture: Annotated[
        bool, about("Compare with a mixture of Gaussians on principal components.", negative=())
    ] = False,
    seed: Annotated[int, about("The random seed of generated poses.")] = 0,
) -> None:
    """Draw the latent space of a style."""
    if annealed and mixture:
        raise InvalidValueError("--annealed and --mixture are two pictures; ask for one at a time")
    from poise.apps.learning import draw_latent, load_style
    from poise.apps.outputs import save_picture

    view = "annealed" if annealed else "mixture" if mixture else "map"
    prior = load_style(model)
    with terminal.working(f"drawing {output.name}"):
        save_picture(draw_latent(prior, view=view, seed=seed), output)
    print(f"{output}: {terminal.file_size(output)}")


@command("""\
Poses come from points of the latent space that are about as likely as the
training poses. A .png is a page of poses; .bvh, .amc and .glb have one pose per
frame.

Examples:
  poise sample pitch.poise -o poses.png
  poise sample pitch.poise --count 30 --seed 4 -o poses.bvh
""")
def sample(
    model: Style,
    *,
    output: Output,
    count: Annotated[int, about("How many poses.")] = 8,
    seed: Annotated[int, about("The random seed.")] = 0,
) -> None:
    """Draw random poses from a style."""
    from poise.apps.learning import load_style, save_samples

    with terminal.working(f"writing {output.name}"):
        save_samples(load_style(model), output, count=count, seed=seed)
    print(f"{output}: {count} poses, {terminal.file_size(output)}")


@command("""\
universal: from any handles to the Gaussian over the pose, its log density and
the gradient of that, on one body. motion: the network of the motion prior, for
one window of frames. docs/onnx.md describes inputs and outputs.

Examples:
  poise export universal --onnx universal.onnx
  poise export universal --onnx me.onnx --onto me.glb
  poise export motion --onnx motion.onnx
""")
def export(
    prior: Annotated[Literal["universal", "motion"], about("Which prior.")],
    *,
    onnx: Annotated[Path, about("The ONNX file to write.")],
    onto: Annotated[Path | None, about("The character whose body the universal prior is for.")] = None,
) -> None:
    """Write a learned prior as an ONNX file, for programs without Python."""
    if onnx.suffix.lower() != ".onnx":
        raise InvalidValueError(f"{onnx.name} is not a name for an ONNX file; call it {onnx.stem}.onnx")
    try:
        from poise.apps.exporting import motion_onnx, universal_onnx
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "onnx", extra="onnx", purpose="poise export") from error
    with terminal.working(f"writing {onnx.name}"):
        if prior == "motion":
            if onto is not None:
                raise InvalidValueError(
                    "the motion prior's network is the same for every body; leave --onto out"
                )
            from poise.priors.motion.network import shipped

            motion_onnx(onnx, shipped())
        else:
            from poise.apps.retargeting import open_character
            from poise.priors.universal.prior import UniversalPrior

            universal_onnx(onnx, None if onto is None else UniversalPrior(open_character(onto).skeleton))
    print(f"{onnx}: {terminal.file_size(onnx)}")
