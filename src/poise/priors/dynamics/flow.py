"""Latent dynamics, and the surface of a latent space with phases, which they follow.

Latent dynamics: x of a frame from the previous x, by Gaussian processes (Wang et al. 2008; the paper's Eq. 2). Every
activity has its own process and kernel (section 4.4): the kernel matrix of all is block-diagonal. A second-order
process sees the velocity too. For simulation the processes are mixed by their certainty and by the activity asked for.

Far from its data, a process returns its mean function. Without a topology this is zero, as in the paper. On a cylinder
it is a limit cycle: from the nearest point of the ring through the training points, along the ring at the activity's
own pace, and towards the activity's own position on the axis. During learning, a rotation about the centre stands for
the ring, which is not known yet.

The surface has a closed curve per phase and a line for every other dimension. The curve is a Fourier series in the
phase through the training points. A point's phase is that of the nearest point of the curve. A simulated gait stays on
the surface, so it neither spirals inward nor loses its beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.gp.covariance import Kernel
from poise.gp.process import Posterior, process_loss
from poise.priors.dynamics.structure import Structure
from poise.skeleton.skeleton import read_only
from poise.types import Array

HARMONICS = 4
PLACES = 360  # sampled points of a curve; the nearest is refined
REFINED = 3  # Newton steps of the refinement
LEAST_BEND = 0.1  # of the curvature on the curve: Newton's method is not used below this fraction
NOISE_FLOOR = 1e-5  # of the latent space's unit, squared: smallest variance of a step
HOMING = 0.2  # fraction per frame of the way to an activity's own position on an axis (in the mean function)
BESIDE = (0.3, 0.6)  # of the latent space's unit: offsets along axes of the additional steps
FLOW_ARRAYS = ("inputs", "outputs", "turn", "home", "beat", "advances")
SLOWEST = 0.25  # of an activity's own pace: slowest advance of a phase

Angles = Float[Array, "n"]
Flat = Float[Array, "n 2"]
Phases = Float[Array, "n phases"]
Points = Float[Array, "n latent"]
Slopes = Float[Array, "n latent latent"]
Latents = Float[Array, "frames latent"]

# --- the surface ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ring:
    """One closed curve in two latent dimensions."""

    source: str
    dimensions: tuple[int, int]
    series: Float[Array, "waves 2"]

    def at(self, radians: Float[Array, "*n"], derivative: int = 0) -> Float[Array, "*n 2"]:
        """The point at a phase, or a derivative of it."""
        return np.asarray(waves(radians, derivative=derivative) @ self.series)

    def phase_of(self, points: Flat) -> Angles:
        """The phase of the nearest point of the curve, from 0 to 2 pi."""
        radians = ((points[:, None] - self._table) ** 2).sum(axis=2).argmin(axis=1) * (2.0 * np.pi / PLACES)
        start = radians
        for _ in range(REFINED):
            off = (self.at(radians) - points) * self.at(radians, 1)
            radians = radians - off.sum(axis=1) / self._stiffness(radians, points)
        return np.asarray(np.clip(radians, start - np.pi / PLACES, start + np.pi / PLACES) % (2.0 * np.pi))

    def phase_slopes(self, radians: Angles, points: Flat) -> Flat:
        """The gradient of the phase of the nearest point (given in `radians`) by the point."""
        return np.asarray(self.at(radians, 1) / self._stiffness(radians, points)[:, None])

    def _stiffness(self, radians: Angles, points: Flat) -> Angles:
        """Half the second derivative of the squared distance along the curve; near the centre, where it vanishes, its
        value on the curve itself."""
        ahead = (self.at(radians, 1) ** 2).sum(axis=1)
        bent = ahead + ((self.at(radians) - points) * self.at(radians, 2)).sum(axis=1)
        return np.asarray(np.where(bent > LEAST_BEND * ahead, bent, np.maximum(ahead, 1e-12)))

    @cached_property
    def _table(self) -> Float[Array, "places 2"]:
        return self.at(np.arange(PLACES) * (2.0 * np.pi / PLACES))


@dataclass(frozen=True, eq=False)
class Surface:
    """The rings of a structure; without phases there are none and every point is on the surface."""

    rings: tuple[Ring, ...]

    def phases_of(self, x: Points) -> Phases:
        """The phases of the nearest points on the surface."""
        found = [ring.phase_of(x[:, ring.dimensions]) for ring in self.rings]
        return np.column_stack([np.empty((len(x), 0)), *found])

    def along(self, radians: Phases, moves: Points) -> Phases:
        """The phase changes when points at these phases make these moves."""
        found = [
            (ring.phase_slopes(own, ring.at(own)) * moves[:, ring.dimensions]).sum(axis=1)
            for ring, own in zip(self.rings, radians.T, strict=True)
        ]
        return np.column_stack([np.empty((len(moves), 0)), *found])

    def ahead(
        self, x: Points, radians: Float[Array, "phases"], elsewhere: Float[Array, "latent latent"]
    ) -> Slopes:
        """Jacobians by x of the points `radians` ahead on the surface; `elsewhere` holds those of other dimensions."""
        slopes = np.tile(elsewhere, (len(x), 1, 1))
        for ring, own, beat in zip(self.rings, self.phases_of(x).T, radians, strict=False):
            turned = ring.phase_slopes(own, x[:, ring.dimensions])
            slopes[:, ring.dimensions] = 0.0
            slopes[:, np.array(ring.dimensions)[:, None], ring.dimensions] = (
                ring.at(own + beat, 1)[:, :, None] * turned[:, None]
            )
        return slopes

    def at(self, radians: Phases, x: Points) -> Points:
        """The points at these phases, with the other dimensions from x."""
        out = x.copy()
        for ring, own in zip(self.rings, radians.T, strict=True):
            out[:, ring.dimensions] = ring.at(own)
        return out


NO_SURFACE = Surface(())


def surface_through(
    structure: Structure, latents: Latents, phases: Mapping[str, Float[Array, "frames"]]
) -> Surface:
    """The surface of training points with these phases."""
    rings = []
    for source in structure.phases:
        own = structure.places_of(source)
        design = waves(phases[source])
        ridge = 1e-6 * len(design) * np.eye(design.shape[1])
        series = np.linalg.solve(design.T @ design + ridge, design.T @ latents[:, own])
        rings.append(Ring(source, (own[0], own[1]), read_only(series)))
    return Surface(tuple(rings))


def cyclic_surface(
    structure: Structure, latents: Latents, phases: Mapping[str, Float[Array, "frames"]]
) -> Surface:
    """The surface whose rings are the limit cycles of a model's dynamics; published models have none."""
    return NO_SURFACE if structure.published else surface_through(structure, latents, phases)


