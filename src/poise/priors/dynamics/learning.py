"""Learn a motion model: its objective, and L-BFGS over kernels and latent points.

The objective over kernels and latent points is of poses, dynamics and local linearity (Eqs. 1, 2, 5); it is exact for
few frames, with inducing frames for many. The latent space's unit is the width of the pose kernel (its signal variance
and inverse width are one; the features' scales absorb the rest). Without a fixed unit the dynamics' and locally linear
priors would grow without bound as all points shrink together. Every gradient is a hand-written reverse pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.gp.covariance import Kernel
from poise.gp.process import descend, process_loss, sparse_loss
from poise.priors.dynamics.flow import Flow, Latents, Steps, cyclic_surface, flow_loss, steps_of
from poise.priors.dynamics.layout import Layout
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.structure import Structure
from poise.skeleton.skeleton import read_only
from poise.types import Array, ShareProgress

KIND = "rbf"
LOCAL_SHARE = 16.0  # weight of local linearity relative to the dynamics: with less, transitions stay apart
FIRST_NOISE = 0.05  # initial noise of the pose kernel
FIRST_FLOW = (1.0, 1e3, 0.5)  # initial alpha, beta, gamma of every dynamics
# Of logarithms: noise neither vanishes nor hides the motion, and the dynamics' width is about that of the pose kernel.
NOISE_BOUNDS = (np.log(4.0), np.log(1e4))
FLOW_BOUNDS = [(-5.0, 7.0), (np.log(30.0), np.log(1e4)), (np.log(0.02), np.log(1.0))]
STEPS = 200  # L-BFGS steps
SPARSE_STEPS = 400  # L-BFGS steps with inducing frames: more coordinates, but cheaper steps
BALANCE = 2.0  # weight of the priors on x against the likelihood of poses (Urtasun et al. 2006)
EXACT_FRAMES = 500  # largest number of frames learned exactly
INDUCING = 250  # inducing frames of a larger set
AFTERWARDS = 60  # L-BFGS steps for the dynamics of a model that was learned without any

Unknowns = Float[Array, "unknowns"]


class LearnedUnknowns(NamedTuple):
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
        """The steps of every activity; on circles the mean function rotates at the activity's pace."""
        sequences, structure = self.layout.sequences, self.layout.structure
        start, size = self.layout.latents(self.layout.starts[0]), len(structure.dimensions)
        moves = np.diff(start, axis=0)[np.diff(sequences.sequence_of) == 0]
        pace = float(
            np.sqrt(np.square(start).sum() / len(start) / max(np.square(moves).sum() / len(moves), 1e-12))
        )
        phases = () if structure.published else structure.phases  # Eq. 2 has no mean function
        homing = np.array([bool(phases) and not each.part for each in structure.dimensions], dtype=np.float64)
        found = []
        for activity in sequences.activity_names:
            doing = zip(sequences.bounds(), sequences.activities, strict=True)
            bounds, turn = [bound for bound, name in doing if name == activity], np.zeros((size, size))
            for source in phases:
                radians = sequences.phases[source]
                gone = sum(radians[end - 1] - radians[first] for first, end in bounds)
                angle = gone / sum(end - 1 - first for first, end in bounds)
                rows, sine, cosine = structure.places_of(source), np.sin(angle), np.cos(angle)
                turn[np.ix_(rows, rows)] = [[cosine, -sine], [sine, cosine]]
            found.append(steps_of(bounds, order=structure.order, pace=pace, turn=turn, homing=homing))
        return tuple(found)

    def starts(self) -> list[Unknowns]:
        """Initial values of all unknowns: logarithms first, then the layout's parameters."""
        flows = np.log(FIRST_FLOW * len(self._flow_steps))
        return [np.concatenate([[-np.log(FIRST_NOISE)], flows, own]) for own in self.layout.starts]

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Bounds of all unknowns: noise neither vanishes nor hides the motion."""
        count = sum(self.layout.sizes)
        return [NOISE_BOUNDS, *FLOW_BOUNDS * len(self._flow_steps), *[(None, None)] * count]

    def apart(self, unknowns: Unknowns) -> LearnedUnknowns:
        """The unknowns by name."""
        logs = unknowns[1 : 1 + 3 * len(self._flow_steps)].reshape(-1, 3)
        kernel = Kernel.of(KIND, np.array([0.0, unknowns[0], 0.0]))
        return LearnedUnknowns(kernel, tuple(Kernel.of(KIND, own) for own in logs), unknowns[1 + logs.size :])

    def __call__(self, unknowns: Unknowns) -> tuple[float, Unknowns]:
        """The loss and its gradient."""
        found, structure = self.apart(unknowns), self.layout.structure
        latents = self.layout.latents(found.parameters)
        value, in_noise, in_latents, _ = self.pose_loss(latents, found.kernel)
        own, gradient = self.layout.local_loss(latents)
        local = self.balance if structure.published else LOCAL_SHARE * self.balance
        value, in_latents = value + local * own, in_latents + local * gradient
        in_flows: list[Array] = []
        for steps, kernel in zip(self._flow_steps, found.flows, strict=True):
            own, in_logs, gradient = flow_loss(latents, steps, kernel, inducing=self.inducing_steps(steps))
            value += self.balance * own
            in_flows.append(self.balance * in_logs)
            in_latents += self.balance * gradient
        # |x|^2 / 2 of the points that no dynamics predicts; a model without dynamics has no prior on x (Eq. 1)
        unled, order = np.zeros_like(latents), structure.order if structure.dynamics else 0
        for first, _ in self.layout.sequences.bounds():
            unled[first : first + order] = latents[first : first + order]
        value, in_latents = value + 0.5 * float(np.vdot(unled, latents)), in_latents + unled
        in_parameters = self.layout.spread_back(found.parameters, in_latents)
        own, gradient = self.layout.phase_loss(found.parameters)
        return value + own, np.concatenate([[in_noise], *in_flows, in_parameters + gradient])

    def pose_loss(
        self, latents: Latents, kernel: Kernel
    ) -> tuple[float, float, Latents, Float[Array, "features"]]:
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


# --- learning ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned motion model: the process that predicts poses, and the dynamics between latent points."""

    sequences: Sequences
    structure: Structure
    kernel: Kernel
    scales: Float[Array, "varying"]
    latents: Latents
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
    count, chosen = len(sequences.y), None
    if inducing is not None or count > EXACT_FRAMES:
        most = min(inducing or INDUCING, count)
        chosen = np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))
    loss = MotionLoss(Layout(structure, sequences), chosen, scaling, 1.0 if structure.published else balance)
    starts, steps = loss.starts(), steps or (STEPS if chosen is None else SPARSE_STEPS)

    def descended(number: int) -> tuple[Unknowns, Float[Array, "steps"]]:
        def so_far(done: float) -> None:
            progress(0.95 * (number + done) / len(starts))

        return descend(loss, starts[number], bounds=loss.bounds(), steps=steps, progress=so_far)

    learned = _learned(loss, *min(map(descended, range(len(starts))), key=lambda found: found[1][-1]))
    progress(1.0)
    return learned


