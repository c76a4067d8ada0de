"""Long tasks of a session (learning, exporting, solving a timeline): in the background, with progress and stop.

A task in steps yields its thread between them, so that a long one of one page does not block those of another; and
every task leaves most of the time to interactive answers.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from poise.errors import InvalidValueError, PoiseError
from poise.studio import messages

if TYPE_CHECKING:
    from poise.studio.session import Answer, Session

PROGRESS_EVERY = 0.1  # seconds
AT_ONCE = 2  # tasks of all sessions together
TURN = 0.2  # seconds after which a task in steps yields its thread
CROWDED, CROWDED_FOR = 4_000_000, 0.02  # unread bytes of a page above which its tasks wait, and seconds
BUSY = 0.1  # seconds after an answer in which tasks rest at every report
REST, MOST_REST = 3.0, 10.0  # times their work since the last rest, with one page and with many
PER_ANSWER = 0.15  # of that for each answer given meanwhile
LONGEST_REST = 1.0  # seconds
_POOL = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="poise-job")
_LOG = logging.getLogger("poise.studio")

Report = Callable[[float], None]
"""Called with the fraction done."""


@dataclass(frozen=True)
class Done:
    """The result of a task: `take` is called under the session's lock and returns the messages."""

    take: Callable[[], Answer]
    curve: Sequence[float] = ()


Steps = Generator[None, None, Done]
Work = Callable[[Report], Done | Steps]


class StoppedError(Exception):
    """Raised inside a task that nobody waits for."""


@dataclass(eq=False)
class _Job:
    """A running task; `reported` is the time of the page's last update."""

    task: str
    words: str
    work: Work
    steps: Steps | None = None
    reported: float = 0.0
    is_cancelled: bool = False


class Jobs:
    """The running tasks of a session, by the message that started them."""

    answered: ClassVar[deque[float]] = deque(maxlen=64)
    """Times of recent answers in any session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: dict[str, _Job] = {}
        self._next: dict[str, _Job] = {}

    @property
    def idle(self) -> bool:
        """Whether no task is running."""
        return not self._running

    def start(self, task: str, words: str, work: Work) -> messages.Progress:
        """Start a task; another of its kind must end first."""
        with self._session.lock:
            if task in self._running:
                raise InvalidValueError(
                    f"{self._running[task].words} is still running; wait for it or stop it"
                )
            self._begin(_Job(task, words, work))
        return _progress(task, words, 0.0)

    def start_newest(self, task: str, words: str, work: Work) -> None:
        """Start a task, or replace the running one of its kind; one without words shows no progress."""
        with self._session.lock:
            if task in self._running:
                self._next[task] = _Job(task, words, work)
            else:
                self._begin(_Job(task, words, work))
                if words:  # before the answer: the page knows what follows
                    self._session.post(_progress(task, words, 0.0))

    def cancel(self, task: str) -> None:
        """Stop a task at its next report; its results so far are kept."""
        with self._session.lock:
            if task not in self._running:
                raise InvalidValueError(f"no running task of the kind {task!r} to stop")
            self._next.pop(task, None)
            self._running[task].is_cancelled = True

    def _begin(self, job: _Job) -> None:
        self._running[job.task] = job
        _POOL.submit(self._run, job)

    def _run(self, job: _Job) -> None:
        try:
            done = self._advanced(job)
            if done is None:
                _POOL.submit(self._run, job)
                return
            with self._session.lock:
                self._check(job)
                answer = done.take()
                self._end(job, *answer, curve=done.curve)  # before what a task that it began has to say
        except StoppedError:
            self._end(job)
        except Exception as error:
            words = f"{job.words} went wrong; the terminal that the studio runs in says how"
            if isinstance(error, PoiseError):
                words = str(error)
            elif isinstance(error, OSError):
                words = f"{job.words} was not possible: {error.strerror or 'the file cannot be used'}"
            else:
                _LOG.exception("while %s", job.words)
            self._end(job, messages.Refusal(words=words, about=job.task, seq=None))

    def _end(self, job: _Job, *answer: messages.ServerMessage, curve: Sequence[float] = ()) -> None:
        """Says what came of a task; of its progress nothing where a newer one takes its place."""
        with self._session.lock:
            del self._running[job.task]
            waiting = self._next.pop(job.task, None)
            if waiting is not None:
                self._begin(waiting)
            elif job.words:
                self._session.post(_progress(job.task, job.words, 1.0, curve=curve))
            self._session.post(*answer)

    def _advanced(self, job: _Job) -> Done | None:
        """The outcome of a task; None if it has more steps."""
        if job.steps is None:
            begun = job.work(self._reporter(job))
            if isinstance(begun, Done):
                return begun
            job.steps = begun
        until = time.monotonic() + TURN
        try:
            while time.monotonic() < until:
                self._check(job)
                if self._session.backlog() > CROWDED:
                    time.sleep(CROWDED_FOR)
                else:
                    next(job.steps)
        except StopIteration as end:
            found: Done = end.value
            return found
        return None

    def _check(self, job: _Job) -> None:
        if job.is_cancelled or job.task in self._next or self._session.closed:
            raise StoppedError

    def _reporter(self, job: _Job) -> Report:
        job.reported = rested = time.monotonic()

        def report(share: float) -> None:
            nonlocal rested
            self._check(job)
            now = time.monotonic()
            if now - job.reported > PROGRESS_EVERY:
                job.reported = now
                self._session.post(_progress(job.task, job.words, min(share, 0.99)))
            time.sleep(rest(now, worked=now - rested))
            rested = time.monotonic()

        return report


def rest(now: float, *, worked: float) -> float:
    """Seconds that a task leaves to people being answered: the more of them, the longer."""
    answers = sum(now - each < BUSY for each in tuple(Jobs.answered))
    times = min(max(PER_ANSWER * answers, REST), MOST_REST) if answers else 0.0
    return min(times * worked, LONGEST_REST)


def _progress(task: str, words: str, share: float, *, curve: Sequence[float] = ()) -> messages.Progress:
    return messages.Progress(task=task, words=words, share=share, curve=list(curve))
