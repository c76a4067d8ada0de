"""Blends of priors in the log domain, of any number and kind (Grochow et al. 2004, 6.3, app. C).

A blend's density is the product of its components' densities, each to the power of its weight (Eq. 10). If each
component is a Gaussian (m_i, S_i) around the current pose, so is the blend: its precision is the weighted sum of
theirs, its mean the average of theirs by weighted precision. Components may have other reference rotations and other
still joints; their Gaussians are re-expressed in the blend's pose space, to first order at the current pose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.errors import InvalidValueError, SkeletonError
from poise.geometry import rotations
from poise.priors.evidence import kept_from
from poise.priors.forms import fixed
from poise.priors.model_file import packed
from poise.priors.prior import ALL, Asked, Gaussian, Guide, Information, Plan, Prior, Start, State, Steps
from poise.priors.registry import Storable, Stored
from poise.savable import Savable
from poise.schema import Schema, real, record, several
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, exponential
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array, Points, PoseVector

STARTS = 2
MOST_COMPONENTS = 64
STILL_VARIANCE = 1e-4  # rad^2: variance of a joint in a component in which it is still


class Chart:
    """Conversion between the exponential maps of a component and those of the blend."""

    def __init__(self, own: PoseSpace, common: PoseSpace) -> None:
        moving = common.moving
        back = rotations.conjugate(own.references[moving])
        self._between = rotations.multiply(back, common.references[moving])
        known = np.repeat(np.isin(moving, own.moving), 3)
        self._known, self._still = np.flatnonzero(known), np.flatnonzero(~known)

    def own_maps(self, maps: Float[Array, "common"]) -> Float[Array, "own"]:
        """Convert a pose of the blend to the component's maps."""
        return np.asarray(_turned(self._between, maps)[self._known])

    def common_maps(self, own: Float[Array, "own"]) -> Float[Array, "common"]:
        """Convert a pose of the component to the blend's maps; its still joints are at their references."""
        full = np.zeros(len(self._known) + len(self._still))
        full[self._known] = own
        return np.asarray(_turned(rotations.conjugate(self._between), full))

    def own(self, q: PoseVector) -> Float[Array, "own"]:
        """Convert a pose vector of the blend to the component's."""
        return np.concatenate([q[:ROOT_SIZE], self.own_maps(q[ROOT_SIZE:])])

    def common(self, q: Float[Array, "own"]) -> PoseVector:
        """Convert a pose vector of the component to the blend's."""
        return np.concatenate([q[:ROOT_SIZE], self.common_maps(q[ROOT_SIZE:])])

    def seen(self, q: PoseVector, own: Information) -> Information:
        """A component's Gaussian at a pose of the blend; joints still in the component get a small variance."""
        maps = q[ROOT_SIZE:]
        turned = _turned(self._between, maps)
        freedoms = ROOT_FREEDOMS + len(maps)
        known = np.concatenate([np.arange(ROOT_FREEDOMS), ROOT_FREEDOMS + self._known])
        still = ROOT_FREEDOMS + self._still
        pull, whole = np.zeros(freedoms), np.zeros((freedoms, freedoms))
        pull[known], whole[np.ix_(known, known)] = own
        pull[still], whole[still, still] = -turned[self._still] / STILL_VARIANCE, 1.0 / STILL_VARIANCE
        towards, stiffness = np.empty_like(pull), np.empty_like(whole)
        _re_expressed(_jacobians(maps, turned), whole, pull, towards, stiffness)
        return Information(towards, stiffness)