def _learned(loss: MotionLoss, unknowns: Unknowns, curve: Float[Array, "steps"]) -> Learned:
    found, structure = loss.apart(unknowns), loss.layout.structure
    latents = loss.layout.latents(found.parameters)
    sequences = replace(loss.layout.sequences, phases=loss.layout.phases(found.parameters))
    phases = np.column_stack(
        [np.empty((len(latents), 0)), *(sequences.phases[name] for name in structure.phases)]
    )
    surface = cyclic_surface(structure, latents, sequences.phases)
    flows = []
    for number, (name, steps) in enumerate(zip(sequences.activity_names, loss.steps, strict=True)):
        kernel = found.flows[number] if found.flows else _kernel_afterwards(latents, steps)
        advances, inputs = phases[steps.after] - phases[steps.now], steps.inputs(latents)
        beat, chosen = advances.mean(axis=0), loss.inducing_steps(steps)
        parts = (steps.order, steps.pace, steps.turn, steps.homes(latents), beat, advances - beat)
        flow = Flow(name, kernel, inputs, steps.outputs(latents), *parts, beside=structure.beside)
        flow = flow.about(surface)
        if chosen is not None:
            stated = _at_inducing(np.hstack([flow.outputs, flow.advances]), inputs, chosen, kernel)
            outputs, advances = np.split(stated, [latents.shape[1]], axis=1)
            flow = replace(flow, inputs=inputs[chosen], outputs=outputs, advances=advances)
        flows.append(flow)
    outputs, active = sequences.centred, np.arange(len(latents))
    if loss.inducing is not None:
        outputs, active = _at_inducing(outputs, latents, loss.inducing, found.kernel), loss.inducing
    scales = loss.pose_loss(latents, found.kernel)[3]
    return Learned(sequences, structure, found.kernel, scales, latents, active, outputs, tuple(flows), curve)


def _at_inducing(outputs: Array, inputs: Array, chosen: Array, kernel: Kernel) -> Array:
    """Outputs at the inducing inputs for which the process predicts as it would with all frames."""
    weights = sparse_loss(outputs, inputs, inputs[chosen], kernel, scaling="none").weights
    return np.asarray(kernel.noisy(inputs[chosen]) @ weights)


def _kernel_afterwards(latents: Latents, steps: Steps) -> Kernel:
    """Fit the kernel of the dynamics to points that were learned without dynamics."""

    def loss_and_gradient(logs: Array) -> tuple[float, Array]:
        value, in_logs, _ = flow_loss(latents, steps, Kernel.of(KIND, logs))
        return value, in_logs

    found, _ = descend(loss_and_gradient, np.log(FIRST_FLOW), bounds=FLOW_BOUNDS, steps=AFTERWARDS, memory=10)
    return Kernel.of(KIND, found)
