"""The help keeps its word: every command teaches with examples, and every example is one that the program takes."""

import re
import shlex
from pathlib import Path

import pytest

from cli.conftest import Program
from poise.cli.main import COMMANDS, overview, program
from poise.performer import ACTIONS, PERFORMERS, STYLES


def examples(text: str) -> list[list[str]]:
    """The arguments of the examples, lines joined; a comment after two spaces, and shell patterns, are left out."""
    joined = re.sub(r"\\\n *", "", text)
    lines = re.findall(r"^  poise (.*?)(?:  .*)?$", joined, flags=re.MULTILINE)
    return [shlex.split(line.replace("$(poise data get 07)", "07_01.bvh")) for line in lines]


def help_texts() -> dict[str, str]:
    return {"poise": overview(), **{name: str(program()[name].help_epilogue) for name in COMMANDS}}


@pytest.mark.parametrize("command", ["poise", *COMMANDS])
def test_no_line_is_broken_by_a_terminal_of_80_columns(command: str) -> None:
    assert [line for line in help_texts()[command].splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples_of_itself(command: str) -> None:
    shown = examples(help_texts()[command])
    assert shown
    assert command in {arguments[0] for arguments in shown}


@pytest.mark.parametrize(
    "command",
    [
        "convert in.bvh out.glb", "learn in.bvh out.poise", "pose in.poise", "keyframe in.toml -o out.glb",
        "perform vmc:1", "markers solve in.c3d -o out.glb", "video in.mp4", "simulate in.poise -o out.glb",
        "animate in.poise in.toml -o out.glb", "image in.jpg", "fuse in.toml",
    ],
)  # fmt: skip
def test_every_command_that_makes_a_motion_carries_it_onto_a_character(command: str) -> None:
    _, bound, _ = program().parse_args(
        [*command.split(), "--onto", "me.glb"], exit_on_error=False, print_error=False
    )
    assert bound.arguments["onto"] == Path("me.glb")


@pytest.mark.parametrize(
    "arguments", [arguments for text in help_texts().values() for arguments in examples(text)], ids=" ".join
)
def test_every_example_is_taken(arguments: list[str]) -> None:
    _, bound, _ = program().parse_args(arguments, exit_on_error=False, print_error=False)
    for kind, known in (("action", ACTIONS), ("style", STYLES), ("performer", PERFORMERS)):
        asked = bound.arguments.get(kind)
        assert asked is None or asked in known


def test_names_keep_their_capitals(poise: Program) -> None:
    shown = poise("stream", "--help").out
    assert "Send a motion live over OSC (VMC): Blender, Unreal, VTuber tools." in shown
