"""Models: learn or open one, switch the prior on the same handles, blend, and drag in the latent space as a map."""

from __future__ import annotations

from poise.apps.learning import motions_from
from poise.capture import markers
from poise.capture.matching import read_take
from poise.errors import InvalidValueError, PoiseError
from poise.formats import extensions
from poise.motion.motion import Motion
from poise.priors.abilities import learned_space_of, standing_pose
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.priors.registry import learn
from poise.studio import messages
from poise.studio.arrays import world_of_pose
from poise.studio.jobs import Done, Report
from poise.studio.latent import LatentView
from poise.studio.models import PLAIN, Entry
from poise.studio.panels.clips import carried, on_another_body
from poise.studio.session import Answer, Panel
from poise.studio.solving import planted
from poise.studio.state import Placed, State, empty_timeline

READING = 0.1  # of the progress of learning


class StylesPanel(Panel):
    """The prior, and the position in its latent space."""

    def choose(self, message: messages.ChooseModel) -> Answer:
        """Switch the prior on the same handles; on another body the motion goes along, else the scene starts again."""
        session = self._session
        if message.model != PLAIN and not (entry := session.models[message.model]).source.ready:

            def work(report: Report) -> Done:
                report(0.0)
                entry.source.get()
                return Done(lambda: self.choose(message))

            return [session.jobs.start("chooseModel", f"preparing {entry.name}", work)]
        state = session.state.with_(model=message.model, weights=())
        if session.motion is None or message.clear or session.has_same_body(session.state, state):
            return self._switched(state)
        return [self._carry(session.models[message.model], session.motion)]

    def blend(self, message: messages.Blend) -> Answer:
        """Blend several priors."""
        heaviest = max(message.weights, key=lambda weight: weight.weight).model
        state = self._session.state.with_(model=heaviest, weights=tuple(message.weights))
        return self._switched(state)

    def learn(self, message: messages.Learn) -> Answer:
        """Start learning; the model is selected when it is ready."""
        session = self._session
        paths = [session.path(upload) for upload in message.uploads]

        def work(report: Report) -> Done:
            motions: list[Motion] = []
            for number, path in enumerate(paths):
                report(READING * number / len(paths))
                if path.suffix.lower() in extensions(markers=True):  # the motion of the fitted body
                    motions.append(markers.solve(read_take(path, markers.template())).motion)
                else:
                    motions += motions_from(path)
            rest = 1.0 - READING
            prior = learn(motions, message.kind, progress=lambda done: report(READING + rest * done))
            learned = learned_space_of(prior)
            curve = [] if learned is None else learned.learning_curve.tolist()
            return Done(lambda: self._used(prior, message.name), curve)

        return [session.jobs.start("learn", f"learning {message.name}", work)]

    def open_model(self, message: messages.OpenModel) -> Answer:
        """Open a model from a file and use it."""
        session = self._session
        path = session.path(message.upload)

        def work(report: Report) -> Done:
            report(0.0)
            prior = load(path)
            return Done(lambda: self._used(prior, path.stem))

        return [session.jobs.start("openModel", f"opening {path.name}", work)]

    def rename(self, message: messages.RenameModel) -> Answer:
        """Rename a model of this page."""
        self._session.models.rename(message.model, message.name)
        self._session.keep()
        return [self._session.listed()]

    def map(self, message: messages.AskLatentMap) -> Answer:
        """The likelihood map of a style."""
        entry = self._session.models[message.model]
        if entry.view is None:
            raise InvalidValueError(f"{entry.name} has no latent space; styles have one")
        return [entry.view.map(message.model)]

    def drag(self, message: messages.DragLatent) -> Answer:
        """The pose of a place; with held handles, the nearest pose that meets them."""
        session, state, view = self._session, self._session.state, self._view()
        q = view.pose_at(message.point, state.placed.in_space(view.prior.space))
        if message.hold:
            solved = session.poser.solve(state, fine=message.last, near=q)
            if message.last:
                return session.settle(state, solved, ease=message.ease)
            return [session.show(state, solved, fine=False)]
        pose, session.solved = view.prior.space.pose_from_q(q), None
        state = state.with_(placed=Placed(pose, q, view.prior.space), anchors=planted(pose))
        return session.commit(state, ease=message.ease) if message.last else [session.show(state, fine=False)]

    def hover(self, message: messages.HoverLatent) -> Answer:
        """The pose of a place, for preview."""
        view, state = self._view(), self._session.state
        q = view.pose_at(message.point, state.placed.in_space(view.prior.space))
        return [messages.HoverPose(seq=message.seq, world=world_of_pose(view.prior.space.pose_from_q(q)))]

    def _carry(self, entry: Entry, motion: Motion) -> messages.Progress:
        """Start carrying the motion onto the body of a model, which is then used."""
        session, began = self._session, self._session.state.layers

        def work(report: Report) -> Done:
            body = standing_pose(entry.prior)
            try:
                made = carried(motion, body, report)
            except PoiseError as error:
                reason = messages.AnotherBody(model=entry.id, name=entry.name, words=str(error))
                return Done(lambda: [reason])

            def take() -> Answer:
                if session.state.layers is not began:
                    raise InvalidValueError("the motion was changed meanwhile; choose the model again")
                return session.begin_with(on_another_body(session.state, entry, body, made))

            return Done(take)

        return session.jobs.start("carryMotion", f"carrying the motion onto {entry.name}", work)

    def _view(self) -> LatentView:
        view = self._session.poser.entry_of(self._session.state).view
        if view is None:
            raise InvalidValueError("the model in use has no latent space; choose a style")
        return view

    def _used(self, prior: Prior, name: str) -> Answer:
        entry = self._session.models.add(prior, name)
        return [self._session.listed(), *self.choose(messages.ChooseModel(model=entry.id))]

    def _switched(self, state: State) -> Answer:
        session, before = self._session, self._session.state
        if session.has_same_body(before, state):
            name = session.poser.entry_of(before).name
            ghost = messages.Ghost(world=world_of_pose(before.pose, before.hands), model=name)
            return [ghost, *session.commit(state, session.poser.solve(state, afresh=True))]
        pose = standing_pose(session.poser.prior_of(state))
        session.solved = None
        state = state.with_(
            placed=Placed(pose), handles=(), look_at=None, constraints="", anchors=planted(pose),
            timeline=empty_timeline(), layers=None, smooth=True, photo=None,
        )  # fmt: skip
        return [messages.Ghost(world=b"", model=""), *session.begin_with(state)]
