"""BVH that cannot be right: an error with file and line, at once and without taking the machine down."""

import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bvh_text import bvh_text, saved
from poise.errors import ParseError, PoiseError
from poise.formats import bvh

ROW = "1 2 3 10 20 30 40 50 60"
TEXT = bvh_text(ROW, ROW, ROW)  # the rows are lines 19 to 21


def error_of(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ParseError) as caught:
        bvh.read(saved(folder, text))
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("HIERARCHY", "ANARCHY", 1, "starts with HIERARCHY"),
        ("ROOT", "TOOR", 2, "got 'TOOR'"),
        ("ROOT Hips", "ROOT", 2, "needs a name"),
        ("OFFSET 0 100 0", "OFFSET 0 100", 9, "expected a number; got 'CHANNELS'"),
        ("OFFSET 0 100 0", "OFFSET 0 nan 0", 8, "expected a number; got 'nan'"),
        ("OFFSET 0 100 0", "OFFSET 0 1e999 0", 8, "out of range"),
        ("OFFSET 0 100 0", "", 14, "has no OFFSET"),
        ("OFFSET 0 100 0", "OFFSET 0 100 0 OFFSET 0 1 0", 8, "a second OFFSET"),
        ("CHANNELS 3", "CHANNELS 2", 9, "got 'Yrotation'"),
        ("CHANNELS 3", "CHANNELS 4", 10, "'Arm' declares 4 channels"),
        ("CHANNELS 3", "CHANNELS 999999999", 10, "'Arm' declares 999999999 channels"),
        ("CHANNELS 3", "CHANNELS many", 9, "followed by a count"),
        ("CHANNELS 3 Zrotation", "CHANNELS 3 Wrotation", 9, "got 'Wrotation'"),
        ("CHANNELS 3", "CHANNELS 4 Yrotation", 10, "4 rotation channels"),
        ("Yposition", "Xposition", 5, "two channels Xposition"),
        ("JOINT Arm", "ROOT Arm", 6, "a second ROOT"),
        ("\t}\n}\nMOTION", "\t}\nMOTION", 15, "brace of joint 'Hips', opened at line 2, is not closed"),
        ("\t}\n}\nMOTION", "\t}\n}\n}\nMOTION", 16, "closing brace without"),
        ("\t}\n}\nMOTION", "\t}\n}\nJOINT Other { OFFSET 0 0 0 }\nMOTION", 16, "outside the braces of ROOT"),
        ("Frames: 3", "Frames: three", 16, "'Frames: <count>'"),
        ("Frames: 3", "Frames: -3", 16, "'Frames: <count>'"),
        ("Frame Time: 0.0333333", "Frame Time: 0", 18, "must be positive"),
        ("Frame Time: 0.0333333", "Frame Time: nan", 18, "expected a number; got 'nan'"),
        ("Frame Time: 0.0333333", "", 22, "no 'Frame Time:'"),
    ],
)
def test_faults_of_the_header(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    message = error_of(tmp_path, TEXT.replace(old, new, 1))
    assert message.startswith(f"clip.bvh:{line}: ")
    assert words in message


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        ((ROW, "1 2 3 10 20 30 40 50", ROW), 20, "a row must have 9 numbers; this line has 8"),
        ((ROW, "1 2 3 10 20 30 40 50 60 70", ROW), 20, "this line has 10"),
        (("1 2 3 10 20 30 40 50", ROW, ROW), 19, "this line has 8"),
        ((ROW, ROW + " 1", "2 3 10 20 30 40 50 60"), 20, "this line has 10"),
        ((ROW, ROW, "1 2 3"), 21, "ends within a row: 3 numbers of 9"),
        ((ROW, ROW, "1 2 3 4\n5"), 21, "ends within a row: 5 numbers of 9"),
        ((ROW, "1 2 3 10 nan 30 40 50 60", ROW), 20, "expected a number; got 'nan'"),
        ((ROW, "1 2 3 10 -inf 30 40 50 60", ROW), 20, "expected a number; got '-inf'"),
        ((ROW, "1 2 3 10 1.#QNAN 30 40 50 60", ROW), 20, "got '1.#QNAN'"),
        ((ROW, ROW, "1 2 3 10 1e999 30 40 50 60"), 21, "out of range"),
        ((ROW, ROW, "1 2 3 10 9999999999999 30 40 50 60"), 21, "out of range"),
        ((ROW, ROW, "1 2 3 10 20 30 40 50 0,5"), 21, "got '0,5'"),
        ((ROW, ROW, "1 2 3 10 20 30 40 50 1_0"), 21, "got '1_0'"),
        ((ROW, ROW, "1 2 3 10 20 30 40 50 1e"), 21, "got '1e'"),
        ((ROW, ROW, "1 2 3 10 20 30 40 50 -"), 21, "got '-'"),
        ((ROW, ROW, "1 2 3 10 20 30 40 50 1.2.3"), 21, "got '1.2.3'"),
        ((), 18, "no frames: 0 are declared"),
    ],
)
def test_faults_of_the_rows(tmp_path: Path, rows: tuple[str, ...], line: int, words: str) -> None:
    message = error_of(tmp_path, bvh_text(*rows))
    assert message.startswith(f"clip.bvh:{line}: ")
    assert words in message


