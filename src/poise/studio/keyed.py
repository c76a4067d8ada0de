"""A motion made of keys: its frames are solved one after the other in parts, and then all together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.apps.keyframing import keyframe_in, plan
from poise.apps.keyframing_script import Script
from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.skeleton.skeleton import Pose
from poise.solvers.sequence import common_space, frame_by_frame
from poise.solvers.solution import MotionSolution
from poise.studio.layers import Layers, held, joined
from poise.studio.messages import Timeline
from poise.studio.models import PLAIN, ModelStore
from poise.studio.solving import Poser
from poise.studio.state import State
from poise.studio.timeline_script import script_of, weights_of
from poise.types import Array

Span = tuple[int, int]
"""The first of a range of frames and the one after its last."""

AT_ONCE = 30  # frames that are solved while the page waits
PUT_IN = 16  # parts, about, in which a solved motion is put into the timeline; each copies all of it
SMOOTHED = 900  # largest number of frames solved as a whole, which takes memory for each


@dataclass(frozen=True, eq=False)
class TimelinePlan:
    """A timeline prepared for solving: the priors, and each frame's weights over them."""

    state: State
    priors: Sequence[Prior]
    weights: Float[Array, "frames styles"]

    @classmethod
    def of(cls, state: State, models: ModelStore, poser: Poser) -> TimelinePlan:
        """The models that the lane of styles names, or the one in use."""
        lane = state.timeline
        if state.model == PLAIN and not lane.styles:
            raise InvalidValueError("keyframing needs a learned model; choose a style or a gaussian")
        if state.weights and not lane.styles:
            return cls(state, [poser.prior_of(state)], np.ones((lane.frames, 1)))
        names, weights = weights_of(lane, state.model)
        skeleton = poser.prior_of(state).space.skeleton
        return cls(state, [models[name].prior.on_body(skeleton) for name in names], weights)

    def stretch(self, layers: Layers | None, span: Span) -> Layers:
        """The motion with the frames of a span solved in sequence, from the frame before them."""
        whole = self._whole(layers)
        part = self.solved(whole[max(span[0] - 1, 0)], span)
        over = () if layers is None else layers.corrections
        return Layers(joined(whole, [part], span[0]), tuple(each for each in over if each.frame < len(whole)))

    def solved(
        self, after: Pose, span: Span, *, progress: Callable[[int], None] = lambda _done: None
    ) -> Motion:
        """The frames of a span alone, after the pose before them."""
        frames = plan(self._script, self.priors, self.weights, span=span)
        space, fps = common_space(self.priors).space, self.state.timeline.fps
        q = frame_by_frame(self.priors, frames, space, fps=fps, after=after, progress=progress)
        return Motion(space.skeleton, fps, *space.frames_from_q(q))

    @cached_property
    def _script(self) -> Script:
        return script_of(self.state)

    def all_together(self, progress: Callable[[int, int], None]) -> MotionSolution:
        """Solve all frames together, for a smooth motion."""
        return keyframe_in(self._script, self.priors, self.weights, progress=progress)

    def _whole(self, layers: Layers | None) -> Motion:
        """The previous solution, if it has this length; else the pose, held."""
        timeline = self.state.timeline
        if layers is not None and len(layers) == timeline.frames:
            return layers.base if layers.base.fps == timeline.fps else replace(layers.base, fps=timeline.fps)
        return held(self.state.pose, timeline.frames, timeline.fps)


def is_made_of_keys(timeline: Timeline) -> bool:
    """Whether a timeline has anything that makes a motion."""
    return bool(timeline.keys or timeline.pins)


def same_motion(one: Timeline, other: Timeline) -> bool:
    """Whether two timelines make the same motion."""
    return _made_of(one) == _made_of(other)


def about(frame: int, span: Span) -> Span:
    """The part of a span around a frame that is solved at once."""
    first, end = span
    start = min(max(frame - AT_ONCE // 2, first), max(end - AT_ONCE, first))
    return start, min(start + AT_ONCE, end)


def stretches(whole: Span, done: Span) -> list[Span]:
    """The rest of a span, in parts."""
    parts = [(whole[0], min(done[0], whole[1])), (max(done[1], whole[0]), whole[1])]
    return [
        (first, min(first + AT_ONCE, end)) for start, end in parts for first in range(start, end, AT_ONCE)
    ]


def _made_of(timeline: Timeline) -> tuple[object, ...]:
    return timeline.frames, timeline.fps, timeline.keys, timeline.pins, timeline.styles
