"""Long tasks of a session (learning, exporting, smoothing a timeline): beside the drags, with progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poise.errors import InvalidValueError, PoiseError
from poise.studio import messages

if TYPE_CHECKING:
    from poise.studio.session import Answer, Session

PROGRESS_EVERY = 0.1  # seconds
AT_ONCE = 2  # tasks of all sessions together
_POOL = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="poise-job")
_LOG = logging.getLogger("poise.studio")

Report = Callable[[float], None]
"""Called with the share that is done."""


@dataclass(frozen=True)
class Done:
    """What a task found: `take` is called under the session's lock and says what came of it."""

    take: Callable[[], Answer]
    curve: Sequence[float] = ()


Work = Callable[[Report], Done]


class OvertakenError(Exception):
    """Raised inside a task of which a newer one has been asked for, or nobody waits any more."""


class Jobs:
    """What a session has under way, by the message that asked for it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: dict[str, str] = {}
        self._next: dict[str, tuple[str, Work]] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._running

    def start(self, task: str, words: str, work: Work) -> messages.Progress:
        """Begins a task; another of its kind has to end first."""
        if task in self._running:
            raise InvalidValueError(f"{self._running[task]} is still under way; one at a time")
        self._begin(task, words, work)
        return _progress(task, words, 0.0)

    def start_newest(self, task: str, words: str, work: Work) -> None:
        """Begins a task, or lets it take the place of the one of its kind that runs."""
        with self._session.lock:
            if task in self._running:
                self._next[task] = (words, work)
            else:
                self._begin(task, words, work)

    def _begin(self, task: str, words: str, work: Work) -> None:
        self._running[task] = words
        _POOL.submit(self._run, task, words, work)

    def _run(self, task: str, words: str, work: Work) -> None:
        answer, curve = self._outcome(task, words, work)
        with self._session.lock:
            del self._running[task]
            waiting = self._next.pop(task, None)
            if waiting is not None:
                self._begin(task, *waiting)
        if answer is not None:
            self._session.post(_progress(task, words, 1.0, curve=curve), *answer)

    def _outcome(self, task: str, words: str, work: Work) -> tuple[Answer | None, Sequence[float]]:
        """What to say when a task has ended; nothing where a newer one took its place."""
        try:
            done = work(self._reporter(task, words))
            with self._session.lock:
                if task in self._next:
                    return None, ()
                return done.take(), done.curve
        except OvertakenError:
            return None, ()
        except PoiseError as error:
            return [messages.Refusal(words=str(error), about=task, seq=None)], ()
        except Exception:
            _LOG.exception("while %s", words)
            trouble = f"{words} went wrong; the terminal that the studio runs in says how"
            return [messages.Refusal(words=trouble, about=task, seq=None)], ()

    def _reporter(self, task: str, words: str) -> Report:
        told = time.monotonic()

        def report(share: float) -> None:
            nonlocal told
            if task in self._next or self._session.closed:
                raise OvertakenError
            if time.monotonic() - told > PROGRESS_EVERY:
                told = time.monotonic()
                self._session.post(_progress(task, words, min(share, 0.99)))

        return report


def _progress(task: str, words: str, share: float, *, curve: Sequence[float] = ()) -> messages.Progress:
    return messages.Progress(task=task, words=words, share=share, curve=list(curve))
