"""Advice while the hand rests: the uncertainty, the best handle to add, and the likely action."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from poise.apps.posing import next_handles, others_possible
from poise.errors import InvalidValueError
from poise.studio import messages
from poise.studio.arrays import world_of_pose
from poise.studio.messages import SceneHandle
from poise.studio.models import Entry
from poise.studio.session import Answer, Panel
from poise.studio.solving import Poser, planted, vec3
from poise.studio.state import Placed, State

FITTING = 25.0  # percentile among an action's own poses from which handles look like it
CLEAR = 2.0  # ratio to any other action
TELLING = ("pelvis", "head", "left_foot", "right_foot", "left_hand", "right_hand")  # differ by kind
SAME = 0.1  # metres by which these joints may differ within one kind of pose
_LOOKING = ThreadPoolExecutor(1, thread_name_prefix="poise-advice")


class AdvicePanel(Panel):
    """Answers when idle; slow answers come later, unless something was changed by then."""

    def advise(self, message: messages.AskAdvice) -> Answer:
        """The uncertainty at once; a matching action as soon as it is found."""
        state, nothing = self._session.state, messages.LeftOpen(joint=None, share=0.0, others=[])
        if state.is_recording or not any(handle.pinned for handle in state.handles):
            return [nothing]
        if not state.weights:
            _LOOKING.submit(self._look_for_an_action, state)
        solution = self._session.poser.solve(state).solution
        if solution.posterior_of is None:
            return [nothing]
        joint, share = next(iter(next_handles(solution)), (None, 0.0))
        ghosts = [world_of_pose(ghost) for ghost in others_possible(solution)] if message.others else []
        kinds = [round(kind.share, 4) for kind in solution.uncertainty.kinds[: len(ghosts)]] if ghosts else []
        named = {own: role for role, own in state.pose.skeleton.roles.items()}.get(joint or "", joint)
        words = "" if named is None else f"Place the {named.replace('_', ' ')} next."
        return [messages.LeftOpen(joint=joint, share=share, others=ghosts, kinds=kinds, words=words)]

    def take_kind(self, message: messages.TakeKind) -> Answer:
        """Another kind of pose; joints that would not stay where it has them are pinned, one by one."""
        state, poser = self._session.state, self._session.poser
        solved = poser.solve(state)
        if message.number >= len(kinds := solved.solution.uncertainty.kinds):
            raise InvalidValueError("the handles leave no such kind of pose open")
        wanted = solved.solution.space.pose_from_q(kinds[message.number].q)
        places = wanted.positions
        joints = [joint for role, joint in wanted.skeleton.roles.items() if role in TELLING]
        state = state.with_(placed=Placed(wanted), anchors=planted(wanted))
        solved = poser.solve(state)
        for _ in joints:
            off = {joint: math.dist(solved.placed.pose.positions[joint], places[joint]) for joint in joints}
            joint = max(joints, key=lambda one: off[one])
            if off[joint] < SAME:
                break
            state = state.with_handle(SceneHandle(id=joint, joint=joint, position=vec3(places[joint])))
            solved = poser.solve(state)
        return self._session.commit(state, solved, ease=message.ease)

    def _look_for_an_action(self, state: State) -> None:
        fits = sorted(self._fits(state), key=lambda fit: -fit[0])
        if self._session.state is not state or not fits:
            return
        (best, entry), *others = fits
        clear = best >= FITTING and all(best >= CLEAR * share for share, _ in others)
        model = entry.id if clear and entry.id != state.model else None
        self._session.post(messages.LooksLike(model=model))

    def _fits(self, state: State) -> Iterator[tuple[float, Entry]]:
        """The percentile of the pose under each model of one action that meets the handles; one per set of clips."""
        poser, known = Poser(self._session.models), set[object]()
        for entry in self._session.models.learned:
            if self._session.state is not state or self._session.closed:
                return
            if not (entry.source.latent and entry.source.at_hand):
                continue
            clips = tuple(getattr(entry.prior, "clips", ())) or entry.id
            if clips not in known and entry.skeleton.same_topology(state.pose.skeleton):
                known.add(clips)
                solved = poser.solve(state.with_(model=entry.id), afresh=True)
                if solved.solution.reached and solved.percentile is not None:
                    yield solved.percentile, entry
