"""Learn a motion model: its objective, and L-BFGS over kernels and latent points.

Learn a motion model: L-BFGS over kernels and latent points, exact for few frames, with inducing frames for many.

The objective of a motion model over kernels and latent points: poses, dynamics, local linearity (Eqs. 1, 2, 5).

The latent space's unit is the width of the pose kernel (its signal variance and inverse width are one; the features'
scales absorb the rest). Without a fixed unit the dynamics' and locally linear priors would grow without bound as all
points shrink together. Every gradient is a hand-written reverse pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.gp.covariance import Kernel
from poise.gp.process import descend, process_loss, sparse_loss
from poise.priors.dynamics.flow import Flow, Steps, Surface, cyclic_surface, flow_loss, steps_of
from poise.priors.dynamics.layout import Layout
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.structure import Structure
from poise.skeleton.skeleton import read_only
from poise.types import Array, ShareProgress

# --- the objective ----------------------------------------------------------------------------------------------------


KIND = "rbf"
LOCAL_SHARE = 16.0  # weight of local linearity relative to the dynamics: with less, transitions stay apart
FIRST_NOISE = 0.05  # initial noise of the pose kernel
FIRST_FLOW = (1.0, 1e3, 0.5)  # initial alpha, beta, gamma of every dynamics

# Of logarithms: noise neither vanishes nor hides the motion, and the dynamics' width is about that of the pose kernel.
NOISE_BOUNDS = (np.log(4.0), np.log(1e4))
FLOW_BOUNDS = [(-5.0, 7.0), (np.log(30.0), np.log(1e4)), (np.log(0.02), np.log(1.0))]


@dataclass(frozen=True, eq=False)
class LearnedUnknowns:
    """The learned parameters by name."""

    kernel: Kernel
    flows: tuple[Kernel, ...]
    parameters: Float[Array, "parameters"]


@dataclass(frozen=True, eq=False)
class MotionLoss:
    """The negative log-posterior of a layout; with inducing frames if given."""

    layout: Layout
    inducing: Int[Array, "inducing"] | None = None
    scaling: Literal["one", "each"] = "each"
    balance: float = 1.0  # weight of the priors on x (Urtasun et al. 2006)

    @cached_property
    def steps(self) -> tuple[Steps, ...]:
        """The steps of every activity."""
        sequences, order = self.layout.sequences, self.layout.structure.order
        start = self.layout.latents(self.layout.starts[0])
        moves = np.diff(start, axis=0)[np.diff(sequences.sequence_of) == 0]
        pace = float(
            np.sqrt(np.square(start).sum() / len(start) / max(np.square(moves).sum() / len(moves), 1e-12))
        )
        return tuple(self._steps_in(name, order, pace) for name in sequences.activity_names)

    def _steps_in(self, activity: str, order: int, pace: float) -> Steps:
        """The steps of one activity; on circles the mean function rotates at the activity's pace."""
        sequences, structure = self.layout.sequences, self.layout.structure
        doing = zip(sequences.bounds(), sequences.activities, strict=True)
        bounds = [bound for bound, name in doing if name == activity]
        size = len(structure.dimensions)
        turn, homing = np.zeros((size, size)), np.zeros(size)
        phases = () if structure.published else structure.phases  # Eq. 2 has no mean function
        if phases:
            homing[:] = [not each.part for each in structure.dimensions]
        for source in phases:
            radians = sequences.phases[source]
            gone = sum(radians[end - 1] - radians[first] for first, end in bounds)
            angle = gone / sum(end - 1 - first for first, end in bounds)
            rows = structure.places_of(source)
            sine, cosine = np.sin(angle), np.cos(angle)
            turn[np.ix_(rows, rows)] = [[cosine, -sine], [sine, cosine]]
        return steps_of(bounds, order=order, pace=pace, turn=turn, homing=homing)

    def starts(self) -> list[Float[Array, "unknowns"]]:
        """Initial values of all unknowns: logarithms first, then the layout's parameters."""
        flows = np.log(FIRST_FLOW * len(self._flow_steps))
        return [np.concatenate([[-np.log(FIRST_NOISE)], flows, own]) for own in self.layout.starts]

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Bounds of all unknowns: noise neither vanishes nor hides the motion."""
        count = sum(self.layout.sizes)
        return [NOISE_BOUNDS, *FLOW_BOUNDS * len(self._flow_steps), *[(None, None)] * count]

    def apart(self, unknowns: Float[Array, "unknowns"]) -> LearnedUnknowns:
        """The unknowns by name."""
        logs = unknowns[1 : 1 + 3 * len(self._flow_steps)].reshape(-1, 3)
        kernel = Kernel.of(KIND, np.array([0.0, unknowns[0], 0.0]))
        return LearnedUnknowns(kernel, tuple(Kernel.of(KIND, own) for own in logs), unknowns[1 + logs.size :])

    def __call__(self, unknowns: Float[Array, "unknowns"]) -> tuple[float, Float[Array, "unknowns"]]:
        """The loss and its gradient."""
        found = self.apart(unknowns)
        latents = self.layout.latents(found.parameters)
        value, in_noise, in_latents, _ = self.pose_loss(latents, found.kernel)
        own, gradient = self.layout.local_loss(latents)
        local = self.balance if self.layout.structure.published else LOCAL_SHARE * self.balance
        value, in_latents = value + local * own, in_latents + local * gradient
        in_flows: list[Array] = []
        for steps, kernel in zip(self._flow_steps, found.flows, strict=True):
            own, in_logs, gradient = flow_loss(latents, steps, kernel, inducing=self.inducing_steps(steps))
            value += self.balance * own
            in_flows.append(self.balance * in_logs)
            in_latents += self.balance * gradient
        own, gradient = self._place_loss(latents)
        value, in_latents = value + own, in_latents + gradient
        in_parameters = self.layout.spread_back(found.parameters, in_latents)
        own, gradient = self.layout.phase_loss(found.parameters)
        return value + own, np.concatenate([[in_noise], *in_flows, in_parameters + gradient])

    def pose_loss(
        self, latents: Float[Array, "frames latent"], kernel: Kernel
    ) -> tuple[float, float, Float[Array, "frames latent"], Float[Array, "features"]]:
        """-ln p(Y | X) at the best scales (Eq. 1), its gradients by ln beta and X, and the features' scales."""
        sequences = self.layout.sequences
        loss = process_loss(sequences.scaled, latents, kernel, scaling=self.scaling, inducing=self.inducing)
        scales = loss.scales / sequences.centred.std(axis=0)
        return loss.value + float(kernel.logs[1]), float(loss.in_logs[1]) + 1.0, loss.in_inputs, scales

    def inducing_steps(self, steps: Steps) -> Int[Array, "chosen"] | None:
        """Indices of the steps that start at an inducing frame, if those are given."""
        return None if self.inducing is None else np.flatnonzero(np.isin(steps.now, self.inducing))

    @property
    def _flow_steps(self) -> tuple[Steps, ...]:
        return self.steps if self.layout.structure.dynamics else ()

    def _place_loss(
        self, latents: Float[Array, "frames latent"]
    ) -> tuple[float, Float[Array, "frames latent"]]:
        """|x|^2 / 2 of the points that no dynamics predicts; a model without dynamics has no prior on x (Eq. 1)."""
        gradient = np.zeros_like(latents)
        order = self.layout.structure.order if self.layout.structure.dynamics else 0
        for first, _ in self.layout.sequences.bounds():
            gradient[first : first + order] = latents[first : first + order]
        return 0.5 * float(np.vdot(gradient, latents)), gradient


# --- learning ---------------------------------------------------------------------------------------------------------


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
