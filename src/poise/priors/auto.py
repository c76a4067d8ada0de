"""The auto prior: an expert model of the given clips, blended with the universal prior for everything else.

The expert is a gaussian, style or local model of the clips. The blend weights are chosen on clips held out from the
expert, or on the last part of a single clip: those that recover hidden joints best from a few handles. When the expert
predicts the handles far from their targets, the task is outside its training data, and its weight moves to the
universal prior. The distance at which this happens is measured on the held-out frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float

from poise.formats.tables import Range
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors import registry
from poise.priors.blend import BlendGuide, BlendPrior, Chart
from poise.priors.held_out import kept_from
from poise.priors.model_file import Stored
from poise.priors.poses import common_frames
from poise.priors.prior import Guide, Prior, Start, State
from poise.priors.universal.prior import UniversalPrior
from poise.schema import Schema, real
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

WEIGHTS = (0.02, 0.1, 0.25, 0.5, 0.75)  # candidate weights of the universal prior
HELD = 4  # one clip in this many is held out, or this fraction of a single one
TRIED = 60  # frames on which the weights are chosen
HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
KNOWN = 95.0  # percent of the held-out frames on which the expert keeps its full weight
LEAST = 0.025  # metres: an expert with a smaller handle error keeps its weight, whatever its held-out errors
NEVER = 1e6  # metres: the expert never fades


@dataclass(frozen=True)
class AutoOptions(registry.PriorOptions):
    """Options of the expert."""

    expert: Annotated[
        Literal["gaussian", "style", "local"] | None, "the kind of model made of the clips; gaussian"
    ] = None
    clusters: Annotated[int | None, Range(least=1), "how many clusters of a gaussian; 100"] = None


class AutoPrior(BlendPrior):
    """The universal prior and an expert on the clips, with weights chosen on held-out frames."""

    kind = "auto"
    about = "a model of the clips, with the universal prior for what they do not show"
    Options = AutoOptions
    schema = Schema(BlendPrior.schema.header, parts="components", later={"reach": (real(0.0, NEVER), NEVER)})

    def __init__(self, components: Sequence[Prior], weights: Sequence[float], reach: float = NEVER) -> None:
        super().__init__(components, weights)
        self.reach = reach  # metres: handle error of the expert above which it fades

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        expert: str = "gaussian",
        clusters: int | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> AutoPrior:
        """Learn from clips of one topology; the first clip's limb lengths are kept."""
        common_frames(motions)  # raises if the topologies differ
        options = registry.options_for(expert, {"clusters": clusters})
        own, held = _parted(motions)
        weight, reach = _chosen(UniversalPrior.learn(own), registry.learn(own, expert, options), held)
        progress(0.5)
        whole = registry.learn(motions, expert, options)
        progress(1.0)
        return cls([UniversalPrior.learn(motions), whole], [weight, 1.0 - weight], reach)

    @classmethod
    def restored(cls, stored: Stored) -> AutoPrior:
        """Create the prior from a file; space and limits follow from the components."""
        return cls(stored.parts, stored.header["weights"], stored.header["reach"])

    def header(self) -> dict[str, Any]:
        """The header of a blend, and the distance at which the expert fades."""
        return {**super().header(), "reach": self.reach}

    def on_body(self, skeleton: Skeleton) -> AutoPrior:
        """The same blend on a skeleton of the same topology and other limb lengths."""
        parts = [part.on_body(skeleton) for part in self.components]
        return kept_from(self, AutoPrior(parts, self.weights.tolist(), self.reach))

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """Return the guide for these handles."""
        if len(self.taking_part) == 1:
            return super().guide(handles, fps=fps)
        return FadingGuide(self, [part.guide(handles, fps=fps) for part in self.components], handles)


