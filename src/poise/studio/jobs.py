"""Long tasks of a session (learning, exporting, solving a timeline): beside the drags, one at a time, with progress."""

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


class Jobs:
    """What a session has under way."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: str | None = None

    def start(self, task: str, words: str, work: Work) -> messages.Progress:
        """Begins a task, which is named after the message that asked for it."""
        if self._running is not None:
            raise InvalidValueError(f"{self._running} is still under way; one thing at a time")
        self._running = words
        _POOL.submit(self._run, task, words, work)
        return _progress(task, words, 0.0)

    def _run(self, task: str, words: str, work: Work) -> None:
        session, told = self._session, [time.monotonic()]

        def report(share: float) -> None:
            if time.monotonic() - told[0] > PROGRESS_EVERY:
                told[0] = time.monotonic()
                session.post(_progress(task, words, min(share, 0.99)))

        answer: Answer = []
        curve: Sequence[float] = ()
        try:
            done = work(report)
            curve = done.curve
            with session.lock:
                answer = done.take()
        except PoiseError as error:
            answer = [messages.Refusal(words=str(error), about=task, seq=None)]
        except Exception:
            _LOG.exception("while %s", words)
            trouble = f"{words} went wrong; the terminal that the studio runs in says how"
            answer = [messages.Refusal(words=trouble, about=task, seq=None)]
        finally:
            self._running = None
            session.post(_progress(task, words, 1.0, curve=curve), *answer)


def _progress(task: str, words: str, share: float, *, curve: Sequence[float] = ()) -> messages.Progress:
    return messages.Progress(task=task, words=words, share=share, curve=list(curve))