@compiled
def _turned(between: Array, maps: Array) -> Array:
    """log(between exp(e)) of every joint."""
    out = np.empty(len(maps))
    for j in range(len(between)):
        e, p = maps[3 * j : 3 * j + 3], between[j]
        angle = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
        share = math.sin(0.5 * angle) / angle if angle > 1e-9 else 0.5
        w, x, y, z = math.cos(0.5 * angle), share * e[0], share * e[1], share * e[2]
        turned = (
            p[0] * x + p[1] * w + p[2] * z - p[3] * y,
            p[0] * y - p[1] * z + p[2] * w + p[3] * x,
            p[0] * z + p[1] * y - p[2] * x + p[3] * w,
        )
        real = p[0] * w - p[1] * x - p[2] * y - p[3] * z
        sine = math.sqrt(turned[0] ** 2 + turned[1] ** 2 + turned[2] ** 2)
        sign = 1.0 if real >= 0.0 else -1.0
        scale = 2.0 * sign * math.atan2(sine, sign * real) / sine if sine > 1e-12 else 2.0 * sign
        for a in range(3):
            out[3 * j + a] = scale * turned[a]
    return out


@compiled
def _jacobians(maps: Array, turned: Array) -> Array:
    """d turned / d maps: exp(e + d) = exp(e) exp(Jr(e) d) on both sides, joint by joint."""
    count = len(maps) // 3
    blocks, before, after = np.empty((2 + count, 3, 3)), np.empty(9), np.empty(9)
    blocks[:2] = np.eye(3)
    for j in range(count):
        _, jacobian = exponential(maps[3 * j], maps[3 * j + 1], maps[3 * j + 2])
        _, own = exponential(turned[3 * j], turned[3 * j + 1], turned[3 * j + 2])
        before[:], after[:] = jacobian, own
        blocks[2 + j] = np.linalg.solve(after.reshape(3, 3), before.reshape(3, 3))
    return blocks


@compiled
def _re_expressed(blocks: Array, whole: Array, pull: Array, towards: Array, stiffness: Array) -> None:
    """J' pull and J' whole J for a Jacobian of one block per joint."""
    count = len(blocks)
    right = np.empty((len(pull), 3))
    for j in range(count):
        own = blocks[j]
        for a in range(3):
            towards[3 * j + a] = 0.0
            for b in range(3):
                towards[3 * j + a] += own[b, a] * pull[3 * j + b]
        np.dot(np.ascontiguousarray(whole[:, 3 * j : 3 * j + 3]), own, right)
        for i in range(count):
            for a in range(3):
                for c in range(3):
                    total = 0.0
                    for b in range(3):
                        total += blocks[i, b, a] * right[3 * i + b, c]
                    stiffness[3 * i + a, 3 * j + c] = total


