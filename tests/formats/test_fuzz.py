"""A short run of the fuzzer, so that it and the readers stay sound; the long run is fuzz/fuzz_formats.py itself."""

import subprocess
import sys
from pathlib import Path

FUZZER = Path(__file__).parents[2] / "fuzz" / "fuzz_formats.py"


def fuzz(*options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZER), "--save", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    result = fuzz("--count", "400", "--seed", "12345", "--c3d", "100", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "400 inputs, 0 failures" in result.stdout
    assert "100 inputs, 0 failures" in result.stdout


def test_the_same_seed_gives_the_same_inputs(tmp_path: Path) -> None:
    first, second = (fuzz("--count", "40", "--seed", "7", "--c3d", "0", folder=tmp_path) for _ in range(2))
    tables = [[line for line in run.stderr.splitlines() if "│" in line] for run in (first, second)]
    counts = [[line.split("│")[1:6] for line in table] for table in tables]
    assert len(counts[0]) == 4
    assert counts[0] == counts[1]
