"""Files that say two different things: read with a warning, or refused, never without a word."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.errors import ParseError
from poise.formats import read
from poise.formats.registry import read_character
from poise.performer import act


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("seeds")
    walk = act("walk", seconds=0.5, fps=30)
    for name in ("a.bvh", "a.amc"):
        poise.write(walk, folder / name)
    poise.write(poise.virtual_markers(walk), folder / "a.trc")
    return {file.suffix: file.read_text() for file in folder.iterdir()}


def _warnings(folder: Path, written: dict[str, str], extension: str, change: Callable[[str], str]) -> str:
    for suffix, text in written.items():
        (folder / f"a{suffix}").write_text(change(text) if suffix == extension else text)
    found = read(folder / f"a{extension}").origin.warnings
    if found:
        with pytest.raises(ParseError, match="it contradicts itself"):
            read(folder / f"a{extension}", strict=True)
    return " ".join(found)


def _rows(text: str, header: int, change: Callable[[list[str]], list[str]]) -> str:
    lines = text.splitlines()
    return "\n".join([*lines[:header], *change(lines[header:])]) + "\n"


@pytest.mark.parametrize("extension", [".bvh", ".amc", ".trc"])
def test_files_as_poise_writes_them_are_not_doubted(
    tmp_path: Path, written: dict[str, str], extension: str
) -> None:
    assert _warnings(tmp_path, written, extension, lambda text: text) == ""


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            lambda text: re.sub(r"(?m)^30\t30\t", "60\t60\t", text, count=1),
            "60 Hz, .* but the times are 30 Hz",
        ),
        (lambda text: _rows(text, 6, lambda rows: rows[::-1]), "the times do not increase: row 2"),
        (
            lambda text: _rows(text, 6, lambda rows: [*rows[:3], *rows[2:]]),
            "the times do not increase: row 4",
        ),
        (
            lambda text: text.replace("\tmm\t", "\tm\t", 1),
            r"the markers are 1.* m apart; is the file's unit, m, right",
        ),
        (lambda text: text.replace("\n9\t", "\n90\t", 1), "the frame numbers jump: row 9 has 90 after 8"),
        (lambda text: text.replace("\tRFHD\t", "\tLFHD\t", 1), "labels that are there twice: LFHD"),
    ],
)
def test_times_and_units_of_trc_files(
    tmp_path: Path, written: dict[str, str], change: Callable[[str], str], warning: str
) -> None:
    assert re.search(warning, _warnings(tmp_path, written, ".trc", change))


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (lambda text: re.sub(r"(?ms)^5\n.*?^6\n", "6\n", text), "frame 4 is followed by 6"),
        (lambda text: re.sub(r"(?m)^5$", "50", text), "frame 4 is followed by 50"),
        (lambda text: text.replace(":DEGREES", ":RADIANS"), r"radians; are they degrees \(:DEGREES\)"),
        (
            lambda text: re.sub(
                r"(?m)^(root(?: \S+){3}|[A-Za-z]\w*)((?: \S+)+)$",
                lambda row: row[1] + "".join(f" {np.radians(float(x)):.7f}" for x in row[2].split()),
                text,
            ),
            r"all angles are within .* degrees; are they radians",
        ),
    ],
)
def test_numbers_and_angles_of_amc_files(
    tmp_path: Path, written: dict[str, str], change: Callable[[str], str], warning: str
) -> None:
    assert re.search(warning, _warnings(tmp_path, written, ".amc", change))


def test_rotation_channels_of_bvh_files(tmp_path: Path, written: dict[str, str]) -> None:
    found = _warnings(
        tmp_path,
        written,
        ".bvh",
        lambda text: text.replace("Zrotation Yrotation Xrotation", "Zrotation Zrotation Xrotation", 1),
    )
    assert re.search(r"joints with a rotation channel twice: \w+ \(ZZX\)", found)


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            lambda text: re.sub(
                r"(?m)^((?:-?\d+\.\d+ ){3})(.*)$",
                lambda row: row[1] + " ".join(f"{np.radians(float(x)):.6f}" for x in row[2].split()),
                text,
            ),
            "all angles are within .* degrees; are they radians",
        ),
        (
            lambda text: re.sub(
                r"OFFSET (.*)",
                lambda row: "OFFSET " + " ".join(f"{float(x) / 100:.8f}" for x in row[1].split()),
                text,
            ),
            "the hips are .* m high on legs of .* m",
        ),
    ],
)
def test_angles_and_units_of_bvh_files(
    tmp_path: Path, written: dict[str, str], change: Callable[[str], str], warning: str
) -> None:
    assert re.search(warning, _warnings(tmp_path, written, ".bvh", change))


@pytest.mark.parametrize(("scale", "warns"), [(1.0, False), (np.degrees(1.0), True)])
def test_angles_of_amass_files(tmp_path: Path, scale: float, warns: bool) -> None:
    turns = scale * np.random.default_rng(0).normal(scale=0.3, size=(9, 66))
    np.savez(tmp_path / "a.npz", poses=turns, trans=np.zeros((9, 3)), mocap_framerate=60.0, betas=np.zeros(4))
    assert ("are they degrees" in " ".join(read(tmp_path / "a.npz").origin.warnings)) == warns


@pytest.mark.parametrize(
    ("scale", "warning"),
    [
        (1.0, None),
        (100.0, r"the body is 1\d\d m tall, with lengths in m; in cm it would be 1\.\d+ m"),
        (0.01, "0.01"),
    ],
)
def test_the_height_of_a_glb(tmp_path: Path, scale: float, warning: str | None) -> None:
    walk = act("walk", seconds=0.2, fps=30)
    sized = poise.Motion(walk.skeleton.scaled(scale), 30.0, scale * walk.root_positions, walk.rotations)
    poise.write(sized, tmp_path / "a.glb", mannequin=False)
    for reader in (read, read_character):
        found = " ".join(reader(tmp_path / "a.glb").origin.warnings)
        assert re.search(warning, found) if warning else not found
    if warning:
        with pytest.raises(ParseError, match="it contradicts itself: the body is"):
            read(tmp_path / "a.glb", strict=True)


def test_every_kind_of_contradiction_is_named_in_words() -> None:
    """As the fuzzer makes them, each once: 31 kinds in four formats."""
    fuzzer = Path(__file__).parents[2] / "fuzz" / "fuzz_contradictions.py"
    done = subprocess.run(
        [sys.executable, str(fuzzer), "--table"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split(": ", 2) for line in done.stdout.splitlines()]
    assert len(lines) >= 30
    assert all(len(line) == 3 and len(line[2]) > 20 for line in lines)
