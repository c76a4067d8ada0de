"""ONNX files in onnxruntime against Poise's own evaluation; log densities by finite differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from bodies import person
from poise.priors.density import log_density, log_density_gradient
from poise.priors.motion import layout as window
from poise.priors.motion.network import evaluated
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array
from small_motion import small_weights

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
exporting = pytest.importorskip("poise.apps.exporting")

BODIES = {"of people": UniversalPrior.of_people, "of the tests": lambda: UniversalPrior(person())}


def run(path: Path, **inputs: Array) -> dict[str, Array]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    given = {name: value.astype(np.float32) for name, value in inputs.items()}
    return dict(zip(names, session.run(names, given), strict=True))


def described(path: Path) -> dict[str, str]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(session.get_modelmeta().custom_metadata_map)


def random_poses(prior: UniversalPrior, count: int, draw: np.random.Generator) -> Array:
    """Poses around the prior's own mean, turned and moved."""
    poses = np.zeros((count, prior.space.size))
    poses[:, :3] = draw.normal(0.0, 1.0, (count, 3))
    poses[:, 3:ROOT_SIZE] = draw.normal(0.0, 1.0, (count, 4)) * 0.2 + [1.0, 0.0, 0.0, 0.0]
    poses[:, 3:ROOT_SIZE] /= np.linalg.norm(poses[:, 3:ROOT_SIZE], axis=1, keepdims=True)
    poses[:, ROOT_SIZE:] = prior.mean + draw.normal(0.0, 0.2, (count, prior.space.size - ROOT_SIZE))
    return poses


@pytest.mark.parametrize("body", BODIES)
def test_the_universal_prior_gives_the_same_gaussian_for_any_handles(tmp_path: Path, body: str) -> None:
    prior, draw = BODIES[body](), np.random.default_rng(2)
    path = exporting.universal_onnx(tmp_path / "universal.onnx", prior)
    names = described(path)["points"].split()
    poses = random_poses(prior, 12, draw)
    masks = draw.random((12, len(names))) < np.linspace(0.0, 1.0, 12)[:, None]
    masks &= np.array(names) != "-"
    maps = poses[:, ROOT_SIZE:] + draw.normal(0.0, 0.1, (12, prior.space.size - ROOT_SIZE))
    points, ups, expected = np.zeros((12, len(names), 3)), np.zeros((12, 3)), []
    for row, (q, mask) in enumerate(zip(poses, masks, strict=True)):
        handles = prior.space.handles([name for name, given in zip(names, mask, strict=True) if given])
        targets = prior.space.handle_positions(q, handles)[0] + 0.05 * draw.normal(
            size=(len(handles.joints), 3)
        )
        axes = prior.space.pose_from_q(q).world[1][0]
        points[row, mask] = (targets - q[:3]) @ axes
        ups[row] = axes[1]
        guide = prior.guide(handles)
        expected.append(guide.expectation(q, guide.seen_from(q, targets, given=True)))
    found = run(path, points=points, given=masks, up=ups, maps=maps)
    for row, (mean, covariance) in enumerate(expected):
        np.testing.assert_allclose(found["mean"][row], mean, atol=1e-5)
        np.testing.assert_allclose(found["covariance"][row], covariance, atol=1e-5)
        own = mean, covariance
        np.testing.assert_allclose(found["log_density"][row], log_density(own, maps[row]), rtol=1e-4)
        gradient = log_density_gradient(own, maps[row])
        assert np.abs(found["gradient"][row] - gradient).max() < 1e-3 * np.abs(gradient).max()
        # the same Gaussian, read from the file, gives the same density to single precision
        read = found["mean"][row].astype(float), found["covariance"][row].astype(float)
        given = maps[row].astype(np.float32).astype(float)
        np.testing.assert_allclose(found["log_density"][row], log_density(read, given), rtol=1e-5)
        again = log_density_gradient(read, given)
        assert np.abs(found["gradient"][row] - again).max() < 1e-5 * np.abs(again).max()


def test_gradients_are_those_of_finite_differences() -> None:
    prior, draw = UniversalPrior.of_people(), np.random.default_rng(3)
    q = random_poses(prior, 1, draw)[0]
    handles = prior.space.handles(["left_hand", "head"])
    guide = prior.guide(handles)
    own = guide.expectation(q, guide.seen_from(q, prior.space.handle_positions(q, handles)[0], given=True))
    maps, step = q[ROOT_SIZE:], 1e-5
    gradient = log_density_gradient(own, maps)
    for axis, unit in enumerate(np.eye(len(maps))):
        difference = (log_density(own, maps + step * unit) - log_density(own, maps - step * unit)) / (
            2 * step
        )
        np.testing.assert_allclose(gradient[axis], difference, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_file_is_that_of_its_density(tmp_path: Path) -> None:
    prior, draw, step = UniversalPrior.of_people(), np.random.default_rng(4), 1e-3
    path = exporting.universal_onnx(tmp_path / "universal.onnx", prior)
    count = len(described(path)["points"].split())
    maps = np.tile(prior.mean, (25, 1)) + draw.normal(0.0, 0.3, len(prior.mean))
    moved = np.array([sign * step * unit for unit in np.eye(len(prior.mean))[:12] for sign in (1, -1)])
    maps[1:] += moved
    ups = np.tile([0.0, 1.0, 0.0], (25, 1))
    found = run(path, points=np.zeros((25, count, 3)), given=np.zeros((25, count)), up=ups, maps=maps)
    density, gradient = found["log_density"].astype(float), found["gradient"][0]
    differences = (density[1::2] - density[2::2]) / (2 * step)
    assert np.abs(gradient[:12] - differences).max() < 1e-3 * np.abs(gradient).max()


@pytest.mark.parametrize("frames", [1, 2, 40, 96])
def test_the_motion_prior_gives_the_same_outputs(tmp_path: Path, frames: int) -> None:
    weights, draw = small_weights(), np.random.default_rng(frames)
    path = exporting.motion_onnx(tmp_path / "motion.onnx", weights)
    inputs = draw.normal(size=(frames, window.WIDTH))
    expected = evaluated(weights, inputs)
    found = run(path, inputs=inputs)["outputs"]
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, float(np.abs(expected).max())))


def test_a_file_says_what_it_holds(tmp_path: Path) -> None:
    prior = UniversalPrior(person())
    about = described(exporting.universal_onnx(tmp_path / "new" / "universal.onnx", prior))
    joints = set(prior.space.skeleton.names)
    assert set(about["points"].split()) <= joints | {"-"}
    assert set(about["maps"].split()) <= joints
    assert "CMU" in about["credit"] or "mocap" in about["credit"].lower()


def test_only_humanoids_are_exported(tmp_path: Path) -> None:
    pole: Any = poise.Skeleton(("a",), np.array([-1]), np.zeros((1, 3)), ("ZYX",))
    with pytest.raises(poise.PoiseError, match="humanoid"):
        exporting.universal_onnx(tmp_path / "pole.onnx", UniversalPrior(pole))
