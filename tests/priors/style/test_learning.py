"""Learning a style: both algorithms, the cases that prove the model, the sizes and oddities of real data."""

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.gp import latent
from poise.gp.covariance import Kernel
from poise.gp.latent import PlacingLoss, log_evidence, place, place_new, principal_latents, training_loss
from poise.motion import Motion
from poise.priors.latent.model import LatentModel
from poise.priors.style import prior as learning
from poise.priors.style.prior import TrainingPoses, learn_model, learn_style, placing_loss_of, thinned


def pose_loss(model: LatentModel) -> PlacingLoss:
    return placing_loss_of(model, np.ones(len(model.mean), dtype=np.bool_))


def mean_evidence(model: LatentModel, y: np.ndarray) -> float:
    loss = pose_loss(model)
    placed, _ = place_new(loss, y - model.mean)
    return float(log_evidence(loss, y - model.mean, placed).mean())


def angle_error(model: LatentModel, y: np.ndarray) -> float:
    """Degrees between poses and what the model makes of them, root mean square over joint angles."""
    placed, _ = place_new(pose_loss(model), y - model.mean)
    gaps = (model.predict(placed) - y)[:, model.features.groups == 0]
    return float(np.degrees(np.sqrt(np.mean(gaps**2))))


@pytest.mark.parametrize("algorithm", ["heuristic", "full"])
def test_it_learns_to_tell_poses_it_knows(poses: TrainingPoses, algorithm: str) -> None:
    model = learn_model(poses, dimensions=2, active=40, algorithm=algorithm)
    assert model.latents.shape == (len(poses.y), 2)
    assert len(set(model.active)) == 40
    np.testing.assert_allclose(model.outputs, poses.y[model.active] - model.mean)
    assert angle_error(model, poses.y) < 2.0
    assert model.learning_curve[-1] < model.learning_curve[0]


def test_full_optimisation_never_loses_and_beats_the_start(poses: TrainingPoses) -> None:
    first = latent.start(poses.centred, dimensions=2, active=40)
    before = training_loss(poses.centred, first.latents, kernel=first.kernel, scales=first.scales).value
    curve = latent.full(poses.centred, first, active=40, steps=30).curve
    assert np.all(np.diff(curve) <= 1e-6)
    assert curve[-1] < before


def test_with_a_linear_kernel_and_no_scaling_it_is_pca(rng: np.random.Generator) -> None:
    """Learning generalises PCA: w = 1, no noise, a linear kernel (section 5)."""
    from scipy.optimize import minimize

    y = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 8)) + 0.01 * rng.normal(size=(40, 8))
    y -= y.mean(axis=0)
    kernel, scales = Kernel.of("linear", np.array([0.0, np.log(1e3)])), np.ones(8)

    def loss_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loss = training_loss(y, flat.reshape(40, 2), kernel=kernel, scales=scales)
        return loss.value, loss.in_latents.ravel()

    found = minimize(
        loss_and_gradient, rng.normal(size=80), jac=True, method="L-BFGS-B", options={"maxiter": 3000}
    )
    ours, _ = np.linalg.qr(found.x.reshape(40, 2))
    theirs, _ = np.linalg.qr(principal_latents(y, 2))
    cosines = np.linalg.svd(ours.T @ theirs, compute_uv=False)
    assert cosines.min() > 0.9999


def test_principal_latents_are_uncorrelated_with_variance_one(rng: np.random.Generator) -> None:
    y = rng.normal(size=(50, 6)) * np.arange(1, 7)
    latents = principal_latents(y - y.mean(axis=0), 3)
    np.testing.assert_allclose(latents.T @ latents / 50, np.eye(3), atol=1e-9)


def test_places_are_where_the_pose_loss_is_flat(model: LatentModel, poses: TrainingPoses) -> None:
    loss, centred = pose_loss(model), poses.y - model.mean
    placed, values = place(loss, centred, model.latents, iterations=60)
    assert np.all(values <= loss.value(model.latents, centred) + 1e-9)
    _, gradient, hessian = loss.shape(placed, centred)
    decrement = np.einsum("na,na->n", gradient, np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0])
    assert np.median(decrement) < 1e-2