def waves(
    radians: Float[Array, "*n"], harmonics: int = HARMONICS, derivative: int = 0
) -> Float[Array, "*n waves"]:
    """A constant and the cosines and sines of a phase and its multiples, or a derivative of them."""
    multiples = np.arange(1, harmonics + 1)
    turns = np.multiply.outer(radians, multiples) + derivative * (np.pi / 2.0)
    constant = np.full((*turns.shape[:-1], 1), float(derivative == 0))
    scale = multiples**derivative
    return np.concatenate([constant, scale * np.cos(turns), scale * np.sin(turns)], axis=-1)


# --- dynamics ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """Pairs of consecutive frames in all sequences of one activity."""

    before: Int[Array, "steps"]  # the frame before `now`; `now` itself for first order
    now: Int[Array, "steps"]
    after: Int[Array, "steps"]
    order: int
    pace: float  # factor on velocities that gives them the weight of positions
    turn: Float[Array, "latent latent"]  # the mean function: x rotated,
    homing: Float[Array, "latent"]  # plus, in dimensions with a one here, the mean of the outputs

    def outputs(self, latents: Latents) -> Float[Array, "steps latent"]:
        """The next x minus the mean function."""
        return latents[self.after] - latents[self.now] @ self.turn.T - self.homes(latents)

    def homes(self, latents: Latents) -> Float[Array, "latent"]:
        """The activity's own position, in the dimensions that have one."""
        return np.asarray(self.homing * latents[self.after].mean(axis=0))

    def inputs(self, latents: Latents) -> Float[Array, "steps inputs"]:
        """The inputs of the process: x, and for second order the velocity."""
        return inputs_of(latents[self.now], latents[self.before], self.order, self.pace)


