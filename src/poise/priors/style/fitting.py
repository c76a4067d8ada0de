"""Both algorithms that minimise L_GP (Grochow et al. 2004, appendix B): the alternating heuristic and L-BFGS on all.

They work on centred features that all vary. The paper starts at scales of one; here each starts at one over its
feature's standard deviation, which is what they tend to, and PCA is taken of the features so scaled. L_GP does not
change when the kernel's variances grow by a factor and the scales by its root; of all these the fit is kept in which
scaled features have a variance of one on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize

from poise.priors.style.covariance import Kernel
from poise.priors.style.objective import PoseLoss, inverse_of, profiled_loss, training_loss
from poise.priors.style.placing import place
from poise.priors.style.selection import select_active

Array = np.ndarray
Progress = Callable[[float], None]

ROUNDS = 10  # of the heuristic (the paper's NumSteps)
KERNEL_STEPS = 30  # of L-BFGS over the kernel's parameters, in each round
PLACING_STEPS = 8  # of Gauss-Newton over the x of inactive poses, in each round
FULL_STEPS = 200  # of L-BFGS over all unknowns
LOG_BOUND = np.log(1e6)  # of every kernel parameter either way


@dataclass(frozen=True, eq=False)
class Fit:
    """The unknowns of the model, for features that vary."""

    kernel: Kernel
    scales: Float[Array, "features"]
    latents: Float[Array, "poses latent"]
    active: Int[Array, "active"]
    curve: Float[Array, "steps"]

    def pose_loss(self, centred: Float[Array, "poses features"]) -> PoseLoss:
        """L_IK of this fit (Eq. 3)."""
        return PoseLoss(self.kernel, self.latents[self.active], centred[self.active], self.scales)


def start(centred: Float[Array, "poses features"], *, dimensions: int, kind: str = "rbf", active: int) -> Fit:
    """Where learning starts: kernel parameters of one, x by PCA with a variance of one."""
    scales = 1.0 / centred.std(axis=0)
    kernel, latents = Kernel.start(kind), principal_latents(centred * scales, dimensions)
    return Fit(kernel, scales, latents, select_active(kernel, latents, active), np.empty(0))


def principal_latents(
    scaled: Float[Array, "poses features"], dimensions: int
) -> Float[Array, "poses {dimensions}"]:
    """The leading principal components, each of variance one; zeros beyond the rank of the data."""
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    leading = np.argsort(values)[::-1][:dimensions]
    spread = np.sqrt(np.maximum(values[leading], 0.0) / len(scaled))
    known = spread > 1e-6 * max(float(spread.max(initial=0.0)), 1e-12)
    latents = np.zeros((len(scaled), dimensions))
    latents[:, : len(leading)][:, known] = scaled @ vectors[:, leading[known]] / spread[known]
    return latents


def heuristic(
    centred: Float[Array, "poses features"],
    fit: Fit,
    *,
    active: int,
    rounds: int = ROUNDS,
    progress: Progress = lambda _: None,
) -> Fit:
    """LEARNSGPLVM of appendix B, from a fit: the kernel over the active set, x of the others, scales, in turns.

    As the active set changes, so does what is minimised, and rounds may lose; the best round is returned.
    """
    curve, best = list(fit.curve), (np.inf, fit)
    for turn in range(rounds):
        fit = reselected(fit, active)
        kernel, _ = fit_kernel(centred[fit.active], fit.latents[fit.active], fit.kernel, fit.scales)
        fit = reselected(replace(fit, kernel=kernel), active)
        fit = reselected(others_placed(centred, fit), active)
        fit = rescaled(centred, fit)
        curve.append(whole_loss(centred, fit))
        best = min(best, (curve[-1], fit), key=lambda one: one[0])
        progress((turn + 1) / rounds)
    return replace(best[1], curve=np.array(curve))


def whole_loss(centred: Float[Array, "poses features"], fit: Fit) -> float:
    """L_GP of the active set (Eq. 2) plus L_IK of every other pose given it (Eq. 3): comparable between active sets."""
    others = inactive(fit)
    own = training_loss(
        centred[fit.active], fit.latents[fit.active], kernel=fit.kernel, scales=fit.scales
    ).value
    rest = fit.pose_loss(centred).value(fit.latents[others], centred[others]).sum()
    return float(own + rest - np.count_nonzero(others) * np.log(fit.scales).sum())


def full(
    centred: Float[Array, "poses features"],
    fit: Fit,
    *,
    active: int,
    steps: int = FULL_STEPS,
    progress: Progress = lambda _: None,
) -> Fit:
    """L_GP minimised over x and the kernel by L-BFGS, scales always at their best; the active set chosen afterwards.

    What the active poses alone cannot say of the others then goes into their places and the scales: the noise of the
    whole is far below it, and what was made of new poses would be twice as far off.
    """
    everything = np.ones(len(centred), dtype=np.bool_)
    fit = descended(centred, fit, moving=everything, steps=steps, progress=progress)
    return rescaled(centred, others_placed(centred, reselected(fit, active)))


def descended(
    centred: Float[Array, "poses features"],
    fit: Fit,
    *,
    moving: Bool[Array, "poses"],
    steps: int,
    progress: Progress = lambda _: None,
) -> Fit:
    """L_GP brought down by L-BFGS over the kernel and the x of the poses that move, scales always at their best."""
    curve: list[float] = []
    count, latents = len(fit.kernel.logs), fit.latents.copy()

    def unpacked(unknowns: Array) -> tuple[Float[Array, "poses latent"], Kernel]:
        latents[moving] = unknowns[count:].reshape(-1, latents.shape[1])
        return latents, Kernel(fit.kernel.kind, unknowns[:count])

    def loss_and_gradient(unknowns: Array) -> tuple[float, Array]:
        loss, _ = profiled_loss(centred, *unpacked(unknowns))
        return loss.value, np.concatenate([loss.in_logs, loss.in_latents[moving].ravel()])

    def after_step(intermediate_result: object) -> None:
        curve.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        progress(len(curve) / steps)

    start = np.concatenate([fit.kernel.logs, fit.latents[moving].ravel()])
    found = minimize(
        loss_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LOG_BOUND, LOG_BOUND)] * count + [(None, None)] * (len(start) - count),
        callback=after_step,
        options={"maxiter": steps, "maxcor": 20},
    )
    latents, kernel = unpacked(found.x)
    _, scales = profiled_loss(centred, latents, kernel)
    return replace(fit, kernel=kernel, latents=latents, scales=scales, curve=np.array(curve))


def fit_kernel(
    centred: Float[Array, "poses features"],
    latents: Float[Array, "poses latent"],
    kernel: Kernel,
    scales: Float[Array, "features"],
    *,
    steps: int = KERNEL_STEPS,
) -> tuple[Kernel, float]:
    """The kernel whose parameters minimise L_GP with x and scales held, and L_GP there."""

    def loss_and_gradient(logs: Array) -> tuple[float, Array]:
        loss = training_loss(centred, latents, kernel=Kernel(kernel.kind, logs), scales=scales)
        return loss.value, loss.in_logs

    found = minimize(
        loss_and_gradient,
        kernel.logs.copy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LOG_BOUND, LOG_BOUND)] * len(kernel.logs),
        options={"maxiter": steps},
    )
    return Kernel(kernel.kind, found.x), float(found.fun)


def reselected(fit: Fit, active: int) -> Fit:
    """A fit with its active set chosen anew."""
    return replace(fit, active=select_active(fit.kernel, fit.latents, active))


def others_placed(centred: Float[Array, "poses features"], fit: Fit) -> Fit:
    """A fit with the x of inactive poses brought towards where L_IK is least."""
    latents, others = fit.latents.copy(), inactive(fit)
    placed, _ = place(fit.pose_loss(centred), centred[others], latents[others], iterations=PLACING_STEPS)
    latents[others] = placed
    return replace(fit, latents=latents)


def inactive(fit: Fit) -> Bool[Array, "poses"]:
    """Which poses are not in the active set."""
    others = np.ones(len(fit.latents), dtype=np.bool_)
    others[fit.active] = False
    return others


def rescaled(centred: Float[Array, "poses features"], fit: Fit) -> Fit:
    """Scales in closed form, where `whole_loss` is least.

    Appendix B has sqrt(M / Y_k' K^-1 Y_k) over the active set. Here the misfit of the other poses, each of them
    (y_k - f_k)^2 / sigma^2, adds to the sum as their number does to M: scales do not hang on which poses are active.
    """
    own, others = centred[fit.active], inactive(fit)
    inverse, _ = inverse_of(fit.kernel.noisy(fit.latents[fit.active]))
    misfit = np.einsum("mk,mk->k", own, inverse @ own)
    gaps, variance = fit.pose_loss(centred).misfit(fit.latents[others], centred[others])
    misfit += np.einsum("nk,n->k", gaps**2, 1.0 / variance) / fit.scales**2
    return _in_unit_variance(centred, replace(fit, scales=np.sqrt(len(centred) / misfit)))


def _in_unit_variance(centred: Float[Array, "poses features"], fit: Fit) -> Fit:
    """The same fit in the units in which scaled features have a variance of one on average."""
    factor = float(np.mean((fit.scales * centred.std(axis=0)) ** 2))
    return replace(fit, scales=fit.scales / np.sqrt(factor), kernel=fit.kernel.rescaled(1.0 / factor))
