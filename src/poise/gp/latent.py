"""Latent variable models: their learning (Grochow et al. 2004, appendix B), and the place of new outputs.

The outputs y = f(x) of a process are known, its inputs x are not: L_GP (Eq. 2) is minimised over kernel, scales and x,
by the alternating heuristic or by L-BFGS on all. Outputs are centred, and all of them vary. The paper starts at scales
of one; here each starts at one over its output's deviation, which is close to the optimum, and PCA is applied to
outputs so scaled. L_GP is invariant when the kernel's variances grow by a factor and the scales by its square root;
the fit is normalised so that scaled outputs have a variance of one on average.

Outputs are placed in a latent space by the input x ~ N(0, I) of a process for each. The loss over x is the L_IK of
Grochow et al. (2004, Eq. 3), for many outputs y at once:

    L(x, y) = |W (y - f(x))|^2 / (2 sigma^2(x)) + D/2 ln sigma^2(x) + |x|^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.compiled import compiled
from poise.gp.covariance import JITTER, Kernel, curves_of, kernel_curves
from poise.gp.process import Posterior, descend, exact_loss
from poise.types import Array, ShareProgress

BLOCK = 1024  # outputs placed at once, to limit memory
STARTS = 3  # inputs from which a search starts
_FIRST_DAMPING = 1e-2
_LARGEST_DAMPING = 1e4  # beyond this the search ends
_ENOUGH = 1e-4  # nats: outputs that gain less have converged
ROUNDS = 10  # rounds of the heuristic (the paper's NumSteps)
KERNEL_STEPS = 30  # L-BFGS steps over the kernel's parameters, per round
PLACING_STEPS = 8  # Gauss-Newton steps over the x of inactive points, per round
FULL_STEPS = 200  # L-BFGS steps over all unknowns
LARGE = 1000  # number of points from which a data set is large
NOISE_VARIANCES = (0.05, 0.1)  # that smooth the kernel of a small and of a large data set (section 6.2)
LOG_BOUND = np.log(1e6)  # bound of every log-parameter in either direction

Outputs = Float[Array, "n outputs"]
Latents = Float[Array, "n latent"]
Each = Float[Array, "n"]
Scales = Float[Array, "outputs"]

# --- placing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlacingLoss:
    """L(x, y) under a process, at the scales W of its outputs."""

    process: Posterior
    scales: Scales

    @cached_property
    def weights(self) -> Float[Array, "m outputs"]:
        """W f(x) = k(x) weights."""
        return self.process.weights * self.scales

    @cached_property
    def gram(self) -> Float[Array, "m m"]:
        """Inner products of the weights."""
        return self.weights @ self.weights.T

    def value(self, x: Latents, y: Outputs) -> Each:
        """L of each output at its x (Eq. 3)."""
        return self._value(x, *self.misfit(x, y))

    def misfit(self, x: Latents, y: Outputs) -> tuple[Outputs, Each]:
        """W (y - f(x)) and sigma^2(x) of each (Eqs. 4, 5)."""
        mean, variances = self.process.predict(x)
        return (y - mean) * self.scales, variances

    def shape(self, x: Latents, y: Outputs) -> tuple[Each, Latents, Float[Array, "n latent latent"]]:
        """L, its gradient by x (Eqs. 17 to 19) and the Gauss-Newton (Fisher) approximation of its Hessian."""
        process, dimension = self.process, y.shape[1]
        k, dk = process.kernel.slopes_in_x(x, process.inputs)
        gaps = y * self.scales - k @ self.weights
        variance, d_variance = process.variance_slopes(x, k, dk)
        d_fit = -np.einsum("nma,nm->na", dk, gaps @ self.weights.T)
        surplus = dimension - np.einsum("nk,nk->n", gaps, gaps) / variance
        gradient = x + (d_fit + 0.5 * surplus[:, None] * d_variance) / variance[:, None]
        turned = np.matmul(dk.transpose(0, 2, 1), self.gram)
        hessian = np.matmul(turned, dk) / variance[:, None, None] + np.eye(x.shape[1])
        relative = d_variance / variance[:, None]
        hessian += 0.5 * dimension * relative[:, :, None] * relative[:, None, :]
        return self._value(x, gaps, variance), gradient, hessian

    def _value(self, x: Latents, gaps: Outputs, variance: Each) -> Each:
        fit = np.einsum("nk,nk->n", gaps, gaps) / variance
        return 0.5 * (fit + gaps.shape[1] * np.log(variance) + np.einsum("na,na->n", x, x))


def place(loss: PlacingLoss, y: Outputs, start: Latents, *, iterations: int = 15) -> tuple[Latents, Each]:
    """Latent points of outputs, by damped Gauss-Newton steps from a start each, and L there."""
    placed, values = start.copy(), np.empty(len(start))
    for first in range(0, len(start), BLOCK):
        block = slice(first, first + BLOCK)
        placed[block], values[block] = _place_block(loss, y[block], start[block], iterations)
    return placed, values


def _place_block(loss: PlacingLoss, y: Outputs, start: Latents, iterations: int) -> tuple[Latents, Each]:
    x = start.copy()
    value, gradient, hessian = loss.shape(x, y)
    damping = np.full(len(x), _FIRST_DAMPING)
    going = np.arange(len(x))
    for _ in range(iterations):
        damped = hessian[going]
        np.einsum("naa->na", damped)[:] *= 1.0 + damping[going][:, None]
        trial = x[going] - np.linalg.solve(damped, gradient[going][:, :, None])[:, :, 0]
        new_value, new_gradient, new_hessian = loss.shape(trial, y[going])
        gain = value[going] - new_value
        better = gain > 0
        moved = going[better]
        x[moved], value[moved] = trial[better], new_value[better]
        gradient[moved], hessian[moved] = new_gradient[better], new_hessian[better]
        damping[going] *= np.where(better, 0.2, 8.0)
        going = going[np.where(better, gain > _ENOUGH, damping[going] < _LARGEST_DAMPING)]
        if len(going) == 0:
            break
    return x, value


def place_new(loss: PlacingLoss, y: Outputs, *, iterations: int = 25) -> tuple[Latents, Each]:
    """Latent points of new outputs: the best of searches from the inputs whose predicted outputs are most similar."""
    placed, values = np.zeros((len(y), loss.process.inputs.shape[1])), np.full(len(y), np.inf)
    for start in _nearest(loss, y):
        found, value = place(loss, y, start, iterations=iterations)
        better = value < values
        placed[better], values[better] = found[better], value[better]
    return placed, values


def _nearest(loss: PlacingLoss, y: Outputs) -> list[Latents]:
    """Per output, the inputs whose predicted scaled outputs are nearest: the nearest of all, then the next.

    Predictions are compared, not recorded outputs: the outputs of inducing points stand for others.
    """
    inputs = loss.process.inputs
    expected = loss.process.kernel.matrix(inputs, inputs) @ loss.weights
    gaps = np.square(expected).sum(axis=1) - 2.0 * (y * loss.scales) @ expected.T
    return [inputs[chosen] for chosen in np.argsort(gaps, axis=1)[:, :STARTS].T]


def log_evidence(loss: PlacingLoss, y: Outputs, placed: Latents) -> Each:
    """ln p(y) of each output, with x integrated out around its latent point (Laplace's approximation)."""
    value, _, hessian = loss.shape(placed, y)
    constants = np.log(loss.scales).sum() - 0.5 * y.shape[1] * np.log(2.0 * np.pi)
    return constants - value - 0.5 * np.linalg.slogdet(hessian)[1]


# --- learning ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fit:
    """The unknowns of the model."""

    kernel: Kernel
    scales: Scales
    latents: Latents
    active: Int[Array, "active"]
    curve: Float[Array, "steps"]

    def placing_loss(self, y: Outputs) -> PlacingLoss:
        """L_IK given the active points (Eq. 3)."""
        process = Posterior.given(self.kernel, self.latents[self.active], y[self.active])
        return PlacingLoss(process, self.scales)

    @property
    def inactive(self) -> Bool[Array, "n"]:
        """Mask of the points that are not in the active set."""
        others = np.ones(len(self.latents), dtype=np.bool_)
        others[self.active] = False
        return others

    def reselected(self, active: int) -> Fit:
        """The fit with `active` active points, chosen again."""
        return replace(self, active=select_active(self.kernel, self.latents, active))


@dataclass(frozen=True, eq=False)
class TrainingLoss:
    """L_GP and its gradients."""

    value: float
    in_latents: Latents
    in_logs: Float[Array, "parameters"]
    in_log_scales: Scales
    scales: Scales


def training_loss(
    y: Outputs, latents: Latents, kernel: Kernel, *, scales: Scales | None = None
) -> TrainingLoss:
    """L_GP (Eq. 2) with its gradients (Eqs. 15, 20 to 23), at given scales or at the optimal ones.

    It is the negative log-posterior, so dL/dK is minus half of what the paper prints in Eq. 15. The priors are x ~
    N(0, I) and 1 / (alpha beta gamma). At the optimal scales their gradient is zero, and the others are partial.
    """
    loss = exact_loss(y, latents, kernel, scales="each" if scales is None else scales)
    value = loss.value + 0.5 * float(np.vdot(latents, latents)) + float(kernel.logs.sum())
    return TrainingLoss(value, loss.in_inputs + latents, loss.in_logs + 1.0, loss.fits - len(y), loss.scales)


def start(y: Outputs, *, dimensions: int, kind: str = "rbf", active: int) -> Fit:
    """The initial fit: kernel parameters of one, x by PCA with a variance of one."""
    scales = 1.0 / y.std(axis=0)
    kernel, latents = Kernel.of(kind), principal_latents(y * scales, dimensions)
    return Fit(kernel, scales, latents, select_active(kernel, latents, active), np.empty(0))


def principal_latents(scaled: Outputs, dimensions: int) -> Float[Array, "n {dimensions}"]:
    """The leading principal components, each of variance one; zeros beyond the rank of the data."""
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    leading = np.argsort(values)[::-1][:dimensions]
    spread = np.sqrt(np.maximum(values[leading], 0.0) / len(scaled))
    known = spread > 1e-6 * max(float(spread.max(initial=0.0)), 1e-12)
    latents = np.zeros((len(scaled), dimensions))
    latents[:, : len(leading)][:, known] = scaled @ vectors[:, leading[known]] / spread[known]
    return latents


def heuristic(
    y: Outputs,
    fit: Fit,
    *,
    active: int,
    rounds: int = ROUNDS,
    active_scales: bool = False,
    progress: ShareProgress = lambda _: None,
) -> Fit:
    """LEARNSGPLVM of appendix B from a fit: optimise the kernel on the active set, the other x, and the scales in turn.

    As the active set changes, so does the objective, and a round may be worse than the last; the best is returned.
    """
    curve, best = list(fit.curve), (np.inf, fit)
    for turn in range(rounds):
        fit = fit.reselected(active)
        kernel = fit_kernel(y[fit.active], fit.latents[fit.active], fit.kernel, fit.scales)
        fit = replace(fit, kernel=kernel).reselected(active)
        fit = rescaled(y, others_placed(y, fit).reselected(active), active_alone=active_scales)
        curve.append(whole_loss(y, fit))
        best = min(best, (curve[-1], fit), key=lambda one: one[0])
        progress((turn + 1) / rounds)
    return replace(best[1], curve=np.array(curve))


def whole_loss(y: Outputs, fit: Fit) -> float:
    """L_GP of the active set (Eq. 2) plus L_IK of all others given it (Eq. 3): comparable between active sets."""
    others = fit.inactive
    own = training_loss(y[fit.active], fit.latents[fit.active], fit.kernel, scales=fit.scales).value
    rest = fit.placing_loss(y).value(fit.latents[others], y[others]).sum()
    return float(own + rest - np.count_nonzero(others) * np.log(fit.scales).sum())


def full(
    y: Outputs, fit: Fit, *, active: int, steps: int = FULL_STEPS, progress: ShareProgress = lambda _: None
) -> Fit:
    """Minimise L_GP over x and the kernel by L-BFGS with optimal scales; then choose the active set.

    Then place the other points again and recompute the scales: the active points alone explain them less well than the
    noise of the whole fit says, and predictions of new outputs would be twice as far off.
    """
    fit = descended(y, fit, moving=np.ones(len(y), dtype=np.bool_), steps=steps, progress=progress)
    return rescaled(y, others_placed(y, fit.reselected(active)))


def descended(
    y: Outputs, fit: Fit, *, moving: Bool[Array, "n"], steps: int, progress: ShareProgress = lambda _: None
) -> Fit:
    """Minimise L_GP by L-BFGS over the kernel and the x of the `moving` points, with optimal scales."""
    count, latents = len(fit.kernel.logs), fit.latents.copy()

    def loss_at(unknowns: Array) -> TrainingLoss:
        latents[moving] = unknowns[count:].reshape(-1, latents.shape[1])
        return training_loss(y, latents, type(fit.kernel)(unknowns[:count]))

    def loss_and_gradient(unknowns: Array) -> tuple[float, Array]:
        loss = loss_at(unknowns)
        return loss.value, np.concatenate([loss.in_logs, loss.in_latents[moving].ravel()])

    start = np.concatenate([fit.kernel.logs, fit.latents[moving].ravel()])
    bounds = [(-LOG_BOUND, LOG_BOUND)] * count + [(None, None)] * (len(start) - count)
    found, curve = descend(loss_and_gradient, start, bounds=bounds, steps=steps, progress=progress)
    scales = loss_at(found).scales
    return replace(fit, kernel=type(fit.kernel)(found[:count]), latents=latents, scales=scales, curve=curve)


def fit_kernel(
    y: Outputs, latents: Latents, kernel: Kernel, scales: Scales, *, steps: int = KERNEL_STEPS
) -> Kernel:
    """The kernel whose parameters minimise L_GP for fixed x and scales."""

    def loss_and_gradient(logs: Array) -> tuple[float, Array]:
        loss = training_loss(y, latents, type(kernel)(logs), scales=scales)
        return loss.value, loss.in_logs

    start, bounds = kernel.logs.copy(), [(-LOG_BOUND, LOG_BOUND)] * len(kernel.logs)
    return type(kernel)(descend(loss_and_gradient, start, bounds=bounds, steps=steps, memory=10)[0])


def annealed_kernel(
    y: Outputs, fit: Fit, *, rng: np.random.Generator, start: Kernel | None = None, steps: int = KERNEL_STEPS
) -> Kernel:
    """A smoother kernel: learned again on noisy active outputs, with fixed x and scales (section 6.1.1).

    The noise is added to scaled outputs, which vary by one on average, so that one variance suits every output.
    """
    own, deviation = y[fit.active], np.sqrt(NOISE_VARIANCES[len(y) >= LARGE])
    noisy = own + deviation * rng.normal(size=own.shape) / fit.scales
    return fit_kernel(noisy, fit.latents[fit.active], start or fit.kernel, fit.scales, steps=steps)


def others_placed(y: Outputs, fit: Fit) -> Fit:
    """A fit with the x of inactive points moved towards the minimum of L_IK."""
    latents, others = fit.latents.copy(), fit.inactive
    latents[others], _ = place(fit.placing_loss(y), y[others], latents[others], iterations=PLACING_STEPS)
    return replace(fit, latents=latents)


def rescaled(y: Outputs, fit: Fit, *, active_alone: bool = False) -> Fit:
    """Set the scales that minimise `whole_loss`, in closed form, normalised so that scaled outputs vary by one.

    Appendix B uses sqrt(M / Y_k' K^-1 Y_k) over the active set. Here the misfits of the other points, each (y_k -
    f_k)^2 / sigma^2, are added to the sum and their number to M, so that scales do not depend on the choice of active
    points. `active_alone` is as published.
    """
    loss, others = fit.placing_loss(y), fit.inactive
    misfit, count = np.einsum("mk,mk->k", y[fit.active], loss.process.weights), len(fit.active)
    if not active_alone:
        gaps, variance = loss.misfit(fit.latents[others], y[others])
        misfit, count = misfit + np.einsum("nk,n->k", gaps**2, 1.0 / variance) / fit.scales**2, len(y)
    scales = np.sqrt(count / misfit)
    factor = float(np.mean((scales * y.std(axis=0)) ** 2))
    return replace(fit, scales=scales / np.sqrt(factor), kernel=fit.kernel.rescaled(1.0 / factor))


def select_active(kernel: Kernel, inputs: Float[Array, "n inputs"], count: int) -> Int[Array, "active"]:
    """The points, at most `count`, whose variance given those chosen before them is largest; the most central first."""
    chosen = np.empty(min(count, len(inputs)), dtype=np.int64)
    first = int(np.argmin(np.square(inputs - inputs.mean(axis=0)).sum(axis=1)))
    inputs, jitter = np.ascontiguousarray(inputs), JITTER * kernel.signal_variance
    noise, variances = kernel.noise_variance + jitter, kernel.diagonal(inputs) + jitter
    _select(kernel.number, kernel.parameters, inputs, first, noise, variances, chosen)
    return np.sort(chosen)


@compiled
def _select(
    kind: int, parameters: Array, inputs: Array, pick: int, noise: float, remaining: Array, chosen: Array
) -> None:
    """Fill `chosen`, from the first pick on; `remaining` holds all variances and is used up."""
    count = len(inputs)
    rows = np.empty((len(chosen), count))  # of the factor, one per chosen point
    curves, taken = curves_of(inputs), np.zeros(count, dtype=np.bool_)
    for step in range(len(chosen)):
        chosen[step], taken[pick] = pick, True
        row = rows[step]
        kernel_curves(kind, parameters, inputs[pick], inputs, curves)
        row[:] = curves.rows[0]
        row[pick] += noise
        for before in range(step):
            share = rows[before, pick]
            for i in range(count):
                row[i] -= share * rows[before, i]
        root = np.sqrt(max(remaining[pick], noise))
        largest = -np.inf
        for i in range(count):
            row[i] /= root
            remaining[i] -= row[i] * row[i]
            if not taken[i] and remaining[i] > largest:
                largest, pick = remaining[i], i
