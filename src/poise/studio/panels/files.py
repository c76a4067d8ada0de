"""Files: scenes saved and opened, and the pose or the timeline written as BVH, GLB, PNG, GIF or MP4."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from poise.apps.outputs import save
from poise.apps.posing import motion_of
from poise.formats.files import replacing
from poise.motion.motion import Motion
from poise.pictures import draw_pose
from poise.pictures import save as save_picture
from poise.studio import messages
from poise.studio.jobs import Done, Report
from poise.studio.scene_files import opened, saved
from poise.studio.session import Answer, Handler, Session
from poise.studio.state import State


class FilesPanel:
    """What goes out and comes back."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """Who answers what."""
        return {messages.Export: self.export, messages.OpenScene: self.open_scene}

    def export(self, message: messages.Export) -> Answer:
        """Begins to write a file, which the page then fetches."""
        session = self._session
        state, motion = session.state, session.motion if message.whole else None
        name = f"{_plain(session.poser.entry_of(state).name)}.{message.format}"
        path = session.uploads.folder(session.token) / name

        def work(report: Report) -> Done:
            _write(path, state, motion, report)
            return Done(lambda: [self._ready(path)])

        return [session.jobs.start("export", f"writing {name}", work)]

    def open_scene(self, message: messages.OpenScene) -> Answer:
        """The scene of a file, as one step of undo."""
        session = self._session
        path = session.uploads.find(message.upload, owner=session.token).path
        state = opened(path, session.models, session.state)
        session.solved = None
        other = not state.pose.skeleton.same_topology(session.state.pose.skeleton)
        answer = session.commit(state)
        return [*([session.body()] if other else []), *answer]

    def _ready(self, path: Path) -> messages.FileReady:
        upload = self._session.uploads.keep(path, owner=self._session.token)
        address = f"files/{upload.id}/{path.name}"
        return messages.FileReady(name=path.name, address=address, size=upload.size)


def _write(path: Path, state: State, motion: Motion | None, report: Report) -> None:
    """A scene, a picture of the pose with its handles, or a motion: of one frame without the timeline."""
    if path.suffix == ".scene":
        with replacing(path, "wb") as file:
            file.write(saved(state))
    elif path.suffix == ".png" and motion is None:
        handles = {
            handle.joint: np.array(handle.position) for handle in state.handles if handle.position is not None
        }
        save_picture(draw_pose(state.pose, handles=handles), path)
    else:
        shown = motion if motion is not None else motion_of([state.pose])
        save(shown, path, progress=lambda done, all_: report(done / max(all_, 1)))


def _plain(name: str) -> str:
    return re.sub(r"[^\w()+-]+", "-", name).strip("-") or "pose"