class BlendPrior(Savable):
    """Priors of one skeleton with weights that sum to one."""

    kind = "blend"
    schema = Schema(
        {
            "components": several(record({}), least=2, most=MOST_COMPONENTS),
            "weights": several(real(0.0, 1.0), least=2, most=MOST_COMPONENTS),
        },
        parts="components",
    )

    def __init__(self, components: Sequence[Prior], weights: Sequence[float]) -> None:
        self.components, self.weights = tuple(components), _checked(components, weights)
        self.taking_part = tuple(np.flatnonzero(self.weights > 0.0).tolist())
        parts, shares = [self.components[k] for k in self.taking_part], self.weights[list(self.taking_part)]
        self.space, self.limits = parts[0].space, parts[0].limits
        if (
            len(parts) > 1
        ):  # joints that move in any part, about the mean reference; the first part's limb lengths
            references = rotations.mean(np.stack([part.space.references for part in parts]), shares)
            moving = np.any([part.space.is_moving for part in parts], axis=0)
            self.space = PoseSpace(parts[0].space.skeleton, references=references, moving=moving)
        self.charts = [Chart(part.space, self.space) for part in parts]
        self.parts = list(zip(parts, shares.tolist(), self.charts, strict=True))
        """The components with positive weight, each with its weight and chart."""
        if len(parts) > 1:
            self.limits = _common_limits(parts, self.charts, self.space)

    @property
    def summary(self) -> str:
        """A short description."""
        return f"{len(self.components)} models, by weights {', '.join(f'{weight:.2f}' for weight in self.weights)}"

    @classmethod
    def restored(cls, stored: Stored) -> BlendPrior:
        """Create the prior from a file; space and limits follow from the components."""
        return cls(stored.parts, stored.header["weights"])

    def arrays(self) -> dict[str, Array]:
        """The arrays of all components, with each name prefixed by the component's number."""
        kept = {}
        for number, component in enumerate(self.components):
            arrays, _ = packed(cast(Storable, component))
            kept.update({f"{number}.{name}": value for name, value in arrays.items()})
        return kept

    def header(self) -> dict[str, Any]:
        """The headers of all components, and their weights."""
        headers = [packed(cast(Storable, component))[1] for component in self.components]
        return {"components": headers, "weights": self.weights.tolist()}

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The weighted mean of the components' means."""
        means = [weight * chart.common_maps(part.mean) for part, weight, chart in self.parts]
        return np.asarray(np.sum(means, axis=0))

    def on_body(self, skeleton: Skeleton) -> BlendPrior:
        """The same blend on a skeleton of the same topology and other limb lengths."""
        parts = [component.on_body(skeleton) for component in self.components]
        return kept_from(self, BlendPrior(parts, self.weights.tolist()))

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """Return the guide for these handles; if one component has all the weight, its own guide."""
        guides = [part.guide(handles, fps=fps) for part, _, _ in self.parts]
        return guides[0] if len(guides) == 1 else BlendGuide(self, guides)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """The known poses of all components."""
        parts = [(part.known_poses(), chart) for part, _, chart in self.parts]
        maps = np.concatenate([[chart.common_maps(pose) for pose in poses] for (poses, _), chart in parts])
        return maps, np.concatenate([ups for (_, ups), _ in parts])

    def log_likelihood(self, q: PoseVector) -> float:
        """The weighted sum of the components' log densities (Eq. 10, up to its constant)."""
        return float(sum(weight * part.log_likelihood(own) for part, weight, own in self._seen(q)))

    def percentile(self, q: PoseVector) -> float:
        """The weighted mean of the components' percentiles; a blend has no recorded poses of its own."""
        return float(sum(weight * part.percentile(own) for part, weight, own in self._seen(q)))

    def _seen(self, q: PoseVector) -> list[tuple[Prior, float, Float[Array, "own"]]]:
        q = self.space.checked(q)
        return [(part, weight, chart.own(q)) for part, weight, chart in self.parts]


