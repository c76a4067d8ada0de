"""One person's studio: the scene, its history, and the handlers of messages.

A session outlives its connection, so that a lost one can be resumed. It handles one message at a time, in a worker
thread; long tasks run beside it and deliver their results under the same lock.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any, cast, get_type_hints

from poise.apps.posing import table_of
from poise.errors import InvalidValueError, PoiseError
from poise.formats import extensions
from poise.motion.motion import Motion
from poise.priors.abilities import standing_pose
from poise.priors.registry import learnable
from poise.solvers.constraints import CONSTRAINTS
from poise.studio import messages, pose_to_pose
from poise.studio.arrays import motion_range, packed, world_of_pose
from poise.studio.autosave import Autosave
from poise.studio.correcting import at_frame, corrected
from poise.studio.hands import differing_frames
from poise.studio.history import History
from poise.studio.jobs import Done, Jobs, Report, Steps
from poise.studio.messages import ClientMessage, ServerMessage
from poise.studio.models import Entry, ModelStore
from poise.studio.scene_files import SceneFiles
from poise.studio.solving import Poser, SolvedState, planted, point_of, points_of, replanted
from poise.studio.state import Placed, State
from poise.studio.uploads import Upload, Uploads

PIECE = 600  # frames of a motion per message
PREVIEW = "preview"
OWN_GESTURE = -1  # of an edit and its keys, where the page names none
_LOG = logging.getLogger("poise.studio")

Answer = list[ServerMessage]
Handler = Callable[[Any], Answer]


class Panel:
    """A part of the studio: each public method answers the kind of message that it takes."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        methods = [getattr(self, name) for name in names]
        return {next(iter(get_type_hints(method).values())): method for method in methods}


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
        pose = standing_pose(self.models.first.prior)
        first = State(self.models.first.id, Placed(pose), anchors=planted(pose))
        self.history = History(first, uploads.folder(self.token))
        self.state = self.history.now
        self.solved: SolvedState | None = None
        self.streaming: str | None = None
        self.openings: list[Upload] = []
        self.outlet: Callable[[ServerMessage], None] | None = None
        self.backlog: Callable[[], int] = lambda: 0  # unsent bytes
        self._seq, self.closed = -1, False
        self._gesture: int | None = None  # of the message that is being answered
        self._previewed: State | None = None  # whose frames the page shows during a drag
        self._stepped: int | None = None  # the gesture that made the last step of undo
        self.restorers: list[Callable[[State], Answer]] = []
        self.on_pose: list[Callable[[State], None]] = []
        self.on_greet: list[Callable[[], Answer]] = []
        self.on_close: list[Callable[[], None]] = []
        from poise.studio.panels import PANELS

        self._handlers = {kind: answer for make in PANELS for kind, answer in make(self).answers.items()}

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
            shown = [self.body(), self.scene(), self.pose(fine=True), *self.motion_shown()]
            return [welcome, self.listed(), *shown, *offered]

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
            if (seq := getattr(message, "seq", None)) is not None:
                if seq <= self._seq:
                    raise OutOfOrderError(f"number {seq} came after number {self._seq}; it was dropped")
                self._seq = seq
            handler = self._handlers.get(type(message))
            if handler is None:
                raise InvalidValueError(f"the studio cannot {type(message).__struct_config__.tag} yet")
            self._gesture = getattr(message, "gesture", None)
            try:
                answer = handler(message)
            finally:
                self._gesture = None
            ease = getattr(message, "ease", None)
            if ease is not None and not getattr(message, "last", True) and self.state.is_posed:
                self.preview(lambda state, begun: pose_to_pose.keyed(state, begun, ease))
            return answer

    def preview(self, ahead: Callable[[State, State], State]) -> None:
        """Show the frames as they will be when the hand lets go, by the state now and the one before the gesture."""
        begun = self.history.now

        def work(_: Report) -> Done:
            state = self.state
            if state is begun:
                return Done(list)
            found = ahead(state, begun)
            with self.lock:
                if self.history.now is begun and self.state is not begun:  # else it is over
                    first, end = differing_frames(self._previewed or begun, found)
                    self._previewed = found
                    if end > first:
                        self.post(motion_range(found, first, end, seq=self.seq, fine=False))
            return Done(list)

        self.jobs.start_newest(PREVIEW, "", work)

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

    def commit(
        self,
        state: State,
        solved: SolvedState | None = None,
        *,
        ease: int | None = None,
        handles: Iterable[str] = (),
    ) -> Answer:
        """Show a state as one step of undo; all steps of one gesture are one. With `ease` it is keyed.

        Where keys of handles make the motion, these handles are keyed; else the whole pose.
        """
        before, by_handles = (
            self.history.now,
            [] if state.timeline.clip or not state.timeline.keys else [*handles],
        )
        if solved is not None:
            state = state.with_(placed=solved.placed)
        if ease is not None and not by_handles:
            over = state.layers is not None and not state.is_posed
            state = corrected(state, ease) if over else pose_to_pose.keyed(state, before, ease)
        pose = self.show(state, solved)
        self.history.push(self.state)
        if self._gesture is not None and self._gesture == self._stepped:
            self.history.join()
        self._stepped = self._gesture
        self.poser.foresee(self.state)
        self.keep()
        answer = [self.scene(), pose]
        if ease is None:
            return answer
        if by_handles:
            return [*answer, *self._keyed(by_handles, ease)]
        return [*answer, *self.motion_shown(before), *self.restored()]

    def settle(
        self, state: State, solved: SolvedState, *, ease: int | None = None, handles: Iterable[str] = ()
    ) -> Answer:
        """Show a solved state as one step of undo: feet that were moved stand where they are now."""
        state = state.with_(placed=solved.placed)
        return self.commit(state.with_(anchors=replanted(state)), solved, ease=ease, handles=handles)

    def _keyed(self, handles: Iterable[str], ease: int) -> Answer:
        """Key handles where an edit that was just committed has put them: both are one step of undo.

        A key that is there already keeps its curve.
        """
        timeline, gesture, answer = self.state.timeline, self._gesture, []
        known = {key.handle: key for key in timeline.keys if key.frame == timeline.frame}
        for name in handles:
            handle = self.state.handle(name)
            key = known.get(name, messages.Key(handle=name, frame=timeline.frame))
            key = key.with_(position=handle.position, rotation=handle.rotation, ease=ease)
            self._stepped = OWN_GESTURE if gesture is None else gesture
            answer += self.answer(messages.PutKey(key=key, gesture=self._stepped))
        return answer

    def rekeyed(self, state: State) -> Answer:
        """Show a state with other keys of whole poses, as one step of undo; its motion is then solved."""
        state = at_frame(state, state.timeline.frame) if state.motion is not None else state
        return [*self.begin_with(state), *self.restored()]

    def restored(self) -> Answer:
        """What must go on from the state that is shown, such as the solution of its motion."""
        return [message for restore in self.restorers for message in restore(self.state)]

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
        return [*self._other_body(before), *answer, *self.motion_shown(before)]

    def put_back(self, state: State) -> Answer:
        """Show a state from the history, with its body if it differs."""
        self.solved = self._stepped = None
        before, pose = self.state, self.show(state)
        self.keep()
        shown = [self.scene(), pose, *self.motion_shown(before)]
        return [*self._other_body(before), *shown, *self.restored()]

    def motion_shown(self, before: State | None = None, *, fine: bool = True) -> Answer:
        """The frames that differ from the page's: some at once, the others when they are ready."""
        motion = self.motion
        if motion is None:
            return []
        if before is not None and self._previewed is not None:
            before = self._previewed
        self._previewed = None
        first, end = differing_frames(before, self.state)
        layers = self.state.layers

        def work(report: Report) -> Steps:
            for start in range(first + PIECE, end, PIECE):
                with self.lock:  # after the answer that began this
                    if self.state.layers is not layers:
                        break  # the change that caused this shows it
                    self.post(self.frames_shown(start, min(end, start + PIECE), fine=fine))
                report((start - first - PIECE) / (end - first - PIECE))
                yield
            return Done(list)

        if end - first > PIECE:
            self.jobs.start_newest("showMotion", "showing the motion", work)
        return [self.frames_shown(first, min(end, first + PIECE), fine=fine)] if end > first else []

    def frames_shown(self, first: int, end: int, *, fine: bool) -> messages.MotionRange:
        """Frames of the motion as messages."""
        return motion_range(self.state, first, end, seq=self.seq, fine=fine)

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

    @property
    def shows_character(self) -> bool:
        """Whether the shown body is a character with a mesh of its own."""
        return self.shown_by(self.state).character is not None

    def body(self) -> messages.BodyShown:
        """The mannequin of the shown skeleton, or its character."""
        return self.shown_by(self.state).body

    def listed(self) -> messages.Models:
        """All models as a message."""
        return messages.Models(models=self.models.described())

    def path(self, upload: str) -> Path:
        """The file that this person uploaded under an id."""
        return self.uploads.find(upload, owner=self.token).path

    def offered(self, path: Path) -> messages.FileReady:
        """A written file, for the page to fetch."""
        upload = self.uploads.keep(path, owner=self.token)
        return messages.FileReady(name=path.name, address=upload.address, size=upload.size)

    def scene(self) -> messages.SceneChanged:
        """The scene as a message."""
        state = self.state
        scene = messages.Scene(
            model=state.model, weights=list(state.weights), handles=list(state.handles), feet=state.feet,
            bearing=state.bearing, look_at=state.look_at, undo=self.history.undos, redo=self.history.redos,
            timeline=state.timeline, photo=state.photo, streaming=self.streaming, moving=state.layers is not None,
            props=list(state.props), constraints=state.constraints, hands=state.hands, video=state.video,
        )  # fmt: skip
        return messages.SceneChanged(scene=scene)

    def pose(self, *, fine: bool) -> messages.SolvedPose:
        """The pose as a message, with the result of its solve."""
        state, solved = self.state, self.solved
        points = points_of(state.pose, [point_of(handle) for handle in state.handles])
        shown = partial(
            messages.SolvedPose, seq=self.seq, fine=fine, world=world_of_pose(state.pose, state.hands),
            handles=packed(points), by_hand=state.by_hand,
        )  # fmt: skip
        if solved is None:
            return shown(
                status="reached", words="", residuals=[], microseconds=0.0, log_likelihood=None, percentile=None,
                latent=None, jumps=False, beyond="",
            )  # fmt: skip
        solution, view = solved.solution, None
        if len(solved.latents) == 1:
            view = self.poser.entry_of(state).view
        return shown(
            status=cast("messages.Status", solution.status.name.lower()),
            words="; ".join([solution.status.value, *map(str, solution.relaxed)]),
            residuals=[
                messages.HandleResidual(
                    handle=owner, label=left.label, value=left.value, unit=left.unit, hard=left.hard, met=left.met
                )
                for owner, left in zip(solved.owners, solution.residuals, strict=True)
            ],
            microseconds=solution.microseconds, log_likelihood=solved.log_likelihood, percentile=solved.percentile,
            latent=None if view is None else view.seen(solved.latents[0]), jumps=solved.jumps,
            beyond=solved.beyond,
        )  # fmt: skip
