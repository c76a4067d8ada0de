"""Models keep what they learned, and files that are not whole models are refused with words."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from poise import performer
from poise.errors import ParseError, PoiseError
from poise.priors.blend import BlendPrior
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import load, packed, save
from poise.priors.registry import PRIORS, Storable, Stored
from poise.priors.style.prior import StylePrior
from poise.schema import Numbers
from poise.types import Array


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


class Steady(GaussianPrior):
    """A prior with a single number as an array, and a broken one."""

    kind = "steady"
    stiffness = np.array(0.25)
    schema = replace(
        GaussianPrior.schema,
        arrays=lambda header, lengths: {
            **GaussianPrior.schema.arrays(header, lengths),
            "stiffness": Numbers(axes=""),
        },
    )

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "stiffness": self.stiffness}

    @classmethod
    def restored(cls, stored: Stored) -> "Steady":
        prior = super().restored(stored)
        assert isinstance(prior, Steady)
        prior.stiffness = stored.arrays["stiffness"]
        return prior


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    monkeypatch.setitem(PRIORS._entries, "steady", Steady)
    return Steady.learn([performer.act("walk", seconds=2.0, fps=30)], clusters=5)


def test_an_array_of_a_single_number_comes_back_as_it_was(steady: Steady, tmp_path: Path) -> None:
    steady.stiffness = np.array(0.75)
    save(steady, tmp_path / "steady.poise")
    again = load(tmp_path / "steady.poise")
    assert isinstance(again, Steady)
    assert again.stiffness.shape == ()
    assert again.stiffness == 0.75


def test_a_model_that_nothing_could_open_is_not_written(steady: Steady, tmp_path: Path) -> None:
    steady.stiffness = np.array([0.75])
    with pytest.raises(PoiseError, match="could not be opened again: stiffness must have the axes"):
        save(steady, tmp_path / "steady.poise")
    assert not (tmp_path / "steady.poise").exists()


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
    with pytest.raises(ParseError, match=r"walk\.poise: (not a model file, or truncated|the file is empty)"):
        load(model)


def test_other_files_newer_files_and_missing_files_say_so(model: Path, tmp_path: Path) -> None:
    save_file({"a": np.zeros(3)}, tmp_path / "other.poise")
    with pytest.raises(ParseError, match="not a Poise model"):
        load(tmp_path / "other.poise")
    newer = model.read_bytes().replace(rb"\"version\": 1", rb"\"version\": 9")
    (tmp_path / "newer.poise").write_bytes(newer)
    with pytest.raises(ParseError, match="newer Poise"):
        load(tmp_path / "newer.poise")
    unknown = model.read_bytes().replace(b"gaussian", b"gaussiam")
    (tmp_path / "unknown.poise").write_bytes(unknown)
    with pytest.raises(ParseError, match="kind of model 'gaussiam'; this Poise knows: gaussian"):
        load(tmp_path / "unknown.poise")
    with pytest.raises(PoiseError, match="does not exist"):
        load(tmp_path / "nothing.poise")


def test_a_model_without_its_arrays_is_incomplete(model: Path) -> None:
    model.write_bytes(model.read_bytes().replace(b'"shares"', b'"sharks"'))
    with pytest.raises(ParseError, match="not a complete gaussian model: 'shares'"):
        load(model)


# --- one gate for all kinds ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kinds(prior: GaussianPrior) -> dict[str, Storable]:
    """A small model of every kind."""
    walk, jog = (performer.act(action, seconds=1.5, fps=30) for action in ("walk", "run"))
    style = StylePrior.learn([walk])
    return {
        "gaussian": prior,
        "rank": GaussianPrior.learn([walk], clusters=5, rank=3),
        "style": style,
        "local": LocalPrior.learn([walk]),
        "dynamics": DynamicsPrior.learn([walk, jog]),
        "blend": BlendPrior([style, prior], [0.5, 0.5]),
    }


KINDS = ("gaussian", "rank", "style", "local", "dynamics", "blend")


def changed(model: Storable, path: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Path:
    """The model's file with one of its arrays changed."""
    arrays, header = packed(model)
    arrays[name] = np.ascontiguousarray(change(np.array(arrays[name])))
    save_file(
        {key: np.ascontiguousarray(value) for key, value in arrays.items()},
        path,
        {"poise": json.dumps({**header, "version": 1})},
    )
    return path


def array_names(model: Storable) -> list[str]:
    return sorted(packed(model)[0])


def one_longer(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, array[-1:]]) if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)


