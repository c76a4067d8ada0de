"""One person's studio: the scene, its history, and the handlers of messages.

A session outlives its connection, so that a lost one can be resumed. It handles one message at a time, in a worker
thread; long tasks run beside it and deliver their results under the same lock.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from threading import RLock
from typing import Any

from poise.apps.posing import table_of
from poise.errors import InvalidValueError, PoiseError
from poise.formats import extensions
from poise.motion.motion import Motion
from poise.priors.abilities import standing_pose
from poise.priors.registry import learnable
from poise.solvers.constraints import CONSTRAINTS
from poise.studio import messages
from poise.studio.arrays import motion_range, packed, world_of_pose
from poise.studio.autosave import Autosave
from poise.studio.history import History
from poise.studio.jobs import Done, Jobs, Report, Steps, Work
from poise.studio.layers import changed_frames
from poise.studio.messages import ClientMessage, ServerMessage
from poise.studio.models import Entry, ModelStore
from poise.studio.scene_files import SceneFiles
from poise.studio.solving import Poser, SolvedState, planted, point_of, points_of
from poise.studio.state import Placed, State
from poise.studio.uploads import Upload, Uploads

PIECE = 600  # frames of a motion per message
_LOG = logging.getLogger("poise.studio")

Answer = list[ServerMessage]
Handler = Callable[[Any], Answer]


class OutOfOrderError(PoiseError):
    """A streaming message that is older than one already answered."""


class Session:
    """The scene of one person."""

    def __init__(
        self, models: ModelStore, uploads: Uploads, autosave: Autosave, *, token: str | None = None
    ) -> None:
        self.models, self.uploads = ModelStore(models), uploads
        self.autosave, self.token = autosave, token or secrets.token_urlsafe(24)
        self.poser, self.jobs, self.lock = Poser(self.models), Jobs(self), RLock()
        self.files = SceneFiles(autosave.store, self.models, uploads, self.token)
        self.history = History(_first_state(self.models), uploads.folder(self.token))
        self.state = self.history.now
        self.solved: SolvedState | None = None
        self.streaming: str | None = None
        self.openings: list[Upload] = []
        self.outlet: Callable[[ServerMessage], None] | None = None
        self.backlog: Callable[[], int] = lambda: 0  # unsent bytes
        self._seq, self.closed = -1, False
        self._gesture: int | None = None  # of the message that is being answered
        self._stepped: int | None = None  # the gesture that made the last step of undo
        self.restorers: list[Callable[[State], Answer]] = []
        self.on_pose: list[Callable[[State], None]] = []
        self.on_greet: list[Callable[[], Answer]] = []
        self.on_close: list[Callable[[], None]] = []
        self._handlers = self._collect()

    def greet(self, *, resumed: bool, known: Iterable[str] = ()) -> Answer:
        """Everything that a page needs to start or to resume; a new page is offered saved scenes."""
        with self.lock:
            self._seq = -1
            welcome = messages.Welcome(
                protocol=messages.PROTOCOL, version=version("poise"), token=self.token, resumed=resumed,
                largest_upload=self.uploads.largest,
                kinds=[messages.LearnableKind(kind=name, about=own.about) for name, own in learnable().items()],
                motions=list(extensions(markers=False)), takes=list(extensions(markers=True)),
                constraints=[table_of(kind) for kind in CONSTRAINTS],
                openings=[messages.Opening(name=each.name, upload=each.id) for each in self.openings],
            )  # fmt: skip
            self.openings = []
            kept = [] if resumed else self.autosave.kept(token for token in known if token != self.token)
            offered = [messages.KeptScenes(scenes=kept)] if kept else []
            for begin in self.on_greet:
                begin()
            models = messages.Models(models=self.models.described())
            shown = [models, self.body(), self.scene(), self.pose(fine=True), *self.motion_shown()]
            return [welcome, *shown, *offered]

    def restore(self) -> bool:
        """Resume the scene that an earlier studio saved for this session's token; return whether there was one."""
        try:
            scene = self.autosave.find(self.token)
            if scene is None:
                return False
            found = self.files.opened(scene, self.state)
        except PoiseError as error:
            _LOG.warning("a scene that was kept cannot be opened: %s", error)
            return False
        self.history.close()
        self.history, self.state = History(found, self.uploads.folder(self.token)), found
        for restored in self.restorers:
            restored(found)
        return True

    def answer(self, message: ClientMessage) -> Answer:
        """The reply to a message; mistakes raise PoiseError and leave the scene unchanged."""
        Jobs.answered.append(time.monotonic())
        with self.lock:
            self._in_order(message)
            handler = self._handlers.get(type(message))
            if handler is None:
                raise InvalidValueError(f"the studio cannot {type(message).__struct_config__.tag} yet")
            self._gesture = getattr(message, "gesture", None)
            try:
                return handler(message)
            finally:
                self._gesture = None

    def post(self, *said: ServerMessage) -> None:
        """Send messages unprompted, if a page is connected."""
        outlet = self.outlet  # the page may disconnect at any moment
        if outlet is not None:
            for message in said:
                outlet(message)

    def rest(self) -> None:
        """While idle: drop what can be recomputed, and move the history to disk."""
        with self.lock:
            if self.outlet is None and not self.closed:
                self.poser.rest()
                self.history.rest()
                self.solved = self.solved.rested() if self.solved else None

    def close(self) -> None:
        """Stop everything that runs for this session."""
        self.outlet, self.closed = None, True
        for listener in self.on_close:
            listener()
        self.history.close()

    @property
    def motion(self) -> Motion | None:
        """The motion of the timeline."""
        return self.state.motion

    @property
    def held_bytes(self) -> int:
        """The memory size of its motion and its own models."""
        arrays = [] if self.motion is None else [self.motion.root_positions, self.motion.rotations]
        for entry in self.models.own:
            arrays += getattr(entry.prior, "arrays", dict)().values() if entry.source.ready else ()
        return sum(array.nbytes for array in arrays)

    @property
    def seq(self) -> int:
        """The number of the newest streaming message."""
        return max(self._seq, 0)

    # --- for panels ------------------------------------------------------------------------------------------------

    def show(
        self, state: State, solved: SolvedState | None = None, *, fine: bool = True
    ) -> messages.SolvedPose:
        """Show a state without a step of undo."""
        if solved is not None:
            state, self.solved = state.with_(placed=solved.placed), solved
        self.state = state
        for listener in self.on_pose:
            listener(state)
        return self.pose(fine=fine)

    def commit(self, state: State, solved: SolvedState | None = None) -> Answer:
        """Show a state as one step of undo; all steps of one gesture are one."""
        pose = self.show(state, solved)
        self.history.push(self.state)
        if self._gesture is not None and self._gesture == self._stepped:
            self.history.join()
        self._stepped = self._gesture
        self.poser.foresee(self.state)
        self.keep()
        return [self.scene(), pose]

    def revise(self, **changes: Any) -> None:
        """Change the current state without a step of undo, below a running drag."""
        under_way = self.state is not self.history.now
        self.history.amend(self.history.now.with_(**changes))
        self.state = self.state.with_(**changes) if under_way else self.history.now

    def keep(self) -> None:
        """Schedule the current state for saving."""
        self.autosave.keep(self.token, self.files, self.history.now)

    def begin_with(self, state: State) -> Answer:
        """Show a state with another body or motion, as one step of undo."""
        before, self.solved = self.state, None
        answer = self.commit(state)
        return [*self._other_body(before), *answer, *self.motion_shown(before.motion)]

    def put_back(self, state: State) -> Answer:
        """Show a state from the history, with its body if it differs."""
        self.solved = self._stepped = None
        before, pose = self.state, self.show(state)
        self.keep()
        restored = [message for restore in self.restorers for message in restore(state)]
        return [*self._other_body(before), self.scene(), pose, *self.motion_shown(before.motion), *restored]

    def motion_shown(self, before: Motion | None = None, *, fine: bool = True) -> Answer:
        """The frames that differ from the page's: some at once, the others when they are ready."""
        motion = self.motion
        if motion is None:
            return []
        first, end = changed_frames(before, motion)
        if end - first > PIECE:
            self.jobs.start_newest(
                "showMotion", "showing the motion", self._pieces(first + PIECE, end, fine=fine)
            )
        return [self.frames_shown(first, min(end, first + PIECE), fine=fine)] if end > first else []

    def frames_shown(self, first: int, end: int, *, fine: bool) -> messages.MotionRange:
        """Frames of the motion as messages."""
        return motion_range(self.state, first, end, seq=self.seq, fine=fine)

    def _pieces(self, first: int, end: int, *, fine: bool) -> Work:
        layers = self.state.layers

        def work(report: Report) -> Steps:
            for start in range(first, end, PIECE):
                with self.lock:  # after the answer that began this
                    state = self.state
                    if state.layers is not layers:
                        break  # the change that caused this shows it
                    self.post(motion_range(state, start, min(end, start + PIECE), seq=self.seq, fine=fine))
                report((start - first) / (end - first))
                yield
            return Done(list)

        return work

    def _other_body(self, before: State) -> Answer:
        return [] if self.has_same_body(before, self.state) else [self.body()]

    def has_same_body(self, state: State, other: State) -> bool:
        """Whether two states have the same skeleton and, if any, the same mesh."""
        alike = self.poser.entry_of(state).skeleton.same_topology(self.poser.entry_of(other).skeleton)
        return alike and self.shown_by(state).character is self.shown_by(other).character

    def shown_by(self, state: State) -> Entry:
        """The model whose body a state shows: the character's, if its skeleton is that of one."""
        entry = self.poser.entry_of(state)
        dressed = [each for each in self.models.learned if each.character and each.skeleton == entry.skeleton]
        return entry if entry.character is not None or not dressed else dressed[0]

    def body(self) -> messages.BodyShown:
        """The mannequin of the shown skeleton, or its character."""
        return self.shown_by(self.state).body

    def scene(self) -> messages.SceneChanged:
        """The scene as a message."""
        state = self.state
        scene = messages.Scene(
            model=state.model, weights=list(state.weights), handles=list(state.handles), feet=state.feet,
            bearing=state.bearing, look_at=state.look_at, undo=self.history.undos, redo=self.history.redos,
            timeline=state.timeline, photo=state.photo, streaming=self.streaming, moving=state.layers is not None,
            props=list(state.props), constraints=state.constraints,
        )  # fmt: skip
        return messages.SceneChanged(scene=scene)

    def pose(self, *, fine: bool) -> messages.SolvedPose:
        """The pose as a message, with the result of its solve."""
        state, solved = self.state, self.solved
        points = points_of(state.pose, [point_of(handle) for handle in state.handles])
        outcome: dict[str, Any] = {"status": "reached", "words": "", "residuals": [], "microseconds": 0.0}
        if solved is not None:
            outcome = _outcome(solved)
        return messages.SolvedPose(
            seq=self.seq, fine=fine, world=world_of_pose(state.pose), handles=packed(points),
            log_likelihood=solved.log_likelihood if solved else None,
            percentile=solved.percentile if solved else None,
            latent=self._latent(solved), by_hand=state.by_hand,
            jumps=solved is not None and solved.jumps, **outcome,
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


def _outcome(solved: SolvedState) -> dict[str, Any]:
    """The result of a solve, in words and numbers."""
    solution = solved.solution
    residuals = [
        messages.HandleResidual(
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
    pose = standing_pose(entry.prior)
    return State(entry.id, Placed(pose), anchors=planted(pose))
