"""Messages: what is refused, and that the page's types are those of the server."""

import math

import msgspec
import pytest

from poise.studio import messages, typescript

DECODER = msgspec.msgpack.Decoder(messages.ClientMessage)


def decoded(**fields: object) -> object:
    return DECODER.decode(msgspec.msgpack.encode(fields))


def test_the_page_has_the_types_of_the_server() -> None:
    assert typescript.TARGET.read_text(encoding="utf-8") == typescript.typescript(), (
        "run python -m poise.studio.typescript"
    )


def test_names_are_written_as_the_page_writes_them() -> None:
    wire = msgspec.msgpack.decode(msgspec.msgpack.encode(messages.SetLookAt(target=(0.0, 1.0, 2.0))))
    assert wire == {"type": "setLookAt", "target": [0.0, 1.0, 2.0], "ease": None}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"type": "drag", "seq": 1, "handle": "a", "position": [math.nan, 0, 0]}, "position"),
        ({"type": "drag", "seq": 1, "handle": "a", "position": [1e9, 0, 0]}, "<= 1000"),
        ({"type": "drag", "seq": -1, "handle": "a"}, "seq"),
        ({"type": "drag", "seq": 1, "handle": "a" * 300}, "length"),
        ({"type": "drag", "seq": 1, "handle": "a", "more": 1}, "more"),
        ({"type": "drag", "seq": "one", "handle": "a"}, "int"),
        ({"type": "conquer"}, "conquer"),
        ({}, "type"),
    ],
)
def test_what_is_malformed_is_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        decoded(**fields)


def test_every_message_that_streams_says_which_one_it_is() -> None:
    for struct in (
        messages.Drag,
        messages.DragLatent,
        messages.HoverLatent,
        messages.MovePoint,
        messages.DragKey,
    ):
        assert "seq" in struct.__struct_fields__
