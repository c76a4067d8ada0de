"""Read files that say two different things: python fuzz/fuzz_contradictions.py --count 20000 --seed 0

Each kind is one contradiction, with random places and sizes. A file must be refused, or read with a warning, in the
words of `SAID`. --table prints what is said of each.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from running import Case, parser, run

import poise
from poise.performer import act

Random = np.random.Generator
Change = Callable[[str, Random], str]
FRAMES, RATE = 15, 30  # of the seeds


# --- tab-separated markers (TRC): a header of six lines, then rows of frame, time and positions ----------------------


def _rows(text: str, change: Callable[[list[str]], list[str]], header: int = 6) -> str:
    lines = text.splitlines()
    return "\n".join([*lines[:header], *change(lines[header:])]) + "\n"


def _cells(text: str, column: int, change: Callable[[int, float], str]) -> str:
    """Other values in one column of the rows."""

    def changed(rows: list[str]) -> list[str]:
        cells = [row.split("\t") for row in rows]
        for number, row in enumerate(cells):
            row[column] = change(number, float(row[column]))
        return ["\t".join(row) for row in cells]

    return _rows(text, changed)


def _jumping(text: str, at: int, by: int) -> str:
    return _cells(text, 0, lambda number, frame: f"{frame + by * (number >= at):.0f}")


def _header(text: str, cell: int, value: str) -> str:
    lines = text.splitlines()
    cells = lines[2].split("\t")
    cells[cell] = value
    return "\n".join([*lines[:2], "\t".join(cells), *lines[3:]]) + "\n"


def _other_rate(random: Random) -> int:
    return int(random.choice([10, 24, 50, 60, 100, 120, 240, 1000]))


def _swapped(rows: list[str], random: Random) -> list[str]:
    first, second = sorted(random.choice(len(rows), 2, replace=False))
    rows[first], rows[second] = rows[second], rows[first]
    return rows


def _repeated(rows: list[str], random: Random) -> list[str]:
    at = int(random.integers(len(rows)))
    return [*rows[: at + 1], *rows[at:]]


def _without(rows: list[str], random: Random) -> list[str]:
    at = int(random.integers(1, len(rows) - 1))
    return rows[:at] + rows[at + 1 :]


TRC: dict[str, Change] = {
    "rate and times": lambda t, r: _header(t, 0, str(_other_rate(r))),
    "times in milliseconds": lambda t, _: _cells(t, 1, lambda _, time: f"{1000 * time:.3f}"),
    "times run backwards": lambda t, _: _rows(t, lambda rows: rows[::-1]),
    "two rows swapped": lambda t, r: _rows(t, lambda rows: _swapped(rows, r)),
    "a row twice": lambda t, r: _rows(t, lambda rows: _repeated(rows, r)),
    "a row missing": lambda t, r: _rows(t, lambda rows: _without(rows, r)),
    "frame numbers jump": lambda t, r: _jumping(t, int(r.integers(2, FRAMES - 1)), int(r.integers(1, 1000))),
    "metres for millimetres": lambda t, _: t.replace("\tmm\t", "\tm\t", 1),
    "number of frames": lambda t, r: _header(t, 2, str(FRAMES + int(r.integers(1, 1000)))),
    "number of markers": lambda t, r: _header(t, 3, str(41 - int(r.integers(1, 30)))),
    "a label twice": lambda t, _: t.replace("\tRFHD\t", "\tLFHD\t", 1),
}


# --- Acclaim: numbered blocks of joints ------------------------------------------------------------------------------


def _blocks(text: str, change: Callable[[list[str]], list[str]]) -> str:
    head, *parts = re.split(r"(?m)^(?=\d+$)", text)
    return head + "".join(change(parts))


def _in_radians(text: str) -> str:
    def row(found: re.Match[str]) -> str:
        return found[1] + "".join(f" {np.radians(float(x)):.7f}" for x in found[2].split())

    return re.sub(r"(?m)^(root(?: \S+){3}|[A-Za-z]\w*)((?: \S+)+)$", row, text)


AMC: dict[str, Change] = {
    "a frame missing": lambda t, r: _blocks(t, lambda parts: _without(parts, r)),
    "two frames swapped": lambda t, r: _blocks(t, lambda parts: _swapped(parts, r)),
    "a frame twice": lambda t, r: _blocks(t, lambda parts: _repeated(parts, r)),
    "frame numbers jump": lambda t, r: re.sub(
        rf"(?m)^{int(r.integers(2, FRAMES))}$", str(int(r.integers(100, 10**6))), t
    ),
    "degrees called radians": lambda t, _: t.replace(":DEGREES", ":RADIANS"),
    "radians called degrees": lambda t, _: _in_radians(t),
    "a joint of another skeleton": lambda t, r: t.replace("LeftArm ", f"LeftArm{r.integers(10)} "),
    "more values than freedoms": lambda t, _: re.sub(r"(?m)^LeftArm (.*)$", r"LeftArm \1 1.0", t, count=1),
}


# --- BVH -------------------------------------------------------------------------------------------------------------


def _scaled_offsets(text: str, factor: float) -> str:
    def row(found: re.Match[str]) -> str:
        return "OFFSET " + " ".join(f"{float(x) * factor:.8g}" for x in found[1].split())

    return re.sub(r"OFFSET (.*)", row, text)


def _values(text: str, change: Callable[[list[str]], list[str]]) -> str:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("Frame Time")) + 1
    return "\n".join([*lines[:at], *(" ".join(change(line.split())) for line in lines[at:])]) + "\n"


BVH: dict[str, Change] = {
    "a rotation channel twice": lambda t, r: t.replace(
        "Zrotation Yrotation Xrotation",
        str(r.choice(["Zrotation Zrotation Xrotation", "Xrotation Yrotation Xrotation"])), 1,
    ),
    "number of frames": lambda t, r: t.replace(f"Frames: {FRAMES}", f"Frames: {FRAMES + r.integers(1, 1000)}"),
    "fewer frames than rows": lambda t, r: t.replace(f"Frames: {FRAMES}", f"Frames: {r.integers(1, FRAMES)}"),
    "number of channels": lambda t, _: t.replace("CHANNELS 3 Z", "CHANNELS 4 Z", 1),
    "a frame time of nothing": lambda t, r: re.sub(
        r"Frame Time: .*", f"Frame Time: {r.choice(['0', '-0.033', '1e-9', '900'])}", t
    ),
    "a rate for a time": lambda t, _: re.sub(r"Frame Time: .*", "Frame Time: 30", t),
    "bones and positions in other units": lambda t, r: _scaled_offsets(t, float(r.choice([0.001, 0.01, 0.1]))),
    "angles in radians": lambda t, _: _values(
        t, lambda row: [*row[:3], *(f"{np.radians(float(x)):.7f}" for x in row[3:])]
    ),
    "a joint's name twice": lambda t, _: t.replace("JOINT RightArm", "JOINT LeftArm", 1),
}  # fmt: skip

KINDS: dict[str, tuple[str, Change]] = {
    f"{extension}: {name}": (extension, change)
    for extension, changes in {".trc": TRC, ".amc": AMC, ".bvh": BVH}.items()
    for name, change in changes.items()
}


# --- arrays ----------------------------------------------------------------------------------------------------------


def _frames_of_amass(values: dict[str, np.ndarray], random: Random) -> None:
    values["trans"] = values["trans"][: -int(random.integers(1, 10))]


def _degrees_of_amass(values: dict[str, np.ndarray], random: Random) -> None:
    values["poses"] = np.degrees(values["poses"]) + random.normal(scale=0.1)


def _rate_of_amass(values: dict[str, np.ndarray], random: Random) -> None:
    values["mocap_framerate"] = np.array(random.choice([0.0, -30.0, np.nan, 1e9, 1e-6]))


AMASS = {
    ".npz: positions of fewer frames": _frames_of_amass,
    ".npz: degrees for radians": _degrees_of_amass,
    ".npz: an impossible rate": _rate_of_amass,
}


SAID = {
    ".trc: rate and times": "the header's rate is .* but the times are",
    ".trc: times in milliseconds": "the header's rate is .* but the times are",
    ".trc: times run backwards": "the times do not increase",
    ".trc: two rows swapped": "the times do not increase",
    ".trc: a row twice": "the times do not increase",
    ".trc: a row missing": "the frame numbers jump",
    ".trc: frame numbers jump": "the frame numbers jump",
    ".trc: metres for millimetres": "is the file's unit, m, right",
    ".trc: number of frames": "the header's numframes is .* rows are there",
    ".trc: number of markers": "the header's nummarkers is .* markers are named",
    ".trc: a label twice": "labels that are there twice: LFHD",
    ".amc: a frame missing": "frame .* is followed by",
    ".amc: two frames swapped": "frame .* is followed by",
    ".amc: a frame twice": "frame .* is followed by",
    ".amc: frame numbers jump": "frame .* is followed by",
    ".amc: degrees called radians": "are they degrees",
    ".amc: radians called degrees": "are they radians",
    ".amc: a joint of another skeleton": "bone 'LeftArm.' is not in the ASF file",
    ".amc: more values than freedoms": "bone 'LeftArm' has 4 channels; the ASF says 3",
    ".bvh: a rotation channel twice": "joints with a rotation channel twice",
    ".bvh: number of frames": "the file declares .* frames and holds 15",
    ".bvh: fewer frames than rows": "the file declares .* frames and holds 15",
    ".bvh: number of channels": "declares 4 channels",
    ".bvh: a frame time of nothing": "frame (rate|time) must be positive",
    ".bvh: a rate for a time": "a frame rate must be positive",
    ".bvh: bones and positions in other units": "do positions and offsets have the same unit",
    ".bvh: angles in radians": "are they radians",
    ".bvh: a joint's name twice": "duplicate joint names were numbered",
    ".npz: positions of fewer frames": r"trans must be \(20, 3\)",
    ".npz: degrees for radians": "are they degrees",
    ".npz: an impossible rate": "frame rate|fps",
}
"""What is said of each contradiction, as a regular expression."""


def check_words(kind: str, path: Path) -> None:
    """Fail if a file is read without its warning, or refused for another reason."""
    said = words_of(path)
    assert said, "a silent contradiction"
    assert re.search(SAID[kind], said), f"other words: {said}"


def words_of(path: Path) -> str:
    """What Poise says of a file: its warnings, or why it is refused."""
    try:
        return "; ".join(poise.read(path).origin.warnings)
    except poise.PoiseError as error:
        return str(error).replace(f"{path.parent}/", "")


def main() -> int:
    """Run the fuzzer; return 1 if a contradiction was silent, or anything else failed."""
    options = parser(__doc__, count=20_000)
    options.add_argument("--table", action="store_true")
    given, cases = options.parse_args(), cases_of(texts())
    if given.table:
        for kind, case in cases.items():
            with tempfile.TemporaryDirectory() as name:
                case(np.random.default_rng(given.seed), Path(name))
                print(f"{kind}: {words_of(Path(name) / f'a{kind.partition(chr(58))[0]}')}")
        return 0
    return 1 if run(cases, given) else 0


def texts() -> dict[str, str]:
    """A walk and its markers in all formats of text, by extension."""
    with tempfile.TemporaryDirectory() as name:
        walk, folder = act("walk", seconds=FRAMES / RATE, fps=RATE), Path(name)
        for file in ("a.bvh", "a.amc"):
            poise.write(walk, folder / file)
        poise.write(poise.virtual_markers(walk), folder / "a.trc")
        return {path.suffix: path.read_text() for path in folder.iterdir()}


def cases_of(seeds: dict[str, str]) -> dict[str, Case]:
    """A case for each contradiction."""
    of_text = {kind: partial(_text_case, seeds, kind) for kind in KINDS}
    return of_text | {kind: partial(_amass_case, kind) for kind in AMASS}


def _text_case(seeds: dict[str, str], kind: str, random: Random, folder: Path) -> None:
    extension, change = KINDS[kind]
    for suffix, text in seeds.items():
        (folder / f"a{suffix}").write_text(change(text, random) if suffix == extension else text)
    changed = (folder / f"a{extension}").read_text()
    assert changed != seeds[extension], "the file was not changed"
    check_words(kind, folder / f"a{extension}")


def _amass_case(kind: str, random: Random, folder: Path) -> None:
    values = {
        "poses": random.normal(scale=0.3, size=(20, 66)), "trans": random.normal(scale=0.1, size=(20, 3)),
        "mocap_framerate": np.array(60.0), "betas": np.zeros(16),
    }  # fmt: skip
    AMASS[kind](values, random)
    np.savez(folder / "a.npz", **values)
    check_words(kind, folder / "a.npz")


if __name__ == "__main__":
    sys.exit(main())
