"""`poise demo` and `poise warm-up`: the whole way, and what happens when a file does not give back what went in."""

from pathlib import Path

import pytest

import poise as library
from poise.apps.demo import verified_mm
from poise.apps.warm_up import KERNELS, load
from poise.errors import PoiseError


def test_the_demo_writes_verifies_and_sums_up(poise, tmp_path: Path) -> None:
    done = poise("demo", "-o", tmp_path / "out", "--action", "walk", "--style", "neutral")
    assert done.code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "walk.bvh",
        "walk.glb",
        "walk.png",
        "poses.png",
    }
    assert all(str(tmp_path / "out" / f"walk.{kind}") in done.out for kind in ("bvh", "glb", "png"))
    assert done.out.count("read back within") == 2
    assert "from a few handles each: lift, sit, kick, wave, climb" in done.out
    assert "5 of 5 meet all handles" in done.out
    assert (tmp_path / "out" / "walk.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_holds_another_motion_is_found_out(tmp_path: Path) -> None:
    walk = library.performer.act("walk", seconds=0.5, fps=30)
    proud = library.performer.act("walk", seconds=0.5, fps=30, style="proud")
    path = library.write(proud, tmp_path / "other.bvh")
    assert verified_mm(proud, path) < 0.1
    with pytest.raises(PoiseError, match="back moves joints by up to"):
        verified_mm(walk, path)
    with pytest.raises(PoiseError, match="back should give"):
        verified_mm(walk[:10], path)


@pytest.mark.slow
def test_every_kernel_of_the_list_can_be_compiled() -> None:
    for where in KERNELS.values():
        load(where)()


@pytest.mark.slow
def test_warm_up_says_what_it_did(poise) -> None:
    done = poise("warm-up")
    assert done.code == 0
    assert all(task in done.out for task in KERNELS)