class FadingGuide(BlendGuide):
    """A blend of the universal prior and a fading expert; the last element of its state is the expert's factor."""

    def __init__(self, prior: AutoPrior, guides: Sequence[Guide], handles: Handles) -> None:
        super().__init__(prior, guides)
        self._reach, self._handles, self._given_leader = prior.reach, handles, self._leader
        # the universal prior can place a root
        self._free_leader = self._leader if guides[1].plan.smooth else 0

    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """Those of the blend."""
        self._leader = self._free_leader if free_root else self._given_leader
        found = super().starts(q, targets, free_root=free_root)
        return [Start(one.q, self._with_rest(one.q, one.state, targets)) for one in found]

    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> tuple[State, ...]:
        """The states of all components."""
        return self._with_rest(q, super().resumed(q, targets), targets)

    def pulled(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: tuple[State, ...]
    ) -> tuple[State, ...]:
        """The updated states of all components; the expert's factor is unchanged."""
        return (*super().pulled(q, targets, state), state[-1])

    def shared(self, state: tuple[State, ...]) -> Iterator[tuple[float, Guide, Chart, State]]:
        """The components, with the expert's weight reduced by its factor and the rest given to the universal prior."""
        *own, left = state
        (_, people, *first), (_, expert, *second) = super().shared(tuple(own))
        weight = left * self._parts[1][1]
        yield (1.0 - weight, people, *first)
        yield (weight, expert, *second)

    def _with_rest(self, q: Array, state: tuple[State, ...], targets: Array) -> tuple[State, ...]:
        guide, _, chart = self._parts[1]
        gap = _gap(guide, chart.own(q), state[1], self._handles, targets)
        return (*state, float(np.exp(-2.0 * max(0.0, gap / self._reach - 1.0) ** 2)))


def _gap(guide: Guide, q: Array, state: State, handles: Handles, targets: Float[Array, "handles 3"]) -> float:
    """Root-mean-square distance of the targets from where a guide expects the handles."""
    if len(targets) == 0:
        return 0.0
    mean, _ = guide.expectation(q, state)
    points = guide.space.points(np.concatenate([q[:ROOT_SIZE], mean])[None], handles)[0]
    return float(np.sqrt(np.mean(np.sum((points - targets) ** 2, axis=1))))


# --- choice of weights on held-out frames --------------------------------------------------------------------------


def _parted(motions: Sequence[Motion]) -> tuple[list[Motion], list[Motion]]:
    """Training clips and held-out clips for the choice of the weights."""
    if len(motions) >= HELD:
        held = list(motions[HELD - 1 :: HELD])
        return [motion for motion in motions if all(motion is not other for other in held)], held
    ends = [max(1, len(motion) * (HELD - 1) // HELD) for motion in motions]
    parts = list(zip(motions, ends, strict=True))
    return [motion[:end] for motion, end in parts], [
        motion[end:] for motion, end in parts if end < len(motion)
    ]


def _chosen(people: Prior, expert: Prior, held: Sequence[Motion]) -> tuple[float, float]:
    """The universal prior's weight with the lowest held-out error, and the expert's handle error on those frames."""
    errors, gaps = np.zeros(len(WEIGHTS)), []
    for clip in held:
        few = clip[:: max(1, len(clip) * len(held) // TRIED)]
        universal, own = people.on_body(clip.skeleton), expert.on_body(clip.skeleton)
        gaps += [
            _gap(guide, start.q, start.state, handles, targets)
            for guide, start, handles, targets, _ in _asked(own, few)
        ]
        for number, weight in enumerate(WEIGHTS):
            errors[number] += len(few) * _error(BlendPrior([universal, own], [weight, 1.0 - weight]), few)
    reach = max(float(np.percentile(gaps, KNOWN)), LEAST) if gaps else NEVER
    return WEIGHTS[int(np.argmin(errors))], reach


def _asked(prior: Prior, clip: Motion) -> Iterator[tuple[Guide, Start, Handles, Array, Array]]:
    """Yield every frame of a clip as seen by a prior: guide, start, handles, targets and recorded pose."""
    space: PoseSpace = prior.space
    handles = space.handles([role for role in HANDLES if role in space.skeleton.roles])
    guide = prior.guide(handles)
    for q in space.q_from_frames(clip.root_positions, clip.rotations):
        targets = space.points(q[None], handles)[0]
        yield guide, guide.starts(q, targets, free_root=False)[0], handles, targets, q


def _error(prior: Prior, clip: Motion) -> float:
    """Mean angular joint error after one step from the prior's expectation to the handles."""
    space, missed = prior.space, []
    for guide, start, handles, targets, q in _asked(prior, clip):
        mean, covariance = guide.expectation(start.q, start.state)
        at = np.concatenate([q[:ROOT_SIZE], mean])
        points, jacobian = space.handle_positions(at, handles)
        rows = jacobian[:, ROOT_FREEDOMS:]
        spread = rows @ covariance
        pull = np.linalg.solve(spread @ rows.T + 1e-6 * np.eye(len(rows)), (targets - points).ravel())
        at[ROOT_SIZE:] += spread.T @ pull
        found, true = (space.frames_from_q(pose)[1] for pose in (at, q))
        missed.append(rotations.geodesic_distance(found, true)[space.moving].mean())
    return float(np.mean(missed)) if missed else 0.0
