"""Models keep what they learned, and files that are not whole models are refused with words."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from poise import performer
from poise.errors import ParseError, PoiseError
from poise.priors.gaussian import GaussianPrior
from poise.priors.model_file import load, save


@pytest.fixture(scope="module")
def prior() -> GaussianPrior:
    return GaussianPrior.learn([performer.act("walk", seconds=2.0, fps=30)], clusters=5)


@pytest.fixture
def model(prior: GaussianPrior, tmp_path: Path) -> Path:
    save(prior, tmp_path / "walk.poise")
    return tmp_path / "walk.poise"


def test_a_model_comes_back_as_it_was(prior: GaussianPrior, model: Path) -> None:
    again = load(model)
    assert isinstance(again, GaussianPrior)
    assert again.space.skeleton == prior.space.skeleton
    assert again.clips == prior.clips
    assert again.clips[0][0] == "walk (neutral, alex)"
    q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], prior.means[2]])
    assert again.log_likelihood(q) == prior.log_likelihood(q)
    assert again.percentile(q) == prior.percentile(q)
    handles = prior.space.handles(["left_hand", "right_foot"])
    targets = np.array([[0.5, 0.3, 0.2], [0.0, -0.8, 0.1]])
    for ours, theirs in zip(prior.guide(handles)(targets), again.guide(handles)(targets), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_low_rank_model_is_smaller_and_comes_back_as_it_was(model: Path, tmp_path: Path) -> None:
    few = GaussianPrior.learn([performer.act("walk", seconds=2.0, fps=30)], clusters=5, rank=4)
    save(few, tmp_path / "few.poise")
    assert (tmp_path / "few.poise").stat().st_size < 0.3 * model.stat().st_size
    again = load(tmp_path / "few.poise")
    assert isinstance(again, GaussianPrior)
    np.testing.assert_array_equal(again.covariances, few.covariances)
    np.testing.assert_array_equal(again.blocks, few.blocks)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.999])
def test_a_file_that_is_cut_short_says_so(model: Path, kept: float) -> None:
    data = model.read_bytes()
    model.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(ParseError, match=r"walk\.poise: (not a model file, or cut short|the file is empty)"):
        load(model)


def test_other_files_newer_files_and_missing_files_say_so(model: Path, tmp_path: Path) -> None:
    save_file({"a": np.zeros(3)}, tmp_path / "other.poise")
    with pytest.raises(ParseError, match="not one of Poise's models"):
        load(tmp_path / "other.poise")
    newer = model.read_bytes().replace(rb"\"version\": 1", rb"\"version\": 9")
    (tmp_path / "newer.poise").write_bytes(newer)
    with pytest.raises(ParseError, match="newer Poise"):
        load(tmp_path / "newer.poise")
    unknown = model.read_bytes().replace(b"gaussian", b"gaussiam")
    (tmp_path / "unknown.poise").write_bytes(unknown)
    with pytest.raises(ParseError, match="kind 'gaussiam'; this Poise knows: gaussian"):
        load(tmp_path / "unknown.poise")
    with pytest.raises(PoiseError, match="does not exist"):
        load(tmp_path / "nothing.poise")


def test_a_model_without_its_arrays_is_incomplete(model: Path) -> None:
    model.write_bytes(model.read_bytes().replace(b'"shares"', b'"sharks"'))
    with pytest.raises(ParseError, match="not a complete gaussian model: 'shares'"):
        load(model)