def steps_of(
    bounds: list[tuple[int, int]],
    *,
    order: int,
    pace: float,
    turn: Float[Array, "latent latent"],
    homing: Float[Array, "latent"],
) -> Steps:
    """The steps of sequences, given by the first frames and ends of the sequences."""
    now = np.concatenate([np.arange(first + order - 1, end - 1) for first, end in bounds])
    return Steps(now - (order - 1), now, now + 1, order, pace, read_only(turn), read_only(homing))


def inputs_of(x: Points, before: Points, order: int, pace: float) -> Float[Array, "n inputs"]:
    """The inputs of a process at points and their predecessors."""
    return x if order == 1 else np.hstack([x, pace * (x - before)])


def flow_loss(
    latents: Latents, steps: Steps, kernel: Kernel, *, inducing: Int[Array, "chosen"] | None = None
) -> tuple[float, Float[Array, "parameters"], Latents]:
    """-ln p(X) of one activity's steps (Eq. 2) with its kernel prior, and the gradients by log-parameters and X.

    Exact, or with the steps `inducing` as inducing inputs.
    """
    loss = process_loss(
        steps.outputs(latents), steps.inputs(latents), kernel, scaling="none", inducing=inducing
    )
    in_latents, size = np.zeros_like(latents), latents.shape[1]
    np.add.at(in_latents, steps.after, loss.in_outputs - steps.homing * loss.in_outputs.mean(axis=0))
    np.add.at(in_latents, steps.now, loss.in_inputs[:, :size] - loss.in_outputs @ steps.turn)
    if steps.order == 2:
        np.add.at(in_latents, steps.now, steps.pace * loss.in_inputs[:, size:])
        np.add.at(in_latents, steps.before, -steps.pace * loss.in_inputs[:, size:])
    return loss.value + float(kernel.logs.sum()), loss.in_logs + 1.0, in_latents


@dataclass(frozen=True, eq=False)
class Flow:
    """The learned dynamics of one activity."""

    name: str
    kernel: Kernel
    inputs: Float[Array, "steps inputs"]
    outputs: Float[Array, "steps latent"]
    order: int
    pace: float
    turn: Float[Array, "latent latent"]
    home: Float[Array, "latent"]
    beat: Float[Array, "phases"]  # mean advance of each phase per frame, in radians
    advances: Float[Array, "steps phases"]  # phase advances of the steps, minus the beat
    surface: Surface = NO_SURFACE  # rings are limit cycles; without any, x is only rotated
    beside: bool | None = None  # whether it knows steps beside the recorded; by default, with rings

    def __post_init__(self) -> None:
        for name in FLOW_ARRAYS:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @cached_property
    def process(self) -> Posterior:
        """The posterior of the next x minus the mean function, and of the phase advances minus the beat.

        It may also have steps that start beside the recorded ones, along the axes (in any direction without a mean
        function), and lead halfway back. With recorded steps alone, errors accumulate over many steps, and paths drift
        to positions between recordings.
        """
        outputs = np.hstack([self.outputs, self.advances])
        axes = self._axes if self.turn.any() else np.ones(len(self.home), dtype=bool)
        if not axes.any() or not (bool(self.surface.rings) if self.beside is None else self.beside):
            return Posterior.given(self.kernel, self.inputs, outputs)
        rng, size = np.random.default_rng(0), len(self.home)
        starts, ends = [self.inputs], [outputs]
        for far in BESIDE:
            drawn = rng.normal(size=self.outputs.shape) * axes
            aside = far * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
            starts.append(np.hstack([self.inputs[:, :size] + aside, self.inputs[:, size:]]))
            ends.append(np.hstack([self.outputs + 0.5 * aside, self.advances]))
        return Posterior.given(self.kernel, np.vstack(starts), np.vstack(ends))

    def expected(self, x: Points) -> Points:
        """The mean function: the expected next x far from the data."""
        ahead = self.surface.phases_of(x) + self.beat[: len(self.surface.rings)]
        return self.surface.at(ahead, x @ self.turn.T + self.home)

    def about(self, surface: Surface) -> Flow:
        """The same steps relative to the limit cycles of a surface, if it has any."""
        x = self.inputs[:, : len(self.home)]
        cyclic = replace(self, surface=surface)
        return replace(cyclic, outputs=self.outputs + self.expected(x) - cyclic.expected(x))

    def predict(self, x: Points, before: Points) -> tuple[Points, Float[Array, "n"]]:
        """Mean and variance of the next x."""
        mean, variances = self.process.predict(inputs_of(x, before, self.order, self.pace))
        return self.expected(x) + mean[:, : x.shape[1]], np.maximum(variances, NOISE_FLOOR)

    def lead(self, x: Points, before: Points) -> tuple[Points, Float[Array, "n"]]:
        """The same for points far from the activity's own, in a latent space with a topology.

        Far from its data the process would stay, overshoot, or return in one step. The less certain it is, the more it
        moves along the axes by a fraction of the way home.
        """
        mean, variances = self.predict(x, before)
        known = np.minimum(self._usual_variance / variances, 1.0)[:, None]
        homeward = x + HOMING * (self.home - x)
        return np.where(self._axes, known * mean + (1.0 - known) * homeward, mean), variances

    def familiarity(self, x: Points, before: Points) -> Float[Array, "n"]:
        """How well the process knows points, from 0 far from the activity's data to 1 among them."""
        variances = self.process.variance(inputs_of(x, before, self.order, self.pace))
        return np.minimum(self._usual_variance / np.maximum(variances, NOISE_FLOOR), 1.0)

    @cached_property
    def _axes(self) -> Bool[Array, "latent"]:
        """Mask of the dimensions that belong to no phase, if other dimensions do."""
        turned = self.turn.any(axis=1)
        return np.asarray(~turned & turned.any())

    @cached_property
    def _usual_variance(self) -> float:
        """The largest variance at the training inputs."""
        return float(np.maximum(self.process.variance(self.inputs), NOISE_FLOOR).max())

    def advance(self, x: Points, before: Points) -> Phases:
        """The advance of each phase, in radians."""
        mean = self.process.mean(inputs_of(x, before, self.order, self.pace))
        return np.maximum(self.beat + mean[:, x.shape[1] :], SLOWEST * self.beat)

    def slopes(self, x: Points, before: Points) -> tuple[Slopes, Slopes]:
        """The Jacobians of the mean by x and by the previous x."""
        at = inputs_of(x, before, self.order, self.pace)
        _, dk = self.kernel.slopes_in_x(at, self.process.inputs)
        size = x.shape[1]
        whole = np.einsum("nma,mb->nba", dk, self.process.weights[:, :size])
        expected = self.surface.ahead(x, self.beat, self.turn)
        if self.order == 1:
            return whole + expected, np.zeros_like(whole)
        velocity = self.pace * whole[:, :, size:]
        return whole[:, :, :size] + expected + velocity, -velocity