class BlendGuide(Guide):
    """The components' guides by weight; its state is a tuple of theirs, one latent point per style (Eq. 9).

    In each round every component gives its Gaussian around the current pose, the solve runs under their blend, and
    each component updates its state to the new pose.
    """

    plan = Plan(
        smooth=((ALL, 0, 0),) * 2,
        finer=((0, ALL, 0), (0, 0, ALL), (0, 0, ALL)),
        tracked=((0, 0, ALL),) * 2,
    )

    def __init__(self, prior: BlendPrior, guides: Sequence[Guide]) -> None:
        self.space = prior.space
        weights, charts = zip(*((weight, chart) for _, weight, chart in prior.parts), strict=True)
        self._parts = tuple(zip(guides, weights, charts, strict=True))
        self.faces = any(guide.faces for guide in guides)
        several = [bool(guide.plan.smooth) for guide in guides]
        self._leader = several.index(True) if any(several) else int(np.argmax(weights))
        if not any(guide.plan.tracked for guide in guides):  # no component has a state to warm-start from
            self.plan = Plan(finer=((0, 0, ALL),) * 3)

    def ask(self, asked: Asked) -> None:
        """Ask every component, with previous frames in its own coordinates; blends do not use handle predictions."""
        for guide, _, chart in self._parts:
            own = [chart.own(q) for q in asked.before]
            guide.ask(Asked(own, asked.facing, free_root=asked.free_root))

    def starts(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[Start]:
        """The starts of the first component with several, or of the one with the largest weight."""
        guide, _, chart = self._parts[self._leader]
        found = []
        for start in guide.starts(chart.own(q), targets, free_root=free_root)[:STARTS]:
            common = chart.common(start.q)
            states = [
                start.state if other is guide else other.resumed(own.own(common), targets)
                for other, _, own in self._parts
            ]
            found.append(Start(common, tuple(states)))
        return found

    def resumed(self, q: PoseVector, targets: Points) -> tuple[State, ...]:
        """The states of all components."""
        return tuple(guide.resumed(chart.own(q), targets) for guide, _, chart in self._parts)

    def latents(self, state: tuple[State, ...]) -> tuple[Float[Array, "latent"], ...]:
        """The latent points of all styles."""
        return tuple(x for _, guide, _, own in self.shared(state) for x in guide.latents(own))

    def gaussian(self, q: PoseVector, state: tuple[State, ...], *, stage: int = -1) -> Gaussian:
        """The components' Gaussians, each to the power of its weight (Eq. 10)."""
        found = []
        for weight, guide, chart, own in self.shared(state):
            part = guide.gaussian(chart.own(q), own, stage=stage).information()
            found.append((weight, chart.seen(q, part)))
        return weighed(found).gaussian()

    def forms(self, q: PoseVector, state: tuple[State, ...], steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """The blend's Gaussian; also where the root is free, its tilt follows the components' expectation."""
        stage = int(np.flatnonzero(steps)[-1])
        gap, covariance, _ = self.gaussian(q, state, stage=stage)
        expected = self.space.integrate(q, gap)
        return fixed(expected[ROOT_SIZE:], covariance, root=expected[:ROOT_SIZE]), (steps[stage],)

    def moved(self, q: PoseVector, targets: Points, state: tuple[State, ...]) -> tuple[State, ...]:
        """The updated states of all components."""
        return tuple(guide.moved(chart.own(q), targets, own) for _, guide, chart, own in self.shared(state))

    def score(self, q: PoseVector, state: tuple[State, ...]) -> float:
        """The weighted sum of the components' misfits."""
        parts = self.shared(state)
        return sum(weight * guide.misfit(chart.own(q), own) for weight, guide, chart, own in parts)

    def shared(self, state: tuple[State, ...]) -> Iterator[tuple[float, Guide, Chart, State]]:
        """Every component's weight, guide, chart and state."""
        for (guide, weight, chart), own in zip(self._parts, state, strict=True):
            yield weight, guide, chart, own


def weighed(parts: Iterable[tuple[float, Information]]) -> Information:
    """The weighted sum of Gaussians in the log domain."""
    pulls, precisions = zip(*((weight * pull, weight * own) for weight, (pull, own) in parts), strict=True)
    return Information(np.sum(pulls, axis=0), np.sum(precisions, axis=0))


def _checked(components: Sequence[Prior], weights: Sequence[float]) -> Float[Array, "components"]:
    numbers = np.array(weights, dtype=np.float64)
    if len(components) < 2 or numbers.shape != (len(components),):
        raise InvalidValueError(
            f"a blend needs at least two models, each with a weight; got {len(components)} and {numbers.size} weights"
        )
    if not np.all(np.isfinite(numbers)) or numbers.min() < 0.0 or abs(numbers.sum() - 1.0) > 1e-6:
        raise InvalidValueError(
            f"weights must be between 0 and 1 and sum to 1; got {', '.join(f'{w:g}' for w in numbers)}"
        )
    for component in components[1:]:
        if not component.space.skeleton.same_topology(components[0].space.skeleton):
            raise SkeletonError("blended models must have the same joints with the same parents")
    return numbers / numbers.sum()


def _common_limits(parts: Sequence[Prior], charts: Sequence[Chart], space: PoseSpace) -> JointLimits | None:
    """The union of the parts' joint limits: the box around the re-expressed corners of each."""
    corners = []
    for part, chart in zip(parts, charts, strict=True):
        if part.limits is None:
            return None
        lower, upper = (side[part.space.moving] for side in (part.limits.lower, part.limits.upper))
        for number in range(8):
            high = np.array([number >> axis & 1 for axis in range(3)], dtype=np.bool_)
            corners.append(chart.common_maps(np.where(high, upper, lower).ravel()))
    least, most = np.zeros((2, len(space.skeleton), 3))
    least[space.moving] = np.min(corners, axis=0).reshape(-1, 3)
    most[space.moving] = np.max(corners, axis=0).reshape(-1, 3)
    return JointLimits(space.references, least, most)
