"""Tools for agents, called by the protocol's own client: twelve tasks with pictures, files, and wrong calls."""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from PIL import Image

import poise
from poise import performer
from poise.priors.motion import prior
from poise.skeleton.measure import standing_height
from small_motion import small_weights

mcp = pytest.importorskip("mcp")
agents = pytest.importorskip("poise.apps.agents")

FEET = {"left_foot": (0.06, 0.045, 0.0), "right_foot": (-0.06, 0.045, 0.0)}
TASKS: dict[
    str, dict[str, tuple[float, float, float]]
] = {  # shares of stature, as in docs/make_task_pictures.py
    "shelf": {**FEET, "right_hand": (-0.1, 1.1, 0.22)},
    "lift": {**FEET, "left_hand": (0.1, 0.14, 0.22), "right_hand": (-0.1, 0.14, 0.22)},
    "sit": {
        "pelvis": (0.0, 0.27, -0.12),
        "left_foot": (0.08, 0.045, 0.14),
        "right_foot": (-0.08, 0.045, 0.14),
    },
    "kneel": {"left_shin": (0.07, 0.035, 0.02), "right_foot": (-0.08, 0.045, 0.2), "head": (0.0, 0.64, 0.02)},
    "kick": {"left_foot": (0.05, 0.045, 0.0), "right_foot": (-0.05, 0.45, 0.4)},
    "wave": {**FEET, "right_hand": (-0.26, 0.95, 0.08)},
    "push": {
        "left_foot": (0.06, 0.045, 0.12),
        "right_foot": (-0.06, 0.05, -0.24),
        "left_hand": (0.12, 0.74, 0.42),
        "right_hand": (-0.12, 0.74, 0.42),
    },
    "pull": {
        "left_foot": (0.07, 0.045, 0.14),
        "right_foot": (-0.07, 0.045, 0.0),
        "pelvis": (0.0, 0.48, -0.14),
        "left_hand": (0.07, 0.6, 0.26),
        "right_hand": (-0.07, 0.6, 0.26),
    },
    "throw": {
        "left_foot": (0.07, 0.045, 0.24),
        "right_foot": (-0.08, 0.045, -0.16),
        "left_hand": (0.18, 0.76, 0.28),
        "right_hand": (-0.24, 0.95, -0.16),
    },
    "climb": {
        "left_foot": (0.07, 0.3, 0.18),
        "right_foot": (-0.07, 0.045, 0.0),
        "left_hand": (0.1, 0.8, 0.26),
        "right_hand": (-0.1, 1.05, 0.22),
    },
    "look behind": FEET,
    "guard": {
        "left_foot": (0.1, 0.045, 0.1),
        "right_foot": (-0.1, 0.045, -0.1),
        "left_hand": (0.06, 0.82, 0.18),
        "right_hand": (-0.07, 0.8, 0.12),
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scene")
    performer.act("walk", seconds=1.5, fps=30).save(place / "walk.bvh")
    (tmp_path_factory.getbasetemp() / "secret.bvh").write_bytes((place / "walk.bvh").read_bytes())
    (place / "linked.bvh").symlink_to(tmp_path_factory.getbasetemp() / "secret.bvh")
    return place


@pytest.fixture(autouse=True)
def random_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = small_weights()
    monkeypatch.setattr(prior, "shipped", lambda: weights)


def called(folder: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of calls by a client in this process, over the protocol, or its errors."""
    found: list[Any] = []

    async def talk() -> None:
        async with mcp.Client(agents.Server(folder)) as client:
            for name, arguments in calls:
                try:
                    found.append(await client.call_tool(name, arguments))
                except mcp.MCPError as error:
                    found.append(error)

    anyio.run(talk)
    return found


def picture(result: Any) -> Image.Image:
    (image,) = [part for part in result.content if part.type == "image"]
    assert image.mime_type == "image/png"
    return Image.open(io.BytesIO(base64.b64decode(image.data)))


def is_drawn(image: Image.Image) -> bool:
    return min(image.size) > 100 and float(np.asarray(image.convert("L"), dtype=float).std()) > 5.0


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_posed_by_tools_alone_and_comes_back_as_a_picture(folder: Path, task: str) -> None:
    height = standing_height(poise.UniversalPrior.of_people().space.skeleton)
    places = {role: [height * each for each in place] for role, place in TASKS[task].items()}
    behind = {"look_at": [-0.8 * height, 0.85 * height, -height]} if task == "look behind" else {}
    (found,) = called(folder, ("pose", {"handles": places, **behind}))
    answer = found.structured_content
    assert not found.is_error
    assert answer["missed_m"] == {}
    for role, place in places.items():
        np.testing.assert_allclose(answer["positions_m"][role], place, atol=2e-3)
    assert 0.0 < max(answer["doubt_m"].values()) < 1.0
    assert is_drawn(picture(found))


def test_an_agent_finds_makes_retargets_mends_and_draws_motions(folder: Path) -> None:
    keys = [{"time": 0.0, "file": "walk.bvh"}, {"time": 0.4, "handles": {"right_hand": [-0.4, 1.5, 0.3]}},
            {"time": 1.0, "file": "walk.bvh", "frame": 30}]  # fmt: skip
    listed, described, acted, between, moved, mended, drawn, written, pose = called(
        folder,
        ("list_files", {}),
        ("describe", {"file": "walk.bvh"}),
        ("act", {"action": "throw", "seconds": 1.0, "output": "throw.glb"}),
        ("animate", {"keys": keys, "output": "between.bvh"}),
        ("retarget", {"motion": "throw.glb", "character": "walk.bvh", "output": "moved.bvh"}),
        ("repair", {"motion": "walk.bvh", "output": "mended.bvh"}),
        ("render", {"file": "mended.bvh", "output": "mended.png"}),
        ("convert", {"file": "walk.bvh", "output": "walk.usda"}),
        ("pose", {"character": "walk.bvh", "handles": {"left_hand": [0.3, 1.4, 0.3]}, "output": "hello.bvh",
                  "constraints": [{"kind": "look-at", "handle": "head", "target": [1, 1.5, 2]}]}),
    )  # fmt: skip
    assert "walk.bvh" in listed.structured_content["motions_and_characters"]
    assert "left_hand" in listed.structured_content["roles"]
    assert described.structured_content["frames"] == len(poise.read(folder / "walk.bvh"))
    assert not any(one.is_error for one in (acted, between, moved, mended, drawn, written, pose)), [
        one.content[0] for one in (acted, between, moved, mended, drawn, written, pose) if one.is_error
    ]
    assert between.structured_content["frames"] == 31
    assert max(between.structured_content["doubt_m"].values()) > 0.0
    assert mended.structured_content["slide_m"] < 0.05
    assert poise.read(folder / "moved.bvh").skeleton.names == poise.read(folder / "walk.bvh").skeleton.names
    assert len(poise.read(folder / "hello.bvh")) == 1
    for one in (acted, between, moved, mended, drawn, pose):
        assert is_drawn(picture(one))


def test_schemas_are_typed(folder: Path) -> None:
    async def listed() -> dict[str, Any]:
        async with mcp.Client(agents.Server(folder)) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = anyio.run(listed)
    assert set(tools) == {
        "list_files", "describe", "pose", "animate", "act", "retarget", "repair", "render", "convert"
    }  # fmt: skip
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["type"] == "object"
    assert tools["pose"].output_schema["properties"]["doubt_m"]["additionalProperties"]["type"] == "number"
    point = tools["pose"].input_schema["properties"]["handles"]["anyOf"][0]["additionalProperties"]
    assert (point["minItems"], point["maxItems"]) == (3, 3)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("dance", {}),
        ("pose", {"handles": {"left_hand": [0.1, 0.2]}}),
        ("pose", {"handles": {"left_hand": ["a", 0.2, 0.3]}}),
        ("animate", {"keys": []}),
        ("animate", {"keys": [{"time": -1.0}, {"time": 2.0}]}),
        ("retarget", {"motion": "walk.bvh"}),
        ("act", {"action": "walk", "seconds": 1e9}),
        ("render", {"file": "walk.bvh", "poses": 10**6}),
    ],
)
def test_wrong_calls_are_errors_of_the_protocol(folder: Path, tool: str, arguments: dict[str, Any]) -> None:
    (found,) = called(folder, (tool, arguments))
    assert isinstance(found, mcp.MCPError)
    assert found.error.code == -32602
    assert tool in found.error.message


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("describe", {"file": "../secret.bvh"}, "outside of the folder"),
        ("describe", {"file": "/etc/passwd"}, "relative to its folder"),
        ("describe", {"file": "linked.bvh"}, "leads through a link"),
        ("describe", {"file": "linked.bvh#x"}, "leads through a link"),
        ("describe", {"file": "nothing.bvh"}, "does not exist"),
        ("describe", {"file": "."}, "is a folder"),
        ("repair", {"motion": "walk.bvh", "output": "../out.bvh"}, "outside of the folder"),
        ("repair", {"motion": "walk.bvh", "output": "walk.exe"}, "no extension that is written"),
        ("pose", {"handles": {"third_hand": [0, 1, 0]}}, "third_hand"),
        ("pose", {"constraints": [{"kind": "magic"}]}, "magic"),
        ("act", {"action": "levitate"}, "levitate"),
        ("animate", {"keys": [{"time": 0, "file": "walk.bvh", "frame": 999}, {"time": 1, "file": "walk.bvh"}]}, "999"),
        ("animate", {"keys": [{"time": 0}, {"time": 1}]}, "either a file"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_in_words(
    folder: Path, tool: str, arguments: dict[str, Any], words: str
) -> None:
    (found,) = called(folder, (tool, arguments))
    assert found.is_error
    assert words in found.content[0].text
    assert "Traceback" not in found.content[0].text


def test_the_command_serves_over_standard_input(folder: Path) -> None:
    async def talk() -> Any:
        command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "poise", "mcp", str(folder)])
        async with mcp.Client(mcp.stdio_client(command)) as client:
            return await client.call_tool("describe", {"file": "walk.bvh"})

    assert anyio.run(talk).structured_content["height_m"] > 1.0


@pytest.mark.parametrize("name", ["nowhere", "walk.bvh"])
def test_a_folder_must_be_one(folder: Path, name: str) -> None:
    with pytest.raises(poise.PoiseError, match="not a folder"):
        agents.Server(folder / name)
