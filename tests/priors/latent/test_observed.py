"""What a frame shows of a style once the frames before are known: sums of observations, gradients, frame rates."""

import numpy as np
import pytest

from differences import gradient
from made_once import learned
from poise import performer
from poise.priors.latent import local_gaussian as shape
from poise.priors.latent.model import observed
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_SIZE


@pytest.fixture(scope="module")
def prior() -> StylePrior:
    walk = performer.act("walk", seconds=2.0, fps=30, seed=7)
    return learned(StylePrior, [walk], dimensions=2, active=25, acceleration=True)


@pytest.fixture
def frames(prior: StylePrior) -> np.ndarray:
    """Three frames, the newest first."""
    walk = performer.act("walk", seconds=1.0, fps=60, seed=8)
    return prior.space.q_from_frames(walk.root_positions, walk.rotations)[20:17:-1]


@pytest.mark.parametrize("known", [0, 1, 2])
@pytest.mark.parametrize("fps", [30.0, 120.0])
def test_the_objective_sums_what_pose_velocity_and_acceleration_say(
    prior: StylePrior, frames: np.ndarray, known: int, fps: float
) -> None:
    model, x = prior.model, prior.model.active_latents[3] + 0.1
    seen = observed(model, np.eye(prior.mean.size), fps=fps, known=known)
    count, rate = model.features.pose_count, fps / 30.0
    y = model.features.of_pose(frames[0], *frames[1 : known + 1], fps=fps).reshape(-1, count)
    gaps = (y - model.predict(x).reshape(-1, count))[: known + 1]
    gaps /= rate ** np.arange(known + 1)[:, None]  # back to changes of the pose
    variance = float(model.variance(x))
    expected = (seen.precisions * gaps**2).sum() / variance + gaps.size * np.log(variance) + x @ x
    assert objective(seen, frames, known, x) == pytest.approx(0.5 * expected, rel=1e-6)


def test_what_the_poses_say_under_each_kernel_is_worked_out_once(prior: StylePrior) -> None:
    for single, moving in zip(prior.observed(), prior.observed(fps=30.0, known=2), strict=True):
        assert single.arrays.inverse is moving.arrays.inverse


def test_its_gradient_in_the_pose_is_that_of_the_joint_mean(prior: StylePrior, frames: np.ndarray) -> None:
    model, x = prior.model, prior.model.active_latents[3] + 0.1
    seen = observed(model, np.eye(prior.mean.size), fps=60.0, known=2)

    def of_maps(maps: np.ndarray) -> float:
        return objective(seen, np.vstack([np.concatenate([frames[0, :ROOT_SIZE], maps]), frames[1:]]), 2, x)

    frame = seen.frame(list(frames[1:]))
    k = model.kernel.matrix(x[None], model.active_latents)[0]
    mean = frame.base + k @ seen.arrays.weights
    expected = seen.arrays.precisions * (frames[0, ROOT_SIZE:] - mean) / float(model.variance(x))
    np.testing.assert_allclose(gradient(of_maps, frames[0, ROOT_SIZE:]), expected, rtol=1e-4, atol=1e-4)


def test_motion_says_less_than_its_scale_and_much_the_same_over_a_second(prior: StylePrior) -> None:
    model, correlation = prior.model, np.eye(prior.mean.size)
    slow, fast = (observed(model, correlation, fps=fps, known=1) for fps in (30.0, 120.0))
    scales = model.scales.reshape(3, -1)
    assert np.all(slow.precisions[1] < scales[1] ** 2)
    np.testing.assert_allclose(slow.precisions[0], scales[0] ** 2)
    pulls = [
        1.0 - (one.precisions[1] / one.precisions.sum(axis=0)) ** (one.rate) for one in (slow, fast)
    ]  # share of an error in the frame before that is gone after 1/30 s
    assert 0.5 < np.median(pulls[1] / pulls[0]) < 2.0  # four times as many frames, and yet


def objective(seen, frames: np.ndarray, known: int, x: np.ndarray) -> float:
    frame = seen.frame(list(frames[1 : known + 1]))
    scales, expected = frame.ups
    up = seen.model.features.of_poses(frames[0])[-3:]
    aims = np.concatenate([scales * (up - expected), frame.contrasts])
    return float(shape.objective(seen.arrays, frame.base, aims, frames[0, ROOT_SIZE:].copy(), x))
