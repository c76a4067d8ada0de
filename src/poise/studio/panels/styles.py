"""Styles: switch the prior on the same handles, blend, and drag in the latent space as a map."""

from __future__ import annotations

from poise.errors import InvalidValueError
from poise.priors.abilities import standing_pose
from poise.studio import messages
from poise.studio.arrays import world_of_pose
from poise.studio.jobs import Done, Report
from poise.studio.latent import LatentView
from poise.studio.models import PLAIN, Entry
from poise.studio.session import Answer, Handler, Session
from poise.studio.solving import planted, replanted
from poise.studio.state import Placed, State, empty_timeline


class StylesPanel:
    """The prior, and the position in its latent space."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.ChooseModel: self.choose,
            messages.Blend: self.blend,
            messages.AskLatentMap: self.map,
            messages.DragLatent: self.drag,
            messages.HoverLatent: self.hover,
        }

    def choose(self, message: messages.ChooseModel) -> Answer:
        """Switch the prior on the same handles; on another skeleton the scene starts again."""
        session = self._session
        if message.model != PLAIN and not session.models[message.model].source.ready:
            return [self._prepared(session.models[message.model], message)]
        state = session.state.with_(model=message.model, weights=())
        if (
            session.motion is not None
            and not message.clear
            and not session.has_same_body(session.state, state)
        ):
            return [messages.AnotherBody(model=message.model, name=session.models[message.model].name)]
        return self._switched(state)

    def _prepared(self, entry: Entry, message: messages.ChooseModel) -> messages.Progress:
        """A model not used before is learned or read before it is selected."""

        def work(report: Report) -> Done:
            report(0.0)
            entry.source.get()
            return Done(lambda: self.choose(message))

        return self._session.jobs.start("chooseModel", f"preparing {entry.name}", work)

    def blend(self, message: messages.Blend) -> Answer:
        """Blend several priors."""
        heaviest = max(message.weights, key=lambda weight: weight.weight).model
        state = self._session.state.with_(model=heaviest, weights=tuple(message.weights))
        return self._switched(state)

    def map(self, message: messages.AskLatentMap) -> Answer:
        """The likelihood map of a style."""
        view = self._session.models[message.model].view
        if view is None:
            raise InvalidValueError(
                f"{self._session.models[message.model].name} has no latent space; styles have one"
            )
        return [view.map(message.model)]

    def drag(self, message: messages.DragLatent) -> Answer:
        """The pose of a place; with held handles, the nearest pose that meets them."""
        state, view = self._session.state, self._view()
        q = view.pose_at(message.point, state.placed.in_space(view.prior.space))
        if not message.hold:
            state = state.with_(placed=Placed(view.prior.space.pose_from_q(q), q, view.prior.space))
            state = state.with_(anchors=planted(state.pose))
            self._session.solved = None
            return self._session.commit(state) if message.last else [self._session.show(state, fine=False)]
        solved = self._session.poser.solve(state, fine=message.last, near=q)
        state = state.with_(placed=solved.placed)
        if not message.last:
            return [self._session.show(state, solved, fine=False)]
        return self._session.commit(state.with_(anchors=replanted(state)), solved)

    def hover(self, message: messages.HoverLatent) -> Answer:
        """The pose of a place, for preview."""
        view, state = self._view(), self._session.state
        q = view.pose_at(message.point, state.placed.in_space(view.prior.space))
        return [messages.HoverPose(seq=message.seq, world=world_of_pose(view.prior.space.pose_from_q(q)))]

    # --- private ---------------------------------------------------------------------------------------------------

    def _view(self) -> LatentView:
        view = self._session.poser.entry_of(self._session.state).view
        if view is None:
            raise InvalidValueError("the model in use has no latent space; choose a style")
        return view

    def _switched(self, state: State) -> Answer:
        session = self._session
        before, name = session.state, session.poser.entry_of(session.state).name
        if not session.has_same_body(before, state):
            return self._started_again(state)
        ghost = messages.Ghost(world=world_of_pose(before.pose), model=name)
        solved = session.poser.solve(state, afresh=True)
        return [ghost, *session.commit(state, solved)]

    def _started_again(self, state: State) -> Answer:
        session = self._session
        pose = standing_pose(session.poser.prior_of(state))
        session.solved = None
        state = state.with_(
            placed=Placed(pose),
            handles=(),
            look_at=None,
            constraints="",
            anchors=planted(pose),
            timeline=empty_timeline(),
            layers=None,
            smooth=True,
            photo=None,
        )
        return [messages.Ghost(world=b"", model=""), *session.begin_with(state)]