def test_learning_is_deterministic(poses: TrainingPoses) -> None:
    one, other = (learn_model(poses, dimensions=2, active=20, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.latents, other.latents)
    np.testing.assert_array_equal(one.annealed.logs, other.annealed.logs)


def test_the_annealed_kernel_is_smoother(model: LatentModel) -> None:
    """Learned on noisy poses, it expects more noise: its likelihood map has lower peaks (Fig. 3)."""
    smooth = model.with_kernel(model.annealed)
    assert smooth.kernel.noise_variance > model.kernel.noise_variance
    heights, smoothed = (one.likelihood_map(model.latents) for one in (model, smooth))
    far = np.array([[4.0, 4.0]])
    rise, smooth_rise = heights.max() - model.likelihood_map(far), smoothed.max() - smooth.likelihood_map(far)
    assert smooth_rise < rise


def test_scaled_features_vary_by_one(model: LatentModel, poses: TrainingPoses) -> None:
    scaled = (poses.y * model.scales)[:, poses.varying]
    np.testing.assert_allclose(np.mean(scaled.var(axis=0)), 1.0)


def test_thirty_frames_of_one_clip_are_enough(walk: Motion) -> None:
    _, model, maps = learn_style([walk[:30]])
    assert len(maps) == len(model.latents) == 30
    assert model.dimensions in learning.DIMENSIONS
    assert angle_error(model, model.mean + model.outputs) < 1.0


def test_two_frames_are_not_refused(walk: Motion) -> None:
    _, model, _ = learn_style([walk[np.array([0, 15])]])
    assert np.all(np.isfinite(model.predict(model.latents)))


def test_duplicate_frames_and_still_joints_are_safe(walk: Motion) -> None:
    repeated = walk[np.repeat(np.arange(30), 4)]
    _, model, _ = learn_style([repeated], dimensions=3, active=100)
    for values in (model.latents, model.scales, model.weights, model.variance(model.latents)):
        assert np.all(np.isfinite(values))
    still = model.outputs.std(axis=0) < 1e-9
    assert still.any()
    assert np.all(model.scales > 0)


def test_clips_do_not_mix(walk: Motion) -> None:
    """The second clip's first velocity is its own, not a jump from the first clip's end."""
    _, together, _ = learn_style([walk[:60], walk[60:]], dimensions=2, active=118)
    _, alone, _ = learn_style([walk], dimensions=2, active=118)
    largest = [
        np.abs(one.outputs + one.mean)[:, one.features.pose_count :].max() for one in (together, alone)
    ]
    assert largest[0] <= largest[1] + 1e-9


def test_long_recordings_are_thinned_and_short_ones_kept() -> None:
    clip = performer.act("walk", seconds=10.0, fps=120.0)
    assert [len(one) for one in thinned([clip])] == [300]
    assert [len(one) for one in thinned([clip[:150]])] == [150]
    assert thinned([clip])[0].fps == 30.0


def test_every_pose_of_long_data_has_a_place(poses: TrainingPoses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(learning.WORKING_POSES, "heuristic", 60)
    model = learn_model(poses, dimensions=2, active=30)
    assert model.latents.shape == (len(poses.y), 2)
    np.testing.assert_allclose(model.outputs, poses.y[model.active] - model.mean)
    predicted = model.predict(model.latents)[:, model.features.groups == 0]
    assert np.degrees(np.abs(predicted - poses.y[:, model.features.groups == 0]).mean()) < 2.0


@pytest.mark.slow
def test_what_is_left_open_is_chosen(poses: TrainingPoses) -> None:
    longer = TrainingPoses(poses.features, np.tile(poses.y, (4, 1)))
    model = learn_model(longer)
    assert model.dimensions in learning.DIMENSIONS
    assert len(model.active) in learning.ACTIVE_COUNTS


def test_the_kernel_can_be_chosen_by_the_data(poses: TrainingPoses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "TRIED_KERNELS", ("rbf", "matern32", "rbf+linear"))
    model = learn_model(poses, dimensions=2, active=30, kernel="auto")
    likelihoods = {
        kind: learning.held_out_likelihood(poses.centred, learning.StyleSettings(2, 30, kind))
        for kind in learning.TRIED_KERNELS
    }
    assert likelihoods[model.kernel.kind] == max(likelihoods.values())


def test_curved_data_are_likelier_under_a_kernel_that_bends(rng: np.random.Generator) -> None:
    angle = rng.permutation(np.linspace(0.0, 2.0 * np.pi, 120))
    waves = np.column_stack([f(n * angle) for n in (1, 2, 3) for f in (np.sin, np.cos)])
    y = waves @ rng.normal(size=(6, 12)) + 0.01 * rng.normal(size=(120, 12))
    curved, flat = (
        learning.held_out_likelihood(y - y.mean(axis=0), learning.StyleSettings(2, 40, kind))
        for kind in ("rbf", "linear")
    )
    assert curved > flat


def test_progress_rises_to_one(poses: TrainingPoses) -> None:
    steps: list[float] = []
    learn_model(poses, active=30, progress=steps.append)
    assert steps == sorted(steps)
    assert steps[-1] == 1.0


def test_mistakes_are_told(walk: Motion, poses: TrainingPoses) -> None:
    with pytest.raises(InvalidValueError, match="at least two frames"):
        learn_style([])
    with pytest.raises(InvalidValueError, match="frames with motion"):
        learn_style([walk[np.zeros(10, dtype=np.int64)]])
    with pytest.raises(UnknownNameError, match="did you mean heuristic"):
        learn_model(poses, algorithm="heuristics")
    with pytest.raises(UnknownNameError, match="valid: auto, rbf"):
        learn_model(poses, kernel="squid")
    with pytest.raises(InvalidValueError, match="dimensions; got 0"):
        learn_model(poses, dimensions=0)
    with pytest.raises(InvalidValueError, match="at least two poses; got 1"):
        learn_model(poses, active=1)
