"""Files: save and open scenes, and write the pose or the timeline as BVH, GLB, PNG, GIF or MP4."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from poise.apps.outputs import save
from poise.errors import InvalidValueError
from poise.pictures import draw_pose
from poise.pictures import save as save_picture
from poise.priors.model_file import save as save_model
from poise.priors.registry import Storable
from poise.studio import messages
from poise.studio.hands import any_shape, shaped, shaped_motion
from poise.studio.jobs import Done, Report
from poise.studio.panels.performing import brought_back
from poise.studio.session import Answer, Panel


class FilesPanel(Panel):
    """Exports and imports."""

    def export(self, message: messages.Export) -> Answer:
        """Start writing a file, which the page then fetches."""
        session, state = self._session, self._session.state
        entry = session.poser.entry_of(state)
        onto = None if entry.character is None else entry.character.path

        def write(path: Path, report: Report) -> None:
            """A picture of the pose with its handles, or a motion: one frame without the timeline.

            A character with a mesh is drawn as itself, and as GLB the motion is written into its own file.
            """
            motion = state.motion if message.whole else None
            pose = state.pose
            if any_shape(state) or message.format in ("png", "gif", "mp4"):
                motion = None if motion is None else shaped_motion(state, 0, len(motion))
                pose = shaped(state.pose, state.hands)
            if message.format == "scene":
                session.files.write(state, path)
            elif message.format == "png" and motion is None and onto is None:
                placed = [handle for handle in state.handles if handle.position is not None]
                handles = {handle.joint: np.array(handle.position) for handle in placed}
                save_picture(draw_pose(pose, handles=handles), path)
            else:
                shown = pose if motion is None else motion
                save(shown, path, onto=onto, progress=lambda done, all_: report(done / max(all_, 1)))

        return self._written("export", f"{_plain(entry.name)}.{message.format}", write)

    def export_model(self, message: messages.ExportModel) -> Answer:
        """Start writing a model."""
        entry = self._session.models[message.model]
        if entry.is_plain:
            raise InvalidValueError("plain IK is not a learned model and cannot be saved")
        model = cast(Storable, entry.prior)
        name = f"{_plain(entry.name)}.poise"
        return self._written("exportModel", name, lambda path, _: save_model(model, path))

    def open_scene(self, message: messages.OpenScene) -> Answer:
        """Open the scene of a file, as one step of undo."""
        path = self._session.path(message.upload)
        return self._opened(lambda: path)

    def open_kept(self, message: messages.OpenKept) -> Answer:
        """Open the saved scene of an earlier session, as one step of undo."""
        autosave, token = self._session.autosave, message.token
        if not autosave.has(token):
            raise InvalidValueError("that session was not kept")
        return self._opened(lambda: autosave.find(token), lambda: brought_back(self._session, token))

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
                answer = [session.listed(), *session.begin_with(state)]
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
            return Done(lambda: [session.offered(path)])

        return [session.jobs.start(task, f"writing {name}", work)]


def _plain(name: str) -> str:
    return re.sub(r"[^\w()+-]+", "-", name).strip("-") or "pose"
