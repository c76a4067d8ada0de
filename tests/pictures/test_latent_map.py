"""Pictures of latent spaces: the plane they are seen in, and what is drawn on it."""

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.pictures.latent_map import draw_annealed_maps, draw_latent_map, draw_mixture
from poise.pictures.latent_plane import LatentPlane, likelihood_grid
from poise.priors.style.prior import StylePrior


@pytest.fixture(scope="module", params=[1, 2, 4])
def prior(request: pytest.FixtureRequest) -> StylePrior:
    walk = performer.act("walk", seconds=1.5, fps=30)
    return learned(StylePrior, [walk], dimensions=request.param, active=20, velocity=False)


def test_a_plane_shows_the_two_widest_directions_and_loses_nothing() -> None:
    points = np.random.default_rng(0).normal(size=(200, 4)) * (0.1, 3.0, 0.2, 1.0) + (5.0, 0.0, -1.0, 2.0)
    plane = LatentPlane.of(points)
    seen, depths = plane.split(points)
    assert seen.std(axis=0) == pytest.approx([3.0, 1.0], rel=0.15)
    np.testing.assert_allclose(plane.joined(seen, depths), points, atol=1e-12)


def test_the_map_is_at_least_as_good_at_a_training_point_as_the_point_itself(prior: StylePrior) -> None:
    model = prior.model
    plane = LatentPlane.of(model.latents)
    drawn = likelihood_grid(model, plane, plane.split(model.latents)[0])
    assert np.all(drawn >= model.likelihood_map(model.latents) - 1e-2)


def test_a_map_is_dark_far_from_the_data(prior: StylePrior) -> None:
    plane = LatentPlane.of(prior.model.latents)
    far = np.array([[40.0, 0.0]])
    near = plane.split(prior.model.latents)[0]
    assert likelihood_grid(prior.model, plane, far)[0] < likelihood_grid(prior.model, plane, near).min() - 50


def test_every_view_is_a_picture_with_all_its_colours(prior: StylePrior) -> None:
    page = np.asarray(draw_latent_map(prior)).astype(int)
    assert page.shape == (940, 1400, 3)
    red, green, blue = np.moveaxis(page, 2, 0)
    for seen in (
        (red > 150) & (green < 80) & (blue < 80),  # active points
        (red > 200) & (abs(green - 132) < 30) & (blue < 80),  # recorded poses
        (green > red + 40) & (green > blue + 40),  # poses made up
    ):
        assert seen.sum() > 100
    for view in (draw_annealed_maps(prior), draw_mixture(prior)) if prior.model.dimensions == 2 else ():
        assert np.asarray(view).std() > 30