def test_lines_are_counted_alike_with_any_line_ends(tmp_path: Path) -> None:
    text = bvh_text(ROW, ROW.replace("10", "x"), ROW)
    for ending in ("\r\n", "\r"):
        assert error_of(tmp_path, text.replace("\n", ending)).startswith("clip.bvh:20: ")


def test_a_file_cut_anywhere_is_an_error_or_a_warning(tmp_path: Path) -> None:
    for length in range(1, len(TEXT) - len(ROW)):
        file = saved(tmp_path, TEXT[:length])
        try:
            motion = bvh.read(file)
        except ParseError as error:
            outcome = str(error)
        else:
            outcome = motion.origin.warnings[0]
        assert re.match(r"clip\.bvh:\d+: |the file declares 3 frames and holds [12]", outcome), length


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(
        st.tuples(st.integers(0, len(TEXT)), st.integers(0, 9), st.binary(max_size=6)), min_size=1, max_size=4
    )
)
def test_damaged_files_raise_only_errors_of_poise(tmp_path: Path, cuts: list[tuple[int, int, bytes]]) -> None:
    raw = TEXT.encode()
    for start, length, put in cuts:
        raw = raw[:start] + put + raw[start + length :]
    with contextlib.suppress(PoiseError):
        bvh.read(saved(tmp_path, raw or b" "))


MANY = 9_000
HOSTILE = {
    "frames declared": bvh_text(ROW, frames=999_999_999_999),
    "nesting without end": "HIERARCHY\nROOT A {\n" + "JOINT B {\n" * 200_000,
    "deep nesting": (
        "HIERARCHY ROOT A\n{ OFFSET 0 0 0 CHANNELS 1 Xrotation\n"
        + "JOINT B\n{ OFFSET 0 1 0\n" * MANY
        + "}" * (MANY + 1)
        + "\nMOTION\nFrames: 1\nFrame Time: 1\n5\n"
    ),
    "few numbers for many joints": (
        "HIERARCHY ROOT A\n{ OFFSET 0 0 0 CHANNELS 1 Xrotation\n"
        + "JOINT B\n{ OFFSET 0 1 0 }\n" * MANY
        + "}\nMOTION\nFrames: 500000\nFrame Time: 1\n"
        + "0 " * 500_000
    ),
    "few frames declared for many joints": (
        "HIERARCHY ROOT A\n{ OFFSET 0 0 0 CHANNELS 1 Xrotation\n"
        + "JOINT B\n{ OFFSET 0 1 0 }\n" * MANY
        + "}\nMOTION\nFrames: 1\nFrame Time: 1\n"
        + "0\n" * 500_000
    ),
    "one long number": bvh_text("1" * 3_000_000),
    "one long word": bvh_text("x" * 3_000_000),
    "braces": "HIERARCHY\n" + "{ " * 1_000_000,
    "one long name": "HIERARCHY\nROOT " + "A " * 1_000_000,
    "zeros": "\0" * 1_000_000,
    "no frame time": "frame " * 300_000,
}

READ_ALL = """
import resource, sys, time
from pathlib import Path
from poise.errors import PoiseError
from poise.formats import bvh

bvh.read(sys.argv[1])  # compiles outside the measurement
for name in sys.argv[2:]:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        bvh.read(name)
    except PoiseError:
        pass
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{Path(name).stem}: {time.process_time() - start} {grown / 1024}")
"""


def test_hostile_files_end_soon_and_small(tmp_path: Path) -> None:
    files = [saved(tmp_path, text, f"{name}.bvh") for name, text in HOSTILE.items()]
    arguments = [sys.executable, "-c", READ_ALL, saved(tmp_path, TEXT), *files]
    output = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    measured = {
        name: [float(x) for x in rest.split()]
        for name, rest in (line.split(": ") for line in output.splitlines())
    }
    assert measured.keys() == HOSTILE.keys()
    assert max(seconds for seconds, _ in measured.values()) < 5, measured
    assert max(megabytes for _, megabytes in measured.values()) < 500, measured


def test_a_header_that_never_ends_is_refused_at_once(tmp_path: Path) -> None:
    begun = time.process_time()
    assert "expected JOINT, End Site" in error_of(tmp_path, TEXT.split("MOTION")[0] + "frametime:" * 30_000)
    assert time.process_time() - begun < 2.0