def one_axis_more(array: np.ndarray) -> np.ndarray:
    return array[..., None].copy()


def of_other_type(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64 if array.dtype.kind == "f" else np.float64)


def not_a_number(array: np.ndarray) -> np.ndarray:
    out = array.astype(array.dtype)
    out.flat[-1:] = np.nan if array.dtype.kind == "f" else -(2**40)
    return out


@pytest.mark.parametrize("change", [one_longer, one_axis_more, of_other_type, not_a_number])
@pytest.mark.parametrize("kind", KINDS)
def test_no_array_may_be_unlike_what_its_kind_declares(
    kinds: dict[str, Storable], kind: str, change: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    model = kinds[kind]
    for name in array_names(model):
        array = packed(model)[0][name]
        if change is not_a_number and array.size == 0:
            continue
        free = ("learning_curve", "transitions.", "frames.lengths")  # whose length nothing else depends on
        if change is one_longer and any(part in name for part in free):
            continue
        path = changed(model, tmp_path / "changed.poise", name, change)
        with pytest.raises(ParseError, match="not a complete"):
            load(path)


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ("gaussian", "blocks", 2**40, "blocks must be between 0 and"),
        ("gaussian", "covariances", -1.0, "covariances must be positive definite"),
        ("gaussian", "shares", 0.0, "shares must be finite numbers between 1e-12 and 1"),
        ("rank", "diagonals", 0.0, "diagonals must be finite numbers between 1e-09"),
        ("style", "active", 10_000, "active must be between 0 and"),
        ("style", "active", -1, "active must be between 0 and"),
        ("style", "scales", 0.0, "scales must be finite numbers between 1e-09"),
        ("style", "kernel", 1e3, "kernel must be finite numbers between -40 and 40"),
        ("style", "correlation", 2.0, "correlation must be positive definite"),
        ("local", "poses", np.inf, "poses must be finite"),
        ("dynamics", "frames.lengths", 7, "frames.lengths must add up to"),
        ("dynamics", "space.moving", 0, "space.moving must be between 1 and"),
        ("gaussian", "skeleton.parents", 3, "joint 0 must be the only root"),
        ("gaussian", "space.references", 0.0, "quaternions of length one"),
    ],
)
def test_numbers_that_would_do_harm_are_refused(
    kinds: dict[str, Storable], kind: str, name: str, value: float, message: str, tmp_path: Path
) -> None:
    def filled(array: np.ndarray) -> np.ndarray:
        return np.full_like(array, value)

    with pytest.raises(ParseError, match=message):
        load(changed(kinds[kind], tmp_path / "changed.poise", name, filled))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"clips": 5}, "clips must be a list"),
        ({"clips": [["a"]]}, r"clips\[0\] must be a list of 2 to 2"),
        ({"low_rank": "yes"}, "low_rank must be true or false; got 'yes'"),
        ({"version": "1"}, "version must be a whole number"),
        ({"version": None}, "version must be a whole number"),
        ({"kind": ["gaussian"]}, r"unknown kind of model \['gaussian'\]"),
        ({"skeleton": {}}, "skeleton: 'names' is missing"),
        (
            {"skeleton": {"names": ["a"] * 1001, "orders": [], "roles": {}}},
            "names must be a list of 1 to 1000",
        ),
    ],
)
def test_headers_of_other_types_are_refused(
    model: Path, prior: GaussianPrior, header: dict[str, object], message: str
) -> None:
    arrays, sound = packed(prior)
    save_file(arrays, model, {"poise": json.dumps({**sound, "version": 1, **header})})
    with pytest.raises(ParseError, match=message):
        load(model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "not a model file"),
        ('{"kind": ' + "[" * 40 + "]" * 40 + "}", "nested deeper than 32 levels"),
        ('{"kind": "' + "x" * 8_000_000 + '"}', "8,000,012 characters; expected at most 8,000,000"),
        ('{"kind": ' + "9" * 5000 + "}", "not a model file"),
        ("[1, 2]", "not a Poise model"),
    ],
)
def test_headers_that_are_too_deep_or_too_long_are_refused(model: Path, text: str, message: str) -> None:
    save_file({"a": np.zeros(3)}, model, {"poise": text})
    with pytest.raises(ParseError, match=message):
        load(model)


def test_a_part_of_a_blend_is_held_to_its_own_kind(kinds: dict[str, Storable], tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="blocks must have the axes"):
        load(changed(kinds["blend"], tmp_path / "blend.poise", "1.blocks", one_longer))
