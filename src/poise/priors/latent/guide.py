"""A style as a guide: starts at active poses, a latent point as its state, three stages from smooth to fine.

Handles alone also predict a pose, by a regression on recorded poses, limb by limb. A latent space of few dimensions
does not represent independent arm motion; the regression does. The mean of a pose is half the regression's prediction
and half the style's at the latent point. The remaining covariance does not grow outside the style's data, where few
poses determine how deviations correlate.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.geometry import rotations
from poise.geometry.alignment import closest_root
from poise.gp import regression
from poise.gp.covariance import curves_of
from poise.priors.clusters import BETA, BLOCKS
from poise.priors.forms import FREE_ROOT
from poise.priors.latent import local_gaussian
from poise.priors.latent.local_gaussian import LatentForm, aim_up
from poise.priors.latent.model import Observed
from poise.priors.poses import handle_positions, limb_groups, unmoved_apart
from poise.priors.predicting import in_root_frame
from poise.priors.prior import Asked, Gaussian, Guide, Plan, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.latent.prior import LatentPrior


MOST = 200  # largest number of evenly spaced poses used
SHARE = 0.5  # of the prediction in the mean of a pose
WHOLE_SHARE = 0.1  # of the covariance of all poses in the remaining one
STARTS = 3
PROMISING, CLOSE = 3.0, 0.1  # starts: poses within this ratio of the best distance, or within these metres
SAME_BASIN = 1.0  # of a kernel's width: an active pose closer than this leads to the same optimum
SAME_PLACE = 0.25  # of a kernel's width: two starts closer than this have merged
EDIT_VARIANCE = 0.01  # rad^2, mean over the degrees of freedom: variance of an edit of a recorded pose
ANSWERED = Plan(
    smooth=((4, 0, 0, 0),), finer=((0, 3, 5, 3),), tracked=((0, 0, 4, 2),), dragged=((5, 0, 0, 2),)
)
LATENT_REACH = 1.0  # of a kernel's width: largest step of a latent point in one round of a blend

Q = Float[Array, "size"]
X = Float[Array, "latent"]
Maps = Float[Array, "maps"]
Targets = Float[Array, "handles 3"]


class Answers:
    """Map from handle positions in the root's frame to a pose, and the remaining covariance."""

    def __init__(self, prior: LatentPrior, handles: Handles) -> None:
        model, maps = prior.model, prior.mean.size
        chosen = np.arange(0, len(model.latents), -(-len(model.latents) // MOST))
        poses = model.mean[:maps] + model.recorded[chosen, :maps]
        self._process = regression.fit(
            handle_positions(prior.space, poses, handles).reshape(len(poses), -1),
            poses,
            groups=limb_groups(prior.space, handles),
            blocks=chosen * BLOCKS // len(model.latents),
            centre=poses.mean(axis=0),
        )
        usual, whole = prior.variance(model.latents).mean() * prior.noise, np.cov(model.recorded[:, :maps].T)
        widely = WHOLE_SHARE * unmoved_apart(prior.space, handles, whole)
        self.covariance = usual + widely + BETA * np.eye(maps)

    def __call__(self, points: Targets) -> Maps:
        """The pose for handles at these positions."""
        mean = np.zeros(len(self.covariance))
        self._process.add(points.ravel(), mean)
        return mean


class LatentGuide(Guide):
    """A style for one set of handles; its state is a latent point."""

    plan = Plan(smooth=((4, 0, 0),), finer=((0, 3, 5),), tracked=((0, 0, 4),), dragged=((5, 0, 0),))

    def __init__(self, prior: LatentPrior, handles: Handles, fps: float | None) -> None:
        model, maps = prior.model, prior.mean.size
        self.prior, self.space, self.fps = prior, prior.space, fps
        self._latents = model.active_latents
        self._poses = model.predict(self._latents)[:, :maps]
        recorded = model.mean[:maps] + model.outputs[:, :maps]
        self._positions = handle_positions(prior.space, recorded, handles)
        self._turns = rotations.quaternion_between(prior.ups_at(self._latents), np.array([0.0, 1.0, 0.0]))
        tilts = rotations.matrix_from_quaternion(self._turns)
        self._upright = np.ascontiguousarray(np.einsum("sab,spb->spa", tilts, self._positions))
        from_middle = np.linalg.norm(self._latents - self._latents.mean(axis=0), axis=1)
        self._apart = 0.5 * float(np.median(from_middle))
        self._stages: dict[int, tuple[Observed, ...]] = {}
        self._handles, self._answered = handles, tuple[LatentForm, ...]()
        self._known = -1
        self.ask(Asked())
        smooth, _, fine = (1.0 / math.sqrt(form.style.parameters[2]) for form in self._forms)
        self.together, self._same_basin = SAME_PLACE * smooth, SAME_BASIN * fine

    def method(self, root: str) -> str:
        """The prior's own."""
        del root
        return self.prior.solving

    def ask(self, asked: Asked) -> None:
        """Use the previous frames and handle positions relative to a given root."""
        known = 0 if self.fps is None else min(len(asked.before), 2)
        if not known == self._known == 0:
            self._known = known
            if known not in self._stages:
                self._stages[known] = self.prior.observed(fps=self.fps, known=known)
            stages, whole = self._stages[known], float(self.prior.model.features.dimension)
            # Velocities that a frame does not show are the expected ones: no misfit, but they count in D (Eq. 3).
            observed = stages[-1].frame(asked.before)
            terms = observed.base, observed.ups, observed.contrasts, observed.base, 0.0
            self._forms = tuple(LatentForm(one.arrays._replace(features=whole), *terms) for one in stages)
        if (
            asked.points is not None and self._answers is not None
        ):  # a last stage, with poses from handles alone
            self.plan, fine = ANSWERED, self._forms[-1]
            style = fine.style._replace(noise=0.0 * fine.style.noise, floor=self._answers.covariance)
            self._answered = (fine._replace(style=style, answer=self._answers(asked.points), share=SHARE),)

    def onward(self, q: Q, state: X) -> Q:
        """If handles predicted part of the pose, the style's own pose at its latent point instead."""
        return np.concatenate([q[:ROOT_SIZE], self.prior.pose_at(state)]) if self._answered else q

    @cached_property
    def _answers(self) -> Answers | None:
        asked = self.prior.by_handles and len(self._handles) > 0
        return Answers(self.prior, self._handles) if asked else None

    # --- one style alone -------------------------------------------------------------------------------------------

    def starts(self, q: Q, targets: Targets, *, free_root: bool) -> list[Start]:
        """The active poses that fit the handles best, distinct from each other."""
        q = q.copy()
        if free_root and len(targets):
            q[:3], q[3:ROOT_SIZE] = self.place_root(targets)
        numbers = nearest_apart(self._positions, self._latents, q, targets, self._apart, STARTS)
        return [self._started(q, number) for number in numbers.tolist()]

    def resumed(self, q: Q, targets: Targets) -> X:
        """The latent point of a pose."""
        del targets
        return self.prior.place(q)[0]

    def moving(self, state: X) -> tuple[Array, Array]:
        """The latent point itself is the moving state."""
        x = state.copy()
        return x, x

    def forms(self, q: Q, state: X, steps: Steps) -> tuple[tuple[LatentForm, ...], Steps]:
        """From the annealed model to the model itself, and the stage with handle predictions."""
        del q, state
        return (*self._forms, *self._answered), steps

    def alternative(self, q: Q, targets: Targets, state: X) -> Start | None:
        """The active pose that fits the handles best, if it is in another basin."""
        if len(targets) == 0:
            return None
        number = elsewhere(self._positions, self._latents, q, targets, state, self._same_basin)
        return None if number < 0 else self._started(q, number)

    def score(self, q: Q, state: X) -> float:
        """L_IK (Eq. 3)."""
        form = self._forms[-1]
        return local_gaussian.objective(form.style, form.base, self._aims(form, q), q[ROOT_SIZE:], state)

    def latents(self, state: X) -> tuple[X, ...]:
        """The latent point."""
        return (state,)

    def objective(self, q: Q, x: X) -> tuple[float, X, Maps]:
        """L_IK (Eq. 3) of a pose, its gradient in x (Eq. 17) and in the pose's maps (Eq. 16)."""
        model, style = self.prior.model, self._forms[-1].style
        slopes = model.kernel.slopes_in_x(x[None], model.active_latents)
        (variance,), (in_variance,) = model.posterior.variance_slopes(x[None], *slopes)
        k, dk = (one[0] for one in slopes)
        gaps = q[ROOT_SIZE:] - self.prior.mean - k @ style.weights
        left = self._aims(self._forms[-1], q) - k @ style.checks
        misfit = float(style.precisions @ gaps**2 + left @ left)
        pull = style.precisions * gaps / variance
        in_x = x + 0.5 * (style.features - misfit / variance) / variance * in_variance
        in_x -= dk.T @ (style.weights @ pull + style.checks @ left / variance)
        value = 0.5 * (misfit / variance + style.features * np.log(variance) + float(x @ x))
        return float(value), in_x, pull

    def change(self, q: Q, recorded: Targets, targets: Targets) -> tuple[Maps, Float[Array, "maps maps"]]:
        """A Gaussian around the recorded pose: half as joints vary together there, half isotropic.

        An edit asks for a pose that was not recorded.
        """
        del recorded, targets
        _, covariance = self.prior.gaussian_at(self.prior.place(q)[0])
        alike = covariance * (EDIT_VARIANCE * len(covariance) / np.trace(covariance))
        return q[ROOT_SIZE:], 0.5 * (alike + EDIT_VARIANCE * np.eye(len(covariance)))

    def place_root(self, targets: Targets) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the active pose, at its own tilt, whose handles fit best after a rotation about the vertical."""
        root = np.empty(ROOT_SIZE)
        _place_root(self._upright, self._turns, np.ascontiguousarray(targets), root)
        return root[:3], root[3:]

    # --- as a part of a blend, or a frame of a sequence ------------------------------------------------------------

    def gaussian(self, q: Q, state: X, *, stage: int = -1) -> Gaussian:
        """The local shape for a pose moved as close as the style's own poses are, and the expected tilt.

        A pose between styles is unlike each of them. At its full distance it would drive the latent points away from
        the style's data, and so remove the style from the blend.
        """
        form = (*self._forms, *self._answered)[-1] if stage == -1 else self._forms[stage]
        maps, (mean, left, variance, misfit) = q[ROOT_SIZE:], self._misfit(form, q, state)
        near = math.sqrt(min(1.0, (len(maps) + len(left)) * variance / max(misfit, 1e-300)))
        aims, close = self._aims(form, q) - (1.0 - near) * left, mean + near * (maps - mean)
        self._local = local_gaussian.room(form.style, 0)
        local_gaussian.local_shape(form.style, form.base, aims, close, state, self._local)
        gap, covariance = np.zeros(len(q) - 1), np.zeros((len(q) - 1, len(q) - 1))
        expected = self._local.mean + form.share * (form.answer - self._local.mean)
        gap[ROOT_FREEDOMS:] = expected - q[ROOT_SIZE:]
        covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = self._local.covariance
        np.einsum("ii->i", covariance)[:ROOT_FREEDOMS] = FREE_ROOT
        if form.ups.shape[1] == 3:  # the root's rotation: to the expected tilt, free about the vertical
            up = rotations.matrix_from_quaternion(q[3:ROOT_SIZE])[1]
            across = min(3.0 * variance / float(form.ups[0] @ form.ups[0]), FREE_ROOT)
            stiffness = (np.eye(3) - np.outer(up, up)) / across
            turn = np.linalg.inv(stiffness + np.eye(3) / FREE_ROOT)
            covariance[3:ROOT_FREEDOMS, 3:ROOT_FREEDOMS] = turn
            tilted = local_gaussian.expected_up(form, self._local)
            gap[3:ROOT_FREEDOMS] = turn @ stiffness @ np.cross(tilted, up)
        self._stage = form
        return Gaussian(gap, covariance)

    def expectation(self, q: Q, state: X) -> tuple[Maps, Float[Array, "maps maps"]]:
        """The mean and covariance of poses around the latent point, exactly and without handles."""
        del q
        return self.prior.gaussian_at(state)

    def moved(self, q: Q, targets: Targets, state: X) -> X:
        """The latent point updated to a new pose that is moved close, by the Gaussian asked for last."""
        del targets
        gap = q[ROOT_SIZE:] - self._local.mean
        pull = np.linalg.solve(self._local.covariance, gap)
        near = math.sqrt(min(1.0, len(gap) / max(float(gap @ pull), 1e-300)))
        step = local_gaussian.latent_step(self._local, near * pull)
        reach = LATENT_REACH / math.sqrt(self._stage.style.parameters[2])
        return np.asarray(state + step * min(1.0, reach / max(float(np.linalg.norm(step)), 1e-300)))

    def misfit(self, q: Q, state: X) -> float:
        """L_IK under the fine model, but with misfits in units of its noise at every latent point."""
        style = self._forms[-1].style
        *_, variance, misfit = self._misfit(self._forms[-1], q, state)
        uncertainty = style.features * math.log(variance) + float(state @ state)
        return float(0.5 * (misfit * style.parameters[1] + uncertainty))

    # --- private ---------------------------------------------------------------------------------------------------

    def _started(self, q: Q, number: int) -> Start:
        """An active pose with the root of another, and its latent point, writable as every state of a solve is."""
        return Start(np.concatenate([q[:ROOT_SIZE], self._poses[number]]), self._latents[number].copy())

    def _aims(self, form: LatentForm, q: Q) -> Float[Array, "checks"]:
        """The residuals that the maps do not determine: the root's scaled up, and contrasts between motion and pose."""
        aims = np.concatenate([np.zeros(form.ups.shape[1]), form.contrasts])
        aim_up(q, form.ups, aims)
        return aims

    def _misfit(self, form: LatentForm, q: Q, x: X) -> tuple[Array, Array, float, float]:
        """At a latent point: the expected maps, the remaining aims, sigma^2 and the squared misfit."""
        style, aims, maps = form.style, self._aims(form, q), q[ROOT_SIZE:]
        curves, mean, left = curves_of(style.actives), np.empty(len(maps)), np.empty(len(aims))
        variance = local_gaussian.spread_at(style, x, curves, np.empty(len(x)))
        misfit = local_gaussian.misfit_at(style, form.base, aims, maps, curves.rows[0], mean, left)
        return mean, left, variance, misfit


@compiled
def _place_root(upright: Array, turns: Array, targets: Array, root: Array) -> None:
    """Fill in the root; `turns` rotate each of the upright poses to its own tilt."""
    w0, x0, y0, z0 = turns[closest_root(upright, targets, root, True)]
    w, x, y, z = root[3], root[4], root[5], root[6]
    root[3], root[4] = w * w0 - x * x0 - y * y0 - z * z0, w * x0 + x * w0 + y * z0 - z * y0
    root[5], root[6] = w * y0 - x * z0 + y * w0 + z * x0, w * z0 + x * y0 - y * x0 + z * w0


@compiled
def _squares(positions: Array, q: Array, targets: Array) -> Array:
    """Squared distances of the poses' handles from the targets, relative to the root of q."""
    seen, squares = in_root_frame(q, targets), np.zeros(len(positions))
    for n in range(len(positions)):
        for h in range(len(seen)):
            for a in range(3):
                squares[n] += (positions[n, h, a] - seen[h, a]) ** 2
    return squares


@compiled
def _apart(x: Array, y: Array, reach: float) -> bool:
    squared = 0.0
    for a in range(len(x)):
        squared += (x[a] - y[a]) ** 2
    return squared > reach * reach


@compiled
def elsewhere(positions: Array, latents: Array, q: Array, targets: Array, state: Array, basin: float) -> int:
    """The pose whose handles are closest to the targets, or -1 if it is in the basin of `state`."""
    best = int(np.argmin(_squares(positions, q, targets)))
    return best if _apart(latents[best], state, basin) else -1


@compiled
def nearest_apart(
    positions: Array, latents: Array, q: Array, targets: Array, apart: float, count: int
) -> Int[Array, "chosen"]:
    """The poses whose handles are closest to the targets, each farther than `apart` from those before it.

    Poses much farther from the targets than the best are left out.
    """
    distances = np.sqrt(_squares(positions, q, targets))
    chosen, held = np.empty(count, dtype=np.int64), 0
    farthest = PROMISING * distances.min() + CLOSE
    while held < count:
        best = -1
        for n in range(len(positions)):
            if distances[n] <= farthest and (best < 0 or distances[n] < distances[best]):
                clear = True
                for other in range(held):
                    clear = clear and _apart(latents[n], latents[chosen[other]], apart)
                if clear:
                    best = n
        if best < 0:
            break
        chosen[held] = best
        held += 1
    return chosen[:held]
