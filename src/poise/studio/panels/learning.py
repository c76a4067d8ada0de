"""Learning: a model from motions dropped on the page, used as soon as it is ready."""

from __future__ import annotations

from pathlib import Path

from poise.apps.learning import motions_from
from poise.capture import markers
from poise.capture.matching import read_take
from poise.formats import extensions
from poise.motion.motion import Motion
from poise.priors.abilities import latent_of
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.priors.registry import learn
from poise.studio import messages
from poise.studio.jobs import Done, Report
from poise.studio.panels.styles import StylesPanel
from poise.studio.session import Answer, Handler, Session

READING = 0.1  # of the progress


class LearningPanel:
    """From files to a model."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.Learn: self.learn,
            messages.OpenModel: self.open_model,
            messages.RenameModel: self.rename,
        }

    def learn(self, message: messages.Learn) -> Answer:
        """Start learning; the model is selected when it is ready."""
        session = self._session
        paths = [session.uploads.find(upload, owner=session.token).path for upload in message.uploads]

        def work(report: Report) -> Done:
            motions: list[Motion] = []
            for number, path in enumerate(paths):
                report(READING * number / len(paths))
                motions += _motions_in(path)
            prior = learn(
                motions, message.kind, progress=lambda done: report(READING + (1.0 - READING) * done)
            )
            latent = latent_of(prior)
            curve = [] if latent is None else latent.learning_curve.tolist()
            return Done(lambda: self._used(prior, message.name), curve)

        return [session.jobs.start("learn", f"learning {message.name}", work)]

    def open_model(self, message: messages.OpenModel) -> Answer:
        """Open a model from a file and use it."""
        session = self._session
        path = session.uploads.find(message.upload, owner=session.token).path

        def work(report: Report) -> Done:
            report(0.0)
            prior = load(path)
            return Done(lambda: self._used(prior, path.stem))

        return [session.jobs.start("openModel", f"opening {path.name}", work)]

    def rename(self, message: messages.RenameModel) -> Answer:
        """Rename a model of this page."""
        session = self._session
        session.models.rename(message.model, message.name)
        session.keep()
        return [messages.Models(models=session.models.described())]

    def _used(self, prior: Prior, name: str) -> Answer:
        session = self._session
        entry = session.models.add(prior, name)
        chosen = StylesPanel(session).choose(messages.ChooseModel(model=entry.id))
        return [messages.Models(models=session.models.described()), *chosen]


def _motions_in(path: Path) -> list[Motion]:
    """The motions of a file; for markers, that of the fitted body."""
    if path.suffix.lower() not in extensions(markers=True):
        return motions_from(path)
    return [markers.solve(read_take(path, markers.template())).motion]