def mixed(
    flows: tuple[Flow, ...],
    x: Points,
    before: Points,
    *,
    wishes: Float[Array, "*n activities"] | None = None,
    homing: bool = True,
    rng: np.random.Generator | None = None,
) -> tuple[Points, Float[Array, "n"], Float[Array, "n activities"]]:
    """The next x under the mixed dynamics of all activities (section 4.4), its variance, and each activity's share.

    Shares follow precisions: an activity without data nearby is uncertain and counts little. `wishes` weight the
    activities, so that one leads into another where both are known, at a transition if there is one. They weight the
    square roots of precisions, because precisions themselves differ so much that the change would happen at once.
    Towards a wished activity, dynamics lead home (`Flow.lead`) unless `homing` is off. With a generator, one activity
    is drawn for every point by its share, as in sampling from a mixture.
    """
    leads = homing and wishes is not None
    predictions = [(flow.lead if leads else flow.predict)(x, before) for flow in flows]
    means = np.stack([mean for mean, _ in predictions])
    variances = np.stack([variance for _, variance in predictions], axis=-1)
    shares = 1.0 / variances if wishes is None else wishes / np.sqrt(variances)
    shares = shares / shares.sum(axis=1, keepdims=True)
    if rng is not None:
        drawn = (rng.random((len(x), 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
        shares = np.eye(len(flows))[drawn]
    mean = np.einsum("na,anl->nl", shares, means)
    return mean, np.einsum("na,na->n", shares, variances), shares


def advanced(
    flows: tuple[Flow, ...], x: Points, before: Points, shares: Float[Array, "n activities"]
) -> Phases:
    """The phase advances under the dynamics of all activities, weighted by their shares."""
    return np.einsum("na,anp->np", shares, np.stack([flow.advance(x, before) for flow in flows]))
