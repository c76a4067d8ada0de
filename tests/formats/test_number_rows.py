"""The compiled scanner gives the very bits that Python's float gives, whatever way a number is written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise.bounds import LARGEST_NUMBER
from poise.errors import ParseError
from poise.formats import number_kernel
from poise.formats.text import NumberRows, warm_up

numbers = st.one_of(
    st.floats(-LARGEST_NUMBER, LARGEST_NUMBER).map(repr),
    st.floats(-1e4, 1e4).map(lambda x: f"{x:.6f}"),
    st.floats(-1e9, 1e9).map(lambda x: f"{x:.17e}"),
    st.from_regex(r"[+-]?([0-9]{1,11}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE]-[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?0{0,30}\.0{0,30}[0-9]{1,3}", fullmatch=True),
)


def read(file: Path, *, columns: int) -> np.ndarray:
    with file.open("rb") as stream:
        rows = NumberRows(stream, columns=columns, line=1, path=file)
        found = [block.copy() for block in rows]
        rows.check_end(declared=rows.rows)
    return np.concatenate(found) if found else np.empty((0, columns))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(numbers, min_size=1, max_size=90))
def test_every_number_is_rounded_as_float_rounds_it(tmp_path: Path, tokens: list[str]) -> None:
    file = tmp_path / "numbers"
    file.write_text("\n".join(tokens))
    expected = np.array([float(token) for token in tokens])
    np.testing.assert_array_equal(read(file, columns=1)[:, 0].view(np.int64), expected.view(np.int64))


@pytest.mark.parametrize("end", ["", "\n", " ", "\r\n"])
def test_blocks_are_cut_between_numbers(tmp_path: Path, end: str) -> None:
    file = tmp_path / "numbers"
    expected = np.random.default_rng(0).normal(size=(70_000, 3))  # several blocks of long numbers
    file.write_text("\n".join(" ".join(map(repr, row)) for row in expected.tolist()) + end)
    np.testing.assert_array_equal(read(file, columns=3), expected)


def test_the_line_of_a_fault_is_right_past_many_blocks(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    file.write_bytes(b"1 2 3\r\n" * 400_000 + b"1 2 x\r\n")
    with pytest.raises(ParseError, match="numbers:400001: expected a number; got 'x'"):
        read(file, columns=3)


def test_one_line_of_any_length(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    file.write_text("1 2 3 " * 500_000)
    assert read(file, columns=3).shape == (500_000, 3)


def test_warming_up_leaves_the_scanner_compiled() -> None:
    warm_up()
    assert number_kernel.scan.signatures
