"""Learn a motion model: L-BFGS over kernels and latent points, exact for few frames, with inducing frames for many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.gp.covariance import Kernel
from poise.gp.descent import descend
from poise.gp.sparse import sparse_loss
from poise.priors.dynamics.flow import Flow, Steps, flow_loss
from poise.priors.dynamics.layout import Layout
from poise.priors.dynamics.objective import FIRST_FLOW, FLOW_BOUNDS, KIND, MotionLoss
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.structure import Structure
from poise.priors.dynamics.surface import Surface, cyclic_surface
from poise.skeleton.skeleton import read_only
from poise.types import Array, ShareProgress

STEPS = 200  # L-BFGS steps
SPARSE_STEPS = 400  # L-BFGS steps with inducing frames: more coordinates, but cheaper steps
BALANCE = 2.0  # weight of the priors on x against the likelihood of poses (Urtasun et al. 2006)
EXACT_FRAMES = 500  # largest number of frames learned exactly
INDUCING = 250  # inducing frames of a larger set
AFTERWARDS = 60  # L-BFGS steps for the dynamics of a model that was learned without any


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned motion model: the process that predicts poses, and the dynamics between latent points."""

    sequences: Sequences
    structure: Structure
    kernel: Kernel
    scales: Float[Array, "varying"]
    latents: Float[Array, "frames latent"]
    active: Int[Array, "active"]
    outputs: Float[Array, "active varying"]  # such that f(x) = k(x) K^-1 outputs over the active frames
    flows: tuple[Flow, ...]
    curve: Float[Array, "steps"]

    def __post_init__(self) -> None:
        for name in ("scales", "latents", "outputs", "curve"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


def learn_motion(
    sequences: Sequences,
    structure: Structure,
    *,
    steps: int | None = None,
    inducing: int | None = None,
    balance: float = BALANCE,
    scaling: Literal["one", "each"] = "each",
    progress: ShareProgress = lambda _: None,
) -> Learned:
    """Learn a motion model; with `inducing` inducing frames if given, or by default if there are many frames.

    Features are weighted by how well the model explains each (`scaling` "each", the W of Wang et al. 2008), or equally
    ("one").
    """
    _check(sequences, structure, inducing)
    balance = 1.0 if structure.published else balance
    loss = MotionLoss(Layout(structure, sequences), _inducing_frames(sequences, inducing), scaling, balance)
    starts = loss.starts()
    steps = steps or (STEPS if loss.inducing is None else SPARSE_STEPS)

    def descended(number: int) -> tuple[Float[Array, "unknowns"], Float[Array, "steps"]]:
        def so_far(done: float) -> None:
            progress(0.95 * (number + done) / len(starts))

        return descend(loss, starts[number], bounds=loss.bounds(), steps=steps, progress=so_far)

    learned = _learned(loss, *min(map(descended, range(len(starts))), key=lambda found: found[1][-1]))
    progress(1.0)
    return learned


def _learned(loss: MotionLoss, unknowns: Float[Array, "unknowns"], curve: Float[Array, "steps"]) -> Learned:
    found = loss.apart(unknowns)
    latents = loss.layout.latents(found.parameters)
    sequences = replace(loss.layout.sequences, phases=loss.layout.phases(found.parameters))
    _, _, _, scales = loss.pose_loss(latents, found.kernel)
    active = np.arange(len(latents)) if loss.inducing is None else loss.inducing
    phases = np.column_stack(
        [np.empty((len(latents), 0)), *(sequences.phases[name] for name in loss.layout.structure.phases)]
    )
    surface = cyclic_surface(loss.layout.structure, latents, sequences.phases)
    kernels = found.flows or tuple(_flow_afterwards(latents, steps) for steps in loss.steps)
    return Learned(
        sequences,
        loss.layout.structure,
        found.kernel,
        scales,
        latents,
        active,
        _outputs(sequences.centred, latents, loss.inducing, found.kernel),
        tuple(
            _flow(name, latents, steps, kernel, phases, surface, loss.inducing_steps(steps))
            for name, steps, kernel in zip(sequences.activity_names, loss.steps, kernels, strict=True)
        ),
        curve,
    )


def _outputs(
    outputs: Float[Array, "frames outputs"],
    inputs: Float[Array, "frames inputs"],
    chosen: Int[Array, "chosen"] | None,
    kernel: Kernel,
) -> Float[Array, "chosen outputs"]:
    """Outputs at the inducing inputs for which the process predicts as it would with all frames."""
    if chosen is None:
        return outputs
    weights = sparse_loss(outputs, inputs, inputs[chosen], kernel, scaling="none").weights
    return np.asarray(kernel.noisy(inputs[chosen]) @ weights)


def _flow(
    name: str,
    latents: Float[Array, "frames latent"],
    steps: Steps,
    kernel: Kernel,
    phases: Float[Array, "frames phases"],
    surface: Surface,
    chosen: Int[Array, "chosen"] | None,
) -> Flow:
    advances = phases[steps.after] - phases[steps.now]
    beat = advances.mean(axis=0)
    flow = Flow(
        name,
        kernel,
        steps.inputs(latents),
        steps.outputs(latents),
        steps.order,
        steps.pace,
        steps.turn,
        steps.homes(latents),
        beat,
        advances - beat,
    ).about(surface)
    if chosen is None:
        return flow
    stated = _outputs(np.hstack([flow.outputs, flow.advances]), flow.inputs, chosen, kernel)
    outputs, advances = np.split(stated, [latents.shape[1]], axis=1)
    return replace(flow, inputs=flow.inputs[chosen], outputs=outputs, advances=advances)


def _flow_afterwards(latents: Float[Array, "frames latent"], steps: Steps) -> Kernel:
    """Fit the kernel of the dynamics to points that were learned without dynamics."""

    def loss_and_gradient(logs: Array) -> tuple[float, Array]:
        value, in_logs, _ = flow_loss(latents, steps, Kernel.of(KIND, logs))
        return value, in_logs

    found, _ = descend(loss_and_gradient, np.log(FIRST_FLOW), bounds=FLOW_BOUNDS, steps=AFTERWARDS, memory=10)
    return Kernel.of(KIND, found)


def _inducing_frames(sequences: Sequences, wanted: int | None) -> Int[Array, "inducing"] | None:
    """Evenly spaced frames of all sequences, or None if every frame is used."""
    count = len(sequences.y)
    if wanted is None and count <= EXACT_FRAMES:
        return None
    most = min(wanted or INDUCING, count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def _check(sequences: Sequences, structure: Structure, inducing: int | None) -> None:
    if structure.uses_transitions and not any(len(points) for points in sequences.transitions):
        raise InvalidValueError(
            "these clips have no transition points (no foot landings); give transitions, or learn without them"
        )
    for name in structure.phases:
        if name in sequences.phases and np.ptp(sequences.phases[name]) < np.pi:
            raise InvalidValueError(
                f"no rhythm was found for the phase {name!r}; a circle needs cyclic motions or given phases"
            )
    if inducing is not None and inducing < 2:
        raise InvalidValueError(f"at least two inducing frames are needed; got {inducing}")
