"""The auto prior: expert models of the given clips, blended with the universal prior for everything else.

The experts are a gaussian, a style and a local model of the clips, which err in different ways, or one of them. Those
that take part, and their weights, are chosen on clips held out from the experts, or on parts of a single clip: the
blends that recover hidden joints best from a few handles. A few held-out frames are weak evidence, so the choice is
made on many random selections of them, and the weights are the mean of all choices (bagging, Breiman 1996).
When the first expert predicts the handles far from their targets, the task is outside its training data, and the
experts' weight moves to the universal prior. The distance at which this happens is measured on the held-out frames.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from poise.formats.tables import Range
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors import registry
from poise.priors.blend import BlendGuide, BlendPrior, Chart, weighed
from poise.priors.evidence import kept_from
from poise.priors.poses import common_frames
from poise.priors.prior import ALL, Guide, Information, Plan, Prior, Start, State
from poise.priors.registry import Stored
from poise.priors.universal.prior import UniversalPrior
from poise.schema import Schema, real
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array, Points, PoseVector

WEIGHTS = (0.005, 0.02, 0.1, 0.25, 0.5, 0.75)  # candidate weights of the universal prior
HELD = 4  # one clip in this many is held out; of fewer clips, this fraction of each
PARTS = (1, 3)  # which of these fractions are held out in turn: a gap in the clip, and its end
TRIED = 60  # frames on which the weights are chosen
FEWEST = 16  # frames of which all kinds of experts are learned; of fewer, only a gaussian
TOGETHER = 5  # consecutive ones of them are selected together
SELECTIONS = 200  # random selections of held-out frames
SMALL = 0.05  # experts with a smaller mean weight do not take part
HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
KNOWN = 95.0  # percent of the frames of every held-out clip on which the experts keep their full weight
LEAST = 0.025  # metres: experts with a smaller handle error keep their weight, whatever their held-out errors
NEVER = 1e6  # metres: the experts never fade
EXPERTS: dict[str, dict[str, Any]] = {"gaussian": {}, "style": {"dimensions": 3, "active": 100}, "local": {}}
STEPS = 3  # linear steps to the handles
NOISE = 1e-6  # metres squared: variance of a handle in them
ROUNDS = 2  # solves under the Gaussian of several experts, each around the result of the one before


@dataclass(frozen=True)
class AutoOptions(registry.PriorOptions):
    """Options of the experts."""

    expert: Annotated[
        Literal["gaussian", "style", "local"] | None,
        "the only kind of model made of the clips; by default those that predict held-out frames best",
    ] = None
    clusters: Annotated[
        int | None, Range(least=1), "the number of clusters of its gaussian (default 100)"
    ] = None


class AutoPrior(BlendPrior):
    """The universal prior and experts on the clips, with weights chosen on held-out frames."""

    kind = "auto"
    about = "a model of the clips, with the universal prior for what they do not show"
    Options = AutoOptions
    schema = Schema(BlendPrior.schema.header, parts="components", later={"reach": (real(0.0, NEVER), NEVER)})

    def __init__(self, components: Sequence[Prior], weights: Sequence[float], reach: float = NEVER) -> None:
        super().__init__(components, weights)
        self.reach = reach  # metres: handle error of the first expert above which all fade

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        expert: str | None = None,
        clusters: int | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> AutoPrior:
        """Learn from clips of one topology; the first clip's limb lengths are kept."""
        common_frames(motions)  # raises if the topologies differ
        if sum(map(len, motions)) < FEWEST:
            expert = expert or "gaussian"
        kinds = {kind: dict(options) for kind, options in EXPERTS.items() if expert in (None, kind)}
        kinds[next(iter(kinds))]["clusters"] = clusters
        found, folds = [], _parted(motions)
        for number, (own, held) in enumerate(folds):
            share = partial(_share, progress, 0.65 * number / len(folds), 0.35 / len(folds))
            found.append(_judged([UniversalPrior.learn(own), *_learned(own, kinds, share)], held))
        errors, gaps = (np.concatenate(parts) for parts in zip(*found, strict=True))
        candidates = np.array(_candidates(len(kinds)))
        weights, reach = candidates[0].tolist(), NEVER
        if len(gaps):
            weights, reach = bagged(candidates, errors), max(float(gaps.max()), LEAST)
        kinds = {kind: kinds[kind] for kind, weight in zip(kinds, weights[1:], strict=True) if weight > 0.0}
        experts = _learned(motions, kinds, partial(_share, progress, 0.65, 0.35))
        return cls([UniversalPrior.learn(motions), *experts], [w for w in weights if w > 0.0], reach)

    @classmethod
    def restored(cls, stored: Stored) -> AutoPrior:
        """Create the prior from a file; space and limits follow from the components."""
        return cls(stored.parts, stored.header["weights"], stored.header["reach"])

    def header(self) -> dict[str, Any]:
        """The header of a blend, and the distance at which the experts fade."""
        return {**super().header(), "reach": self.reach}

    def on_body(self, skeleton: Skeleton) -> AutoPrior:
        """The same blend on a skeleton of the same topology and other limb lengths."""
        parts = [part.on_body(skeleton) for part in self.components]
        return kept_from(self, AutoPrior(parts, self.weights.tolist(), self.reach))

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """Return the guide for these handles."""
        if len(self.taking_part) == 1:
            return super().guide(handles, fps=fps)
        return FadingGuide(self, [part.guide(handles, fps=fps) for part, _, _ in self.parts], handles)


