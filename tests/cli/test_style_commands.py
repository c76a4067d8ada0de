"""`poise learn --kind style`, `poise latent` and `poise sample`: from a clip to a style, its picture and its poses."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from poise.cli.main import main
from poise.errors import installing
from poise.formats import read

Program = Callable[..., Any]

FEW = ("--dimensions", 2, "--active", 20)


@pytest.fixture(scope="module")
def style(walk: Path) -> Path:
    path = walk.with_name("style.poise")
    words = ("learn", path, walk, "--kind", "style", *FEW)
    assert main([str(word) for word in words]) == 0
    return path


def size_of(picture: Path) -> tuple[int, int]:
    with Image.open(picture) as image:
        return image.size


def test_learning_says_what_was_learned_and_draws_it(walk: Path, tmp_path: Path, poise: Program) -> None:
    run = poise("learn", tmp_path / "s.poise", walk, "--kind", "style", *FEW, "--picture", tmp_path / "p.png")
    assert run.code == 0, run.err
    assert "style, 2 dimensions, 20 of 60 poses active, rbf kernel, L_GP -" in run.out
    assert "p.png: its latent space" in run.out
    assert size_of(tmp_path / "p.png") == (1400, 940)


@pytest.mark.slow
def test_the_picture_is_beside_the_model_if_no_place_is_named(style: Path) -> None:
    assert style.with_suffix(".png").exists()


def test_without_matplotlib_a_style_is_learned_and_only_its_picture_is_missing(
    walk: Path, style: Path, tmp_path: Path, poise: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("plots", "latent_map", "latent_paths"):
        monkeypatch.delitem(sys.modules, f"poise.pictures.{name}", raising=False)
    remedy = f"drawing a chart needs matplotlib; install it with: {installing('plots')}"
    run = poise("learn", tmp_path / "s.poise", walk, "--kind", "style", *FEW)
    assert run.code == 0
    assert f"its latent space is not drawn: {remedy}" in run.err
    run = poise("latent", style, "-o", tmp_path / "map.png")
    assert run.code == 2
    assert remedy in run.err


def test_a_style_poses(style: Path, poise: Program) -> None:
    run = poise("pose", style, "--handle", "left_hand=0.35,1.0,0.3", "--handle", "right_foot=-0.1,0.1,0")
    assert run.code == 0, run.err
    assert "all hard constraints are met" in run.out


@pytest.mark.parametrize(
    "view", [(), *(pytest.param((view,), marks=pytest.mark.slow) for view in ("--annealed", "--mixture"))]
)
def test_every_view_is_written(style: Path, tmp_path: Path, poise: Program, view: tuple[str, ...]) -> None:
    run = poise("latent", style, "-o", tmp_path / "new" / "map.png", *view)
    assert run.code == 0, run.err
    assert size_of(tmp_path / "new" / "map.png")[0] > 1000


def test_samples_are_a_page_or_frames(style: Path, tmp_path: Path, poise: Program) -> None:
    assert poise("sample", style, "--count", 3, "-o", tmp_path / "poses.png").code == 0
    run = poise("sample", style, "--count", 5, "--seed", 2, "-o", tmp_path / "poses.bvh")
    assert run.code == 0, run.err
    assert len(read(tmp_path / "poses.bvh", keep_first=True)) == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "style", "--clusters", 5), "a style model has no option clusters; it takes dimensions"),
        (("--kind", "gaussian", "--active", 5), "a gaussian model has no option active; it takes clusters"),
        (("--kind", "style", "--kernel", "rbff"), "did you mean rbf"),
        (("--kind", "style", "--algorithm", "fast"), "heuristic"),
    ],
)
def test_mistakes_say_what_is_right(
    walk: Path, tmp_path: Path, poise: Program, words: tuple[object, ...], message: str
) -> None:
    run = poise("learn", tmp_path / "x.poise", walk, *words)
    assert run.code == 2
    assert message in run.err


def test_a_gaussian_has_no_latent_space(walk: Path, tmp_path: Path, poise: Program) -> None:
    model = tmp_path / "g.poise"
    assert poise("learn", model, walk, "--clusters", 4).code == 0
    for command in ("latent", "sample"):
        run = poise(command, model, "-o", tmp_path / "x.png")
        assert run.code == 2
        assert "is not a style, so it has no latent space" in run.err


def test_models_blend_into_one_file(style: Path, walk: Path, tmp_path: Path, poise: Program) -> None:
    gaussian, between = tmp_path / "g.poise", tmp_path / "between.poise"
    assert poise("learn", gaussian, walk, "--clusters", 4).code == 0
    run = poise("blend", style, gaussian, "--weight", 0.3, "-o", between)
    assert run.code == 0, run.err
    assert "70% style, 30% g" in run.out
    run = poise("pose", between, "--handle", "left_hand=0.35,1.0,0.3")
    assert run.code == 0, run.err
    assert "all hard constraints are met" in run.out


@pytest.mark.parametrize(
    ("count", "weights", "message"),
    [
        (1, (), "two models or more"),
        (3, (0.2,), "3 models need 2 --weight"),
        (2, (1.4,), "weights must be between 0 and 1 and sum to 1; got -0.4, 1.4"),
    ],
)
def test_blends_that_are_none_say_why(
    style: Path, tmp_path: Path, poise: Program, count: int, weights: tuple[float, ...], message: str
) -> None:
    words = [word for weight in weights for word in ("--weight", weight)]
    run = poise("blend", *[style] * count, *words, "-o", tmp_path / "x.poise")
    assert run.code == 2
    assert message in run.err
