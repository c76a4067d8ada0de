"""One person's studio: what is in the scene, what has been undone, and who answers which message.

A session outlives its connection, so that a lost one can be resumed. It is told one message at a time, by a worker
thread; long tasks run beside it and hand in what they found under the same lock.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib.metadata import version
from threading import RLock
from typing import Any, Protocol, runtime_checkable

from poise.errors import InvalidValueError, PoiseError
from poise.motion.motion import Motion
from poise.studio import messages
from poise.studio.arrays import packed, world_of_pose
from poise.studio.autosave import Autosave
from poise.studio.history import History
from poise.studio.jobs import Jobs
from poise.studio.messages import ClientMessage, ServerMessage
from poise.studio.models import ModelStore, stand
from poise.studio.solving import Poser, SolvedState, planted, point_of, points_of
from poise.studio.state import Placed, State
from poise.studio.uploads import Uploads

Answer = list[ServerMessage]
Handler = Callable[[Any], Answer]


@runtime_checkable
class Panel(Protocol):
    """A part of the studio: which messages it answers."""

    @property
    def answers(self) -> dict[type, Handler]:
        """Message type to what answers it."""
        ...


class OutOfOrderError(PoiseError):
    """A streaming message that is older than one already answered."""


class Session:
    """The scene of one person."""

    def __init__(self, models: ModelStore, uploads: Uploads, *, autosave: Autosave | None = None) -> None:
        self.models, self.uploads = ModelStore(models), uploads
        self.autosave, self.token = autosave, secrets.token_urlsafe(24)
        self.poser, self.jobs, self.lock = Poser(self.models), Jobs(self), RLock()
        self.history = History(_first_state(self.models))
        self.state = self.history.now
        self.solved: SolvedState | None = None
        self.motion: Motion | None = None
        self.streaming: str | None = None
        self.outlet: Callable[[ServerMessage], None] | None = None
        self._seq, self.closed = -1, False
        self.restorers: list[Callable[[State, State], Answer]] = []
        self.on_pose: list[Callable[[State], None]] = []
        self.on_close: list[Callable[[], None]] = []
        self._handlers = self._collect()

    def greet(self, *, resumed: bool) -> Answer:
        """All that a page needs to begin, or to go on."""
        with self.lock:
            self._seq = -1
            welcome = messages.Welcome(
                protocol=messages.PROTOCOL, version=version("poise"), token=self.token, resumed=resumed,
                largest_upload=self.uploads.largest,
            )  # fmt: skip
            models = messages.Models(models=self.models.described())
            return [welcome, models, self.body(), self.scene(), self.pose(fine=True)]

    def restore(self, token: str) -> bool:
        """Takes up the scene that an earlier studio kept for this token; whether there was one."""
        found = self.autosave.find(token, self.models, self.state) if self.autosave is not None else None
        if found is None:
            return False
        self.history.close()
        self.token, self.history, self.state = token, History(found), found
        return True

    def answer(self, message: ClientMessage) -> Answer:
        """What to say to a message; mistakes raise PoiseError and leave the scene as it was."""
        with self.lock:
            self._in_order(message)
            handler = self._handlers.get(type(message))
            if handler is None:
                raise InvalidValueError(f"the studio cannot {type(message).__struct_config__.tag} yet")
            return handler(message)

    def post(self, *said: ServerMessage) -> None:
        """Say something unasked, if anyone is listening."""
        outlet = self.outlet  # the page may go at any moment
        if outlet is not None:
            for message in said:
                outlet(message)

    def rest(self) -> None:
        """Nobody is looking: what can be made again is let go, and what was undone or done waits on disk."""
        with self.lock:
            if self.outlet is None and not self.closed:
                self.poser.rest()
                self.history.rest()

    def close(self) -> None:
        """The end: whatever still runs for this session stops."""
        self.outlet, self.closed = None, True
        for listener in self.on_close:
            listener()
        self.history.close()

    @property
    def seq(self) -> int:
        """The number of the newest message that streams."""
        return max(self._seq, 0)

    # --- for panels ------------------------------------------------------------------------------------------------

    def show(self, state: State, solved: SolvedState | None = None, *, fine: bool = True) -> messages.Pose:
        """Takes a state as the one shown, without a step of undo."""
        if solved is not None:
            state, self.solved = state.with_(placed=solved.placed), solved
        self.state = state
        for listener in self.on_pose:
            listener(state)
        return self.pose(fine=fine)

    def commit(self, state: State, solved: SolvedState | None = None) -> Answer:
        """Takes a state as one step of undo."""
        pose = self.show(state, solved)
        self.history.push(self.state)
        self.poser.foresee(self.state)
        if self.autosave is not None:
            self.autosave.keep(self.token, self.state)
        return [self.scene(), pose]

    def put_back(self, state: State) -> Answer:
        """Shows a state from the history, with its body if that is another."""
        other = not state.pose.skeleton.same_topology(self.state.pose.skeleton)
        self.solved = None
        before, pose = self.state, self.show(state)
        restored = [message for restore in self.restorers for message in restore(before, state)]
        return [*([self.body()] if other else []), self.scene(), pose, *restored]

    def body(self) -> messages.Body:
        """The mannequin of the skeleton shown."""
        return self.poser.entry_of(self.state).body

    def scene(self) -> messages.SceneChanged:
        """The scene as the page is told of it."""
        state = self.state
        scene = messages.Scene(
            model=state.model, weights=list(state.weights), handles=list(state.handles), feet=state.feet,
            look_at=state.look_at, undo=self.history.undos, redo=self.history.redos, timeline=state.timeline,
            photo=state.photo, streaming=self.streaming,
        )  # fmt: skip
        return messages.SceneChanged(scene=scene)

    def pose(self, *, fine: bool) -> messages.Pose:
        """The pose as the page is told of it, with what is known of how it was solved."""
        state, solved = self.state, self.solved
        points = points_of(state.pose, [point_of(handle) for handle in state.handles])
        told: dict[str, Any] = {"status": "reached", "words": "", "residuals": [], "microseconds": 0.0}
        if solved is not None:
            told = _told(solved)
        return messages.Pose(
            seq=self.seq, fine=fine, world=world_of_pose(state.pose), handles=packed(points),
            log_likelihood=solved.log_likelihood if solved else None,
            percentile=solved.percentile if solved else None,
            latent=self._latent(solved), **told,
        )  # fmt: skip

    # --- private ---------------------------------------------------------------------------------------------------

    def _collect(self) -> dict[type, Handler]:
        from poise.studio.panels import PANELS

        handlers: dict[type, Handler] = {}
        for make in PANELS:
            handlers.update(make(self).answers)
        return handlers

    def _in_order(self, message: ClientMessage) -> None:
        seq = getattr(message, "seq", None)
        if seq is None:
            return
        if seq <= self._seq:
            raise OutOfOrderError(f"number {seq} came after number {self._seq}; it was dropped")
        self._seq = seq

    def _latent(self, solved: SolvedState | None) -> tuple[float, float] | None:
        if solved is None or len(solved.latents) != 1:
            return None
        view = self.poser.entry_of(self.state).view
        return view.seen(solved.latents[0]) if view is not None else None


def _told(solved: SolvedState) -> dict[str, Any]:
    """How a solve went, in words and numbers."""
    solution = solved.solution
    residuals = [
        messages.Residual(
            handle=owner, label=left.label, value=left.value, unit=left.unit, hard=left.hard, met=left.met
        )
        for owner, left in zip(solved.owners, solution.residuals, strict=True)
    ]
    missed = [str(left) for left in solution.relaxed]
    words = "; ".join([solution.status.value, *missed]) if missed else solution.status.value
    return {
        "status": solution.status.name.lower(),
        "words": words,
        "residuals": residuals,
        "microseconds": solution.microseconds,
    }


def _first_state(models: ModelStore) -> State:
    entry = models.first
    pose = stand(entry.prior)
    return State(entry.id, Placed(pose), anchors=planted(pose))
