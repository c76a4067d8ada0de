"""The local socket: bones in, roles out; places in, turns out; wrong lines answered; and the add-on's own archive."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest

from bodies import person
from poise.apps import serving
from poise.priors.motion import following
from poise.skeleton import Pose, Skeleton
from running_server import served
from small_motion import small_weights


def bones_of(skeleton: Skeleton) -> list[dict[str, object]]:
    pose = Pose.rest(skeleton)
    return [
        {
            "name": name,
            "parent": skeleton.names[parent] if parent >= 0 else None,
            "head": pose.positions[name].tolist(),
        }
        for name, parent in zip(skeleton.names, skeleton.parents, strict=True)
    ]


def asked(character: serving.ServedCharacter, **message: object) -> dict[str, object]:
    return character.answer(json.dumps(message).encode())


def test_a_character_is_posed_over_the_socket() -> None:
    skeleton = person()
    hand = [*(Pose.rest(skeleton).positions["left_hand"] + (-0.1, -0.2, 0.2))]
    with (
        socket.create_connection(("127.0.0.1", served()), timeout=120) as link,
        link.makefile("rwb") as lines,
    ):
        for message in ({"open": bones_of(skeleton)}, {"pose": {"left_hand": hand}}, {"nonsense": 1}):
            lines.write(json.dumps(message).encode() + b"\n")
        lines.flush()
        opened, posed, wrong = (json.loads(lines.readline()) for _ in range(3))
    assert opened["root"] == skeleton.names[0]
    assert opened["roles"]["left_hand"] == skeleton.roles["left_hand"]
    turns = np.array([posed["turns"][name] for name in skeleton.names])
    place = Pose(skeleton, posed["place"], turns).positions["left_hand"]
    np.testing.assert_allclose(place, hand, atol=2e-3)
    assert posed["far"]["left_hand"] < 2e-3
    assert "nonsense" in wrong["error"]


def test_a_character_follows_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = small_weights()
    monkeypatch.setattr(following, "shipped", lambda: weights)
    skeleton, character = person(), serving.ServedCharacter()
    head = {"head": [0.0, 1.5, 0.0, 1.0, 0.0, 0.0, 0.0]}
    assert "send its bones first" in str(asked(character, track=head)["error"])
    asked(character, open=bones_of(skeleton))
    for number in range(3):
        answer = asked(character, track=head, time=number / 30)
    turns = np.array([answer["turns"][name] for name in skeleton.names])
    pose = Pose(skeleton, answer["place"], turns)
    np.testing.assert_allclose(pose.positions["head"], head["head"][:3], atol=2e-3)
    assert answer["deviations"][skeleton.roles["head"]] == 0.0
    assert answer["deviations"][skeleton.roles["left_hand"]] > 0.0
    assert asked(character, track={}, time=9.0)["notes"] == ["no tracker was seen in the last seconds"]
    assert "tracker" in str(asked(character, track={"tail": head["head"]})["error"])


def test_bytes_that_are_not_text_lose_no_character_and_web_pages_get_no_answer() -> None:
    with (
        socket.create_connection(("127.0.0.1", served()), timeout=120) as link,
        link.makefile("rwb") as lines,
    ):
        lines.write(json.dumps({"open": bones_of(person())}).encode() + b"\n")
        lines.write(b'{"pose": {"\x80": [0, 1, 0]}}\n{"rest": true}\nPOST / HTTP/1.1\r\n{"rest": true}\n')
        lines.flush()
        opened, wrong, rested = (json.loads(lines.readline()) for _ in range(3))
        assert lines.readline() == b""
    assert "roles" in opened
    assert "error" in wrong
    assert rested == {}


def test_a_root_on_the_floor_and_other_trees_are_left_out() -> None:
    bones = bones_of(person())
    bones[0]["parent"] = "ground"
    bones += [
        {"name": "ground", "parent": None, "head": [0, 0, 0]},
        {"name": "prop", "parent": None, "head": [1, 1, 1]},
    ]
    opened = asked(serving.ServedCharacter(), open=bones)
    assert opened["root"] == person().names[0]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"open": []}, "not recognised as a person|at least one"),
        ({"open": [{"name": "a", "parent": "b", "head": [0, 0, 0]}]}, "a parent that is one of the bones"),
        ({"open": [{"name": "a", "parent": None, "head": [0, 0]}]}, "length 3"),
        ({"pose": {"left_hand": [0, 1, 0]}}, "no character is open"),
        ({}, "expected a line with"),
        ({"open": [{"name": "a", "parent": None, "head": [0, 1e300, 0]}]}, "<= 10000"),
    ],
)
def test_what_cannot_be_answered_is_said(message: dict[str, object], words: str) -> None:
    import re

    assert re.search(words, str(asked(serving.ServedCharacter(), **message)["error"]))


def test_a_line_nested_without_end_is_an_error() -> None:
    answer = serving.ServedCharacter().answer(b'{"open": ' + b"[" * 100_000)
    assert answer.keys() == {"error"}


def test_the_manifest_of_the_add_on_has_the_version_of_poise() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    manifest = tomllib.loads((root / "blender/poise_blender/blender_manifest.toml").read_text())
    package = tomllib.loads((root / "pyproject.toml").read_text())
    assert manifest["version"] == package["project"]["version"]
