"""Files: save and open scenes, and write the pose or the timeline as BVH, GLB, PNG, GIF or MP4."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from poise.apps.outputs import save
from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.pictures import draw_pose
from poise.pictures import save as save_picture
from poise.priors.model_file import save as save_model
from poise.priors.registry import Storable
from poise.studio import messages
from poise.studio.jobs import Done, Report
from poise.studio.panels.performing import brought_back
from poise.studio.session import Answer, Handler, Session
from poise.studio.state import State


class FilesPanel:
    """Exports and imports."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.Export: self.export,
            messages.ExportModel: self.export_model,
            messages.OpenScene: self.open_scene,
            messages.OpenKept: self.open_kept,
            messages.Cancel: self.cancel,
        }

    def export(self, message: messages.Export) -> Answer:
        """Start writing a file, which the page then fetches."""
        session, state = self._session, self._session.state
        entry = session.poser.entry_of(state)
        name = f"{_plain(entry.name)}.{message.format}"
        onto = None if entry.character is None else entry.character.path

        def write(path: Path, report: Report) -> None:
            if message.format == "scene":
                session.files.write(state, path)
            else:
                _write(path, state, state.motion if message.whole else None, onto, report)

        return self._written("export", name, write)

    def export_model(self, message: messages.ExportModel) -> Answer:
        """Start writing a model."""
        entry = self._session.models[message.model]
        if entry.is_plain:
            raise InvalidValueError("plain IK is not a learned model and cannot be saved")
        return self._written(
            "exportModel",
            f"{_plain(entry.name)}.poise",
            lambda path, _: save_model(cast(Storable, entry.prior), path),
        )

    def open_scene(self, message: messages.OpenScene) -> Answer:
        """Open the scene of a file, as one step of undo."""
        session = self._session
        path = session.uploads.find(message.upload, owner=session.token).path
        return self._opened(lambda: path)

    def open_kept(self, message: messages.OpenKept) -> Answer:
        """Open the saved scene of an earlier session, as one step of undo."""
        autosave = self._session.autosave
        if not autosave.has(message.token):
            raise InvalidValueError("that session was not kept")
        return self._opened(
            lambda: autosave.find(message.token), lambda: brought_back(self._session, message.token)
        )

    def cancel(self, message: messages.Cancel) -> Answer:
        """Stop a long task."""
        self._session.jobs.cancel(message.task)
        return []

    def _opened(self, find: Callable[[], Path | bytes | None], then: Callable[[], Answer] = list) -> Answer:
        session = self._session

        def work(report: Report) -> Done:
            report(0.0)
            scene = find()
            if scene is None:
                raise InvalidValueError("it was not kept")
            state = session.files.opened(scene, session.state)

            def take() -> Answer:
                models = messages.Models(models=session.models.described())
                answer = [models, *session.begin_with(state)]
                for restored in session.restorers:
                    answer += restored(state)
                return answer + then()

            return Done(take)

        return [session.jobs.start("openScene", "opening the scene", work)]

    def _written(self, task: str, name: str, write: Callable[[Path, Report], None]) -> Answer:
        session = self._session
        path = session.uploads.exports(session.token) / name

        def work(report: Report) -> Done:
            write(path, report)
            return Done(lambda: [self._ready(path)])

        return [session.jobs.start(task, f"writing {name}", work)]

    def _ready(self, path: Path) -> messages.FileReady:
        upload = self._session.uploads.keep(path, owner=self._session.token)
        address = f"files/{upload.id}/{path.name}"
        return messages.FileReady(name=path.name, address=address, size=upload.size)


def _write(path: Path, state: State, motion: Motion | None, onto: Path | None, report: Report) -> None:
    """A picture of the pose with its handles, or a motion: one frame without the timeline.

    A character with a mesh is drawn as itself, and as GLB the motion is written into its own file.
    """
    if path.suffix == ".png" and motion is None and onto is None:
        handles = {
            handle.joint: np.array(handle.position) for handle in state.handles if handle.position is not None
        }
        save_picture(draw_pose(state.pose, handles=handles), path)
    else:
        save(
            motion if motion is not None else state.pose,
            path,
            onto=onto,
            progress=lambda done, all_: report(done / max(all_, 1)),
        )


def _plain(name: str) -> str:
    return re.sub(r"[^\w()+-]+", "-", name).strip("-") or "pose"
