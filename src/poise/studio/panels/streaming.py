"""Live output: every pose shown in the studio is sent over OSC."""

from __future__ import annotations

import logging

from poise.apps.streaming import VmcSender, address_from_text
from poise.studio import messages
from poise.studio.session import Answer, Handler, Session
from poise.studio.state import State

_LOG = logging.getLogger("poise.studio")


class StreamingPanel:
    """The receiver of poses."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sender: VmcSender | None = None
        self._to: tuple[str, int] | None = None
        session.on_pose.append(self._send)
        session.on_close.append(self._stop)

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {messages.StreamOut: self.stream_out}

    def stream_out(self, message: messages.StreamOut) -> Answer:
        """Start or stop sending."""
        session = self._session
        self._stop()
        if message.to is not None:
            self._to = address_from_text(message.to)
            self._start(session.state)
            session.streaming = "{}:{}".format(*self._to)
            self._send(session.state)
        return [session.scene()]

    def _start(self, state: State) -> None:
        assert self._to is not None
        host, port = self._to
        samples = state.pose.rotations[None]
        self._sender = VmcSender(state.pose.skeleton, host=host, port=port, samples=samples)

    def _stop(self) -> None:
        if self._sender is not None:
            self._sender.close()
        self._sender, self._to, self._session.streaming = None, None, None

    def _send(self, state: State) -> None:
        """Send one pose; a missing receiver does not disturb the user."""
        if self._sender is None:
            return
        if self._sender.skeleton is not state.pose.skeleton:
            self._sender.close()
            self._start(state)
        try:
            self._sender.send(state.pose)
        except OSError as error:
            _LOG.info("a pose could not be sent: %s", error)