class FadingGuide(BlendGuide):
    """A blend of the universal prior and fading experts; the last element of its state is the experts' factor."""

    def __init__(self, prior: AutoPrior, guides: Sequence[Guide], handles: Handles) -> None:
        super().__init__(prior, guides)
        if len(guides) > 2:  # started from the first expert, without the slow smooth stages of a style
            self._leader, self.plan = 1, Plan(finer=((0, 0, ALL),) * ROUNDS)
        self._reach, self._handles, self._given_leader = prior.reach, handles, self._leader
        # the universal prior can place a root
        self._free_leader = self._leader if guides[1].plan.smooth else 0

    def starts(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[Start]:
        """Those of the blend."""
        self._leader = self._free_leader if free_root else self._given_leader
        found = super().starts(q, targets, free_root=free_root)
        return [Start(one.q, self._with_rest(one.q, one.state, targets)) for one in found]

    def resumed(self, q: PoseVector, targets: Points) -> tuple[State, ...]:
        """The states of all components."""
        return self._with_rest(q, super().resumed(q, targets), targets)

    def moved(self, q: PoseVector, targets: Points, state: tuple[State, ...]) -> tuple[State, ...]:
        """The updated states of all components; the experts' factor is unchanged."""
        return (*super().moved(q, targets, state), state[-1])

    def shared(self, state: tuple[State, ...]) -> Iterator[tuple[float, Guide, Chart, State]]:
        """The components; what the experts lose by their factor goes to the universal prior."""
        *own, left = state
        (_, people, *first), *experts = super().shared(tuple(own))
        yield (1.0 - left * sum(weight for weight, *_ in experts), people, *first)
        yield from ((left * weight, *rest) for weight, *rest in experts)

    def _with_rest(self, q: Array, state: tuple[State, ...], targets: Array) -> tuple[State, ...]:
        guide, _, chart = self._parts[1]
        gap = _gap(guide, chart.own(q), state[1], self._handles, targets)
        return (*state, float(np.exp(-2.0 * max(0.0, gap / self._reach - 1.0) ** 2)))


def _share(progress: Callable[[float], None], begin: float, size: float, done: float) -> None:
    progress(begin + size * done)


def _gap(guide: Guide, q: Array, state: State, handles: Handles, targets: Points) -> float:
    """Root-mean-square distance of the targets from where a guide expects the handles."""
    if len(targets) == 0:
        return 0.0
    mean, _ = guide.expectation(q, state)
    points = guide.space.points(np.concatenate([q[:ROOT_SIZE], mean])[None], handles)[0]
    return float(np.sqrt(np.mean(np.sum((points - targets) ** 2, axis=1))))


# --- choice of weights on held-out frames --------------------------------------------------------------------------


def _parted(motions: Sequence[Motion]) -> list[tuple[list[Motion], list[Motion]]]:
    """Training and held-out clips for the choice of the weights; of few clips, two parts are held out in turn."""
    if len(motions) >= HELD:
        held = list(motions[HELD - 1 :: HELD])
        return [([motion for motion in motions if all(motion is not other for other in held)], held)]
    found = []
    for part in PARTS:  # clips of a few frames are kept whole
        cuts = [(m, max(1, len(m) * part // HELD), max(1, len(m) * (part + 1) // HELD)) for m in motions]
        own = [piece for m, begin, end in cuts for piece in (m[:begin], m[end:]) if len(piece)]
        found.append((own, [m[begin:end] for m, begin, end in cuts if end > begin]))
    return found


def _learned(
    motions: Sequence[Motion], kinds: Mapping[str, dict[str, Any]], progress: Callable[[float], None]
) -> list[Prior]:
    """An expert of each kind."""
    experts: list[Prior] = []
    for kind, options in kinds.items():
        experts.append(registry.learn(motions, kind, registry.options_for(kind, options)))
        progress(len(experts) / len(kinds))
    return experts


class _HeldOutFrame(NamedTuple):
    """The components' Gaussians around a solved pose of a held-out frame, and what is to be recovered."""

    space: PoseSpace
    handles: Handles
    targets: Points
    q: PoseVector  # the solved pose
    parts: tuple[Information, ...]
    rotations: Float[Array, "joints 4"]  # as recorded

    def error(self, weights: Sequence[float]) -> float:
        """Mean angular joint error of the pose that a blend with these weights expects with the handles met."""
        found = self.space.frames_from_q(self.expected(weights))[1]
        return float(rotations.geodesic_distance(found, self.rotations)[self.space.moving].mean())

    def expected(self, weights: Sequence[float]) -> PoseVector:
        """The blend's most likely pose that meets the handles, after a few linear steps."""
        pull, precision = weighed(zip(weights, self.parts, strict=True))
        covariance = np.linalg.inv(precision[ROOT_FREEDOMS:, ROOT_FREEDOMS:])
        mean = self.q[ROOT_SIZE:] + covariance @ pull[ROOT_FREEDOMS:]
        at = np.concatenate([self.q[:ROOT_SIZE], mean])
        for _ in range(STEPS):
            points, jacobian = self.space.handle_positions(at, self.handles)
            rows = jacobian[:, ROOT_FREEDOMS:]
            spread = rows @ covariance
            lacking = (self.targets - points).ravel() + rows @ (at[ROOT_SIZE:] - mean)
            pulls = np.linalg.solve(spread @ rows.T + NOISE * np.eye(len(rows)), lacking)
            at[ROOT_SIZE:] = mean + spread.T @ pulls
        return at


def _judged(parts: Sequence[Prior], held: Sequence[Motion]) -> tuple[Array, Array]:
    """Per held-out frame the error of every candidate; per clip how far off the first expert expects the handles."""
    candidates = _candidates(len(parts) - 1)
    errors, gaps = [], []
    for clip in held:
        own = [part.on_body(clip.skeleton) for part in parts]
        few = clip[:: max(1, len(clip) * len(held) // TRIED)]
        errors += [[frame.error(weights) for weights in candidates] for frame in _held_out(own, few)]
        seen = _asked(own[1], few)
        apart = [_gap(guide, start.q, start.state, handles, at) for guide, start, handles, at, _ in seen]
        gaps.append(np.percentile(apart, KNOWN))
    return np.array(errors).reshape(-1, len(candidates)), np.array(gaps)


def _candidates(count: int) -> list[list[float]]:
    """Weights to choose from: the universal prior's, and equal ones for the first expert and any others."""
    return [
        [people, *((1.0 - people) * np.array(chosen) / sum(chosen)).tolist()]
        for chosen in itertools.product((1,), *[(1, 0)] * (count - 1))
        for people in WEIGHTS
    ]


def bagged(
    candidates: Float[Array, "candidates parts"], errors: Float[Array, "frames candidates"]
) -> list[float]:
    """The mean of the best weights over random selections of frames; small weights of experts become zero."""
    parts = np.array_split(errors, max(1, len(errors) // TOGETHER))
    together, count = np.stack([part.mean(axis=0) for part in parts]), len(parts)
    picked = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), SELECTIONS)
    weights = candidates[np.argmin(picked @ together, axis=1)].mean(axis=0)
    weights[1:][weights[1:] < min(SMALL, weights[1:].max())] = 0.0
    return list((weights / weights.sum()).tolist())


def _held_out(parts: Sequence[Prior], clip: Motion) -> Iterator[_HeldOutFrame]:
    """Yield the frames of a clip, as solved by an equal blend in the rounds of a solve."""
    prior = AutoPrior(parts, [1.0 / len(parts)] * len(parts))
    equal = prior.weights.tolist()
    for guide, start, handles, targets, q in _asked(prior, clip):
        assert isinstance(guide, BlendGuide)
        at, state, true = start.q, start.state, prior.space.frames_from_q(q)[1]
        for _ in range(ROUNDS):
            parts_there = guide.shared(state)
            seen = [c.seen(at, one.gaussian(c.own(at), own).information()) for _, one, c, own in parts_there]
            frame = _HeldOutFrame(prior.space, handles, targets, at, tuple(seen), true)
            at = frame.expected(equal)
            state = guide.moved(at, targets, state)
        yield frame


def _asked(prior: Prior, clip: Motion) -> Iterator[tuple[Guide, Start, Handles, Array, Array]]:
    """Yield every frame of a clip as seen by a prior: guide, start, handles, targets and recorded pose."""
    space: PoseSpace = prior.space
    handles = space.handles([role for role in HANDLES if role in space.skeleton.roles])
    guide = prior.guide(handles)
    for q in space.q_from_frames(clip.root_positions, clip.rotations):
        targets = space.points(q[None], handles)[0]
        yield guide, guide.starts(q, targets, free_root=False)[0], handles, targets, q
