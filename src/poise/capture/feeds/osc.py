"""OSC: the messages of datagrams, gathered to frames."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from poise.capture.feeds import DAMAGED
from poise.errors import MissingExtraError

Key = TypeVar("Key")
Value = TypeVar("Value")

MOST = 500  # messages of a frame


def gathered(
    datagrams: Iterator[bytes],
    read: Callable[[Any], tuple[Key, Value] | None],
    ends: Callable[[Key, Collection[Key]], bool],
) -> Iterator[dict[Key, Value]]:
    """The frames of datagrams of messages, of which `read` makes keys and values, or None for other messages.

    A frame may come in several datagrams. It is complete when every key of the previous frame has come again, or a key
    that `ends` a frame (of such keys) comes twice.
    """
    try:
        from pythonosc.osc_packet import OscPacket, ParseError
    except ModuleNotFoundError as error:
        raise MissingExtraError("python-osc", extra="studio", purpose="OSC in") from error
    new: dict[Key, Value] = {}
    known: set[Key] = set()
    for data in datagrams:
        try:
            found = [one for timed in OscPacket(data).messages if (one := read(timed.message)) is not None]
        except (*DAMAGED, ParseError):
            continue
        for key, value in found:
            if len(new) > MOST or (key in new and ends(key, new)):
                yield new
                known, new = set(new), {}
            new[key] = value
        if known and known <= set(new):  # complete: no need to wait for the next frame
            yield new
            new = {}
