"""A style as a guide: starts at active poses, a latent point as its state, three stages from smooth to fine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.geometry import rotations
from poise.geometry.alignment import closest_root
from poise.priors.forms import FREE_ROOT
from poise.priors.latent import local_gaussian as shape
from poise.priors.latent.form import LatentForm, aim_up, expected_up
from poise.priors.latent.observed import Observed
from poise.priors.poses import handle_positions
from poise.priors.predicting import in_root_frame
from poise.priors.prior import Guide, Information, Plan, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles

if TYPE_CHECKING:
    from poise.priors.latent.prior import LatentPrior

Array = np.ndarray

STARTS = 3
PROMISING, CLOSE = 3.0, 0.1  # of the best pose's distance, and metres, within which others are starts too
SAME_BASIN = 1.0  # of a kernel's width: an active pose no farther than that promises no other optimum
SAME_PLACE = 0.25  # of a kernel's width, within which two starts have come together
EDIT_VARIANCE = 0.01  # rad^2, on average over the freedoms, that an edit of a recorded pose may change
LATENT_REACH = 1.0  # of a kernel's width that a latent point may go in one round of a blend


class LatentGuide(Guide):
    """A style for one set of handles; its state is a latent point."""

    plan = Plan(smooth=((4, 0, 0),), finer=((0, 3, 5),), tracked=((0, 0, 4),), dragged=((5, 0, 0),))

    def __init__(self, prior: LatentPrior, handles: Handles, fps: float | None) -> None:
        model, maps = prior.model, prior.mean.size
        self.prior, self.space, self._fps = prior, prior.space, fps
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
        self._known = -1
        self.watch(())
        smooth, _, fine = (1.0 / math.sqrt(form.style.parameters[2]) for form in self._forms)
        self._same_place, self._same_basin = SAME_PLACE * smooth, SAME_BASIN * fine

    def watch(self, before: Sequence[Float[Array, "size"]]) -> None:
        """Take in the frames before, the newest first; their motion counts if the frame rate is known."""
        known = 0 if self._fps is None else min(len(before), 2)
        if known == self._known == 0:
            return
        self._known = known
        if known not in self._stages:
            self._stages[known] = self.prior.observed(fps=self._fps, known=known)
        stages = self._stages[known]
        frame = stages[-1].frame(before)
        self._forms = tuple(
            LatentForm(stage.arrays, frame.base, frame.ups, frame.contrasts) for stage in stages
        )

    # --- one style alone -------------------------------------------------------------------------------------------

    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """The active poses that suit the handles best, apart from each other."""
        q = q.copy()
        if free_root and len(targets):
            q[:3], q[3:ROOT_SIZE] = self.place_root(targets)
        numbers = self._nearest(in_root_frame(q, targets), STARTS)
        return [Start(self._posed(q, number), self._latents[number]) for number in numbers]

    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> Float[Array, "latent"]:
        """A pose's place in the latent space."""
        del targets
        return self.prior.place(q)[0]

    def moving(self, state: Float[Array, "latent"]) -> tuple[Array, Array]:
        """The latent point itself moves."""
        x = state.copy()
        return x, x

    def forms(
        self, q: Float[Array, "size"], state: Float[Array, "latent"], steps: Steps
    ) -> tuple[tuple[LatentForm, ...], Steps]:
        """From the annealed model to the model itself."""
        del q, state
        return self._forms, steps

    def alternative(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: Float[Array, "latent"]
    ) -> Start | None:
        """The active pose that suits the handles best, if it lies elsewhere."""
        if len(targets) == 0:
            return None
        number = self._nearest(in_root_frame(q, targets), 1)[0]
        elsewhere = math.dist(self._latents[number], state) > self._same_basin
        return Start(self._posed(q, number), self._latents[number]) if elsewhere else None

    def same(self, state: Float[Array, "latent"], other: Float[Array, "latent"]) -> bool:
        """Whether two latent points have come together."""
        return math.dist(state, other) <= self._same_place

    def latents(self, state: Float[Array, "latent"]) -> tuple[Float[Array, "latent"], ...]:
        """The latent point."""
        return (state,)

    def objective(
        self, q: Float[Array, "size"], x: Float[Array, "latent"]
    ) -> tuple[float, Float[Array, "latent"], Float[Array, "maps"]]:
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

    def expectation(
        self, q: Float[Array, "size"], state: Float[Array, "latent"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """The poses at and around the latent point."""
        del q
        return self.prior.gaussian_at(state)

    def change(
        self, q: Float[Array, "size"], recorded: Float[Array, "handles 3"], targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Around the recorded pose: half of the change as joints vary together there, half of any kind.

        An edit asks for what was not recorded.
        """
        del recorded, targets
        _, covariance = self.prior.gaussian_at(self.prior.place(q)[0])
        alike = covariance * (EDIT_VARIANCE * len(covariance) / np.trace(covariance))
        return q[ROOT_SIZE:], 0.5 * (alike + EDIT_VARIANCE * np.eye(len(covariance)))

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the active pose whose handles, kept at its own tilt, fit best when turned about the vertical."""
        root = np.empty(ROOT_SIZE)
        best = closest_root(self._upright, np.ascontiguousarray(targets), root, True)
        return root[:3], rotations.multiply(root[3:], self._turns[best])

    # --- as a part of a blend, or a frame of a sequence ------------------------------------------------------------

    def gaussian(
        self, q: Float[Array, "size"], state: Float[Array, "latent"], *, stage: int = -1
    ) -> Information:
        """The local shape for a pose brought as near as the style's own poses are, and the tilt it expects.

        A pose between styles is unlike each of them. Counted in full, that would drive the latent points to where a
        style knows nothing, and so take it out of the blend.
        """
        form, maps = self._forms[stage], q[ROOT_SIZE:]
        mean, left, variance, misfit = self._misfit(form, q, state)
        near = math.sqrt(min(1.0, form.style.features * variance / max(misfit, 1e-300)))
        aims = self._aims(form, q) - (1.0 - near) * left
        self._local = shape.room(form.style)
        shape.local_shape(form.style, form.base, aims, mean + near * (maps - mean), state, self._local)
        self._stage, self._precision = stage, np.linalg.inv(self._local.covariance)
        pull, precision = np.zeros(len(q) - 1), np.zeros((len(q) - 1, len(q) - 1))
        pull[ROOT_FREEDOMS:] = self._precision @ (self._local.mean - maps)
        precision[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = self._precision
        if form.ups.shape[1] == 3:
            self._lean(form, q, variance, pull, precision)
        return Information(pull, precision)

    def pulled(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: Float[Array, "latent"]
    ) -> Float[Array, "latent"]:
        """The latent point moved by what a new pose, brought near, implies."""
        del targets
        gap = q[ROOT_SIZE:] - self._local.mean
        pull = self._precision @ gap
        near = math.sqrt(min(1.0, len(gap) / max(float(gap @ pull), 1e-300)))
        step = shape.latent_step(self._local, near * pull)
        reach = LATENT_REACH / math.sqrt(self._forms[self._stage].style.parameters[2])
        return np.asarray(state + step * min(1.0, reach / max(float(np.linalg.norm(step)), 1e-300)))

    def misfit(self, q: Float[Array, "size"], state: Float[Array, "latent"]) -> float:
        """L_IK under the fine model, but with misfits in units of its noise, wherever the latent point is."""
        form = self._forms[-1]
        *_, variance, misfit = self._misfit(form, q, state)
        uncertainty = form.style.features * math.log(variance) + float(state @ state)
        return float(0.5 * (misfit * form.style.parameters[1] + uncertainty))

    # --- private ---------------------------------------------------------------------------------------------------

    def _nearest(self, targets: Float[Array, "handles 3"], count: int) -> list[int]:
        """Active poses whose handles come closest to targets in the root's frame, apart from each other."""
        return nearest_apart(self._positions, self._latents, targets, self._apart, count).tolist()

    def _posed(self, q: Float[Array, "size"], number: int) -> Float[Array, "size"]:
        """An active pose at the root of another."""
        return np.concatenate([q[:ROOT_SIZE], self._poses[number]])

    def _aims(self, form: LatentForm, q: Float[Array, "size"]) -> Float[Array, "checks"]:
        """What the pose does not decide: the scaled up of its root, and how far motion and pose disagree."""
        aims = np.concatenate([np.zeros(form.ups.shape[1]), form.contrasts])
        aim_up(q, form.ups, aims)
        return aims

    def _misfit(
        self, form: LatentForm, q: Float[Array, "size"], x: Float[Array, "latent"]
    ) -> tuple[Array, Array, float, float]:
        """At the latent point: the prediction, what it leaves of the aims, sigma^2 and the squared misfit."""
        style, aims = form.style, self._aims(form, q)
        count, latent = style.actives.shape
        k, mean, left = np.empty(count), np.empty(len(q) - ROOT_SIZE), np.empty(len(aims))
        variance = shape.spread_at(style, x, k, np.empty((count, latent)), np.empty(latent))
        misfit = shape.misfit_at(style, form.base, aims, q[ROOT_SIZE:], k, mean, left)
        return mean, left, variance, misfit

    def _lean(self, form: LatentForm, q: Array, variance: float, pull: Array, precision: Array) -> None:
        """The root's turn: known across the vertical as the style expects it, free about it."""
        up = rotations.matrix_from_quaternion(q[3:ROOT_SIZE])[1]
        across = min(3.0 * variance / float(form.ups[0] @ form.ups[0]), FREE_ROOT)
        stiffness = (np.eye(3) - np.outer(up, up)) / across
        pull[3:ROOT_FREEDOMS] = stiffness @ np.cross(expected_up(form, self._local), up)
        precision[3:ROOT_FREEDOMS, 3:ROOT_FREEDOMS] = stiffness


@compiled
def nearest_apart(
    positions: Array, latents: Array, targets: Array, apart: float, count: int
) -> Int[Array, "chosen"]:
    """The poses whose handles are closest to targets, each farther than `apart` from those before it.

    Poses that are much farther from the targets than the best promise nothing, and are left out.
    """
    distances = np.empty(len(positions))
    for n in range(len(positions)):
        total = 0.0
        for h in range(len(targets)):
            for a in range(3):
                total += (positions[n, h, a] - targets[h, a]) ** 2
        distances[n] = math.sqrt(total)
    chosen, held = np.empty(count, dtype=np.int64), 0
    farthest = PROMISING * distances.min() + CLOSE
    while held < count:
        best = -1
        for n in range(len(positions)):
            if distances[n] <= farthest and (best < 0 or distances[n] < distances[best]):
                clear = True
                for other in range(held):
                    gap = 0.0
                    for a in range(latents.shape[1]):
                        gap += (latents[n, a] - latents[chosen[other], a]) ** 2
                    clear = clear and gap > apart * apart
                if clear:
                    best = n
        if best < 0:
            break
        chosen[held] = best
        held += 1
    return chosen[:held]
