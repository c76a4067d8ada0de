"""Lab Streaming Layer: a stream of type MoCap whose channels are positions, by its description.

Channels are labelled left_hand.x (or left_hand_x), or have a marker and a type (PositionX) as in LSL's description of
motion capture. Y is up; millimetres and centimetres are converted to metres according to `unit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from poise.capture.feeds import POLL, GoOn, LiveFrame, Ready
from poise.errors import MissingExtraError, PoiseError

_SCALES = {"millimeters": 0.001, "millimetres": 0.001, "mm": 0.001, "centimeters": 0.01, "cm": 0.01}
_LABEL = re.compile(r"(.+?)[._ ]([xyz])$", re.IGNORECASE)


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Yield frames by the markers of the channels."""
    try:
        import pylsl
    except (ImportError, RuntimeError) as error:
        raise MissingExtraError("pylsl", extra="lsl", purpose="Lab Streaming Layer in") from error
    found: Any = ()
    while not found and go_on():
        found = pylsl.resolve_byprop("name", where, timeout=1.0)
    if not found:
        return
    inlet = pylsl.StreamInlet(found[0])
    info = inlet.info()
    columns, scale = read_channels(info)
    if not columns:
        raise PoiseError(
            f"the stream {info.name()!r} has no position channels; expected labels such as head.x"
        )
    ready(f"connected to {info.name()}")
    while go_on():
        sample, when = inlet.pull_sample(timeout=POLL)
        if sample is not None:
            values = np.array(sample, dtype=np.float64)
            places = {name: scale * values[at] for name, at in columns.items()}
            yield LiveFrame(places, seconds=when)


def read_channels(info: Any) -> tuple[dict[str, list[int]], float]:
    """The columns of x, y and z of every complete marker, and metres per unit."""
    found: dict[str, dict[str, int]] = {}
    scale, channel = 1.0, info.desc().child("channels").first_child()
    for column in range(info.channel_count()):
        said = {word: channel.child_value(word) for word in ("label", "marker", "type", "unit")}
        scale = _SCALES.get(said["unit"].lower(), scale)
        if said["marker"] and said["type"].lower().startswith("position"):
            found.setdefault(said["marker"], {})[said["type"][-1].lower()] = column
        elif match := _LABEL.match(said["label"]):
            found.setdefault(match[1], {})[match[2].lower()] = column
        channel = channel.next_sibling()
    return {name: [at[c] for c in "xyz"] for name, at in found.items() if set("xyz") <= set(at)}, scale
