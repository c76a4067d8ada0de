"""Pictures of a style's latent space, as Figs. 1 to 3 of Grochow et al. 2004.

Grey is the log-likelihood of a place, -D/2 ln sigma^2 - |x|^2 / 2, the lighter the better. A plus is a training pose,
coloured by time; red ones are active. A space of more than two dimensions is projected along the directions in which
its training points spread least: to the plane of the two in which they spread most. Every place shows the best of the
points behind it, at the depths of the nearby training points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image

from poise.pictures.latent_plane import Extent, LatentPlane, extent_of, mapped, places_in
from poise.pictures.mannequin import Colour, build_mannequin
from poise.pictures.plots import Axes, Ellipse, Plot, image_of
from poise.pictures.scene import Floor, Paper, figure, fitted, render
from poise.pictures.subject import facing_of
from poise.priors.latent.model import LatentPoses, LatentSpace
from poise.priors.latent.prior import LatentPrior, novel_latents, spread_latents, standing_pose
from poise.priors.style.prior import Mixture
from poise.skeleton.skeleton import Pose
from poise.types import Array

TRAINING: Colour = (0.93, 0.52, 0.16)
NOVEL: Colour = (0.24, 0.62, 0.33)
ACTIVE = "#d3202f"
INK, PALE_INK = "#34363c", "#6d7078"
PAPER = (0.964, 0.964, 0.960)
TIME_COLOURS = "winter"

SHOWN = 6  # training poses drawn
MADE_UP = 4  # and novel ones
STAGES = ("the model itself", "between", "annealed")
GAUSSIANS = 10  # of the mixture it is compared with
DARKEST = 15.0  # percent of a map that is black
_TILE = (190, 190)  # pixels of one pose
_SIDE, _TOP = 0.135, 0.93  # parts of a picture: the width of a column of poses, and where the title begins
_ELEVATION, _TURN = np.radians(9.0), np.radians(38.0)
_DPI = 100


def draw_latent_map(prior: LatentPoses, *, title: str = "", seed: int = 0) -> Image.Image:
    """Fig. 1: the likelihood map with training poses (orange) and novel ones (green), each connected to its place."""
    plane = LatentPlane.of(prior.latents)
    novel = novel_latents(prior, MADE_UP, np.random.default_rng(seed))
    places = np.concatenate([spread_latents(prior, SHOWN), novel])
    colours = [TRAINING] * (len(places) - len(novel)) + [NOVEL] * len(novel)
    tiles = _pose_tiles([standing_pose(prior, x) for x in places], colours)
    plot, axes = _plot(1, width=14.0, height=9.4)
    plot.subplots_adjust(left=_SIDE, right=1.0 - _SIDE, bottom=0.055, top=_TOP)
    extent = draw_map(axes[0], prior, plane)
    _points(axes[0], prior, plane)
    _tiles_beside(plot, axes[0], tiles, colours, plane.split(places)[0])
    axes[0].set(xlim=extent[:2], ylim=extent[2:])
    known = getattr(prior, "clips", ())
    clips = ", ".join(name for name, _ in known[:3] if name) + (" …" if len(known) > 3 else "")
    note = f"{len(prior.latents)} poses in {prior.latents.shape[1]} dimensions, {len(prior.active)} active"
    note += "".join(f", {kernel.kind} kernel" for kernel in getattr(prior, "kernels", ())[-1:])
    plot.text(0.012, 0.955, title or clips, fontsize=14, color=INK)
    plot.text(0.988, 0.955, note, fontsize=10, color=PALE_INK, ha="right")
    words = ("● training pose", "● made up", "+ active", "+ others, by time")
    for place, (colour, text) in enumerate(zip((TRAINING, NOVEL, ACTIVE, "#007fbf"), words, strict=True)):
        plot.text(_SIDE + 0.13 * place, 0.02, text, fontsize=10, color=colour)
    return image_of(plot)


def draw_annealed_maps(prior: LatentPrior, *, title: str = "") -> Image.Image:
    """Fig. 3: the model itself, the intermediate and the smooth one, as maps and as surfaces."""
    plane = LatentPlane.of(prior.latents)
    plot = Plot(figsize=(13.2, 8.6), dpi=_DPI, facecolor=PAPER)
    for column, (name, kernel) in enumerate(zip(STAGES, reversed(prior.kernels), strict=True)):
        under = prior.under(kernel)
        axes = plot.add_axes((0.02 + 0.325 * column, 0.43, 0.31, 0.47))
        draw_map(axes, under, plane)
        _points(axes, under, plane)
        alpha, beta, gamma, _ = kernel.parameters
        parameters = f"α {alpha:.2g}, β {beta:.3g}, γ {gamma:.2g}"
        axes.set_title(f"{name}: {parameters}", fontsize=10, color=INK, loc="left")
        _surface(plot, under, plane, column)
    plot.text(0.02, 0.955, title or "From fine to smooth", fontsize=14, color=INK)
    return image_of(plot)


def draw_learning_curve(prior: LatentPrior) -> Image.Image:
    """The loss after every round of learning: L_GP and, for inactive poses, L_IK."""
    curve = prior.learning_curve
    plot, (axes,) = _plot(1, width=7.0, height=4.2)
    plot.subplots_adjust(left=0.15, right=0.97, bottom=0.13, top=0.9)
    axes.plot(np.arange(1, len(curve) + 1), curve, "o-", color=ACTIVE, markersize=3, linewidth=1.2)
    axes.set_xlabel("round", color=INK)
    axes.set_ylabel("negative log-likelihood, nats", color=INK)
    axes.set_title("Learning curve", fontsize=12, color=INK, loc="left")
    axes.locator_params(axis="x", integer=True)
    return image_of(plot)


def draw_mixture(prior: LatentPrior, *, title: str = "", seed: int = 0) -> Image.Image:
    """Fig. 2: Gaussians on two principal components and their log-likelihood, with the style's map to compare."""
    remembered = np.stack([prior.pose_at(x) for x in prior.latents])
    mixture = Mixture.fit(remembered, gaussians=min(GAUSSIANS, len(prior.latents)), seed=seed)
    plot, axes = _plot(3, width=13.2, height=5.0)
    plot.subplots_adjust(left=0.02, right=0.98, bottom=0.03, top=0.82, wspace=0.05)
    seen, extent = mixture.points, extent_of(mixture.points)
    _pluses(axes[0], seen)
    for mean, covariance in zip(mixture.means, mixture.covariances, strict=True):
        # the two-sigma ellipse
        values, vectors = np.linalg.eigh(covariance)
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        width, height = (4.0 * float(np.sqrt(value)) for value in (values[1], values[0]))
        ellipse = Ellipse(
            (mean[0], mean[1]), width, height, angle=angle, fill=False, edgecolor=ACTIVE, linewidth=1.3
        )
        axes[0].add_patch(ellipse)
    _frame(axes[0], extent)
    axes[0].set_facecolor(PAPER)
    axes[0].set_aspect("equal")
    places, shape = places_in(extent)
    _grey(axes[1], mixture.log_likelihood(places).reshape(shape), extent)
    _pluses(axes[1], seen)
    plane = LatentPlane.of(prior.latents)
    draw_map(axes[2], prior, plane)
    _points(axes[2], prior, plane)
    first = f"{len(mixture.means)} Gaussians on two principal components"
    for each, name in zip(axes, (first, "their log-likelihood", "the style"), strict=True):
        each.set_title(name, fontsize=11, color=INK, loc="left")
    plot.text(0.02, 0.93, title or "A mixture of Gaussians beside the style", fontsize=14, color=INK)
    return image_of(plot)


# --- maps ------------------------------------------------------------------------------------------------------------


def draw_map(axes: Axes, space: LatentSpace, plane: LatentPlane) -> Extent:
    """The likelihood map in grey, and its extent in the plane."""
    values, extent = mapped(space, plane)
    _grey(axes, values, extent)
    return extent


def _grey(axes: Axes, values: Float[Array, "rows columns"], extent: Extent) -> None:
    low, high = np.percentile(values, DARKEST), values.max()
    axes.imshow(
        values, extent=extent, origin="lower", cmap="gray", vmin=low, vmax=max(high, low + 1e-9),
        interpolation="bicubic", aspect="equal",
    )  # fmt: skip
    _frame(axes, extent)


def _frame(axes: Axes, extent: Extent) -> None:
    axes.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color("#b9bcc2")


def _points(axes: Axes, space: LatentSpace, plane: LatentPlane) -> None:
    seen = plane.split(space.latents)[0]
    _pluses(axes, seen)
    active = seen[space.active].T
    axes.scatter(active[0], active[1], c=ACTIVE, marker="+", s=34, linewidths=1.1, zorder=4)


def _pluses(axes: Axes, seen: Float[Array, "poses 2"]) -> None:
    """Points from blue to green by time."""
    times = np.linspace(0.0, 1.0, len(seen))
    axes.scatter(
        seen[:, 0], seen[:, 1], c=times, cmap=TIME_COLOURS, marker="+", s=26, linewidths=0.9, zorder=3
    )


def _surface(plot: Plot, space: LatentSpace, plane: LatentPlane, column: int) -> None:
    """The map as a surface over its plane."""
    values, extent = mapped(space, plane)
    places, shape = places_in(extent)
    values = np.maximum(values, np.percentile(values, DARKEST))
    place = (0.02 + 0.325 * column, 0.0, 0.31, 0.44)
    axes: Any = plot.add_axes(place, projection="3d", facecolor="none", zorder=-1)
    x, y = places[:, 0].reshape(shape), places[:, 1].reshape(shape)
    axes.plot_surface(x, y, values, cmap="bone", rcount=70, ccount=70, linewidth=0, antialiased=False)
    axes.set_axis_off()
    axes.view_init(elev=42, azim=-65)
    axes.set_box_aspect((1.0, 0.8, 0.45), zoom=1.35)


# --- poses -----------------------------------------------------------------------------------------------------------


def _pose_tiles(poses: list[Pose], colours: list[Colour]) -> list[Image.Image]:
    """The poses one by one, in one colour each, with one camera and scale."""
    figures = []
    for pose, colour in zip(poses, colours, strict=True):
        # A body facing +Z, centred above the origin with its soles on the floor.
        angle = -facing_of(pose.skeleton, pose.world[0][None])
        turn = np.array([
            [np.cos(angle), 0.0, np.sin(angle)], [0.0, 1.0, 0.0], [-np.sin(angle), 0.0, np.cos(angle)]
        ])  # fmt: skip
        mannequin = build_mannequin(pose.skeleton, rotations=pose.rotations[None])
        shown = figure(mannequin, pose.world[0] @ turn.T, turn @ pose.world[1], tint=colour)
        low, high = shown.vertices.min(axis=0), shown.vertices.max(axis=0)
        shown.vertices[:] -= np.array([0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2])])
        figures.append(shown)
    points, margins = np.concatenate([shown.vertices for shown in figures]), (0.02, 0.03, 0.02, 0.03)
    view = fitted(points, azimuth=-_TURN, elevation=_ELEVATION, size=_TILE, margins=margins, lens=9.0)
    paper = Paper(PAPER, PAPER, PAPER, shadow=PAPER, grid_strength=0.0)
    return [Image.fromarray(render([shown], view, floor=Floor(), paper=paper)) for shown in figures]


def _tiles_beside(
    plot: Plot, axes: Axes, tiles: list[Image.Image], colours: list[Colour], places: Float[Array, "n 2"]
) -> None:
    """Poses in a column on either side of a map, in the order of their places, each with a line to its own."""
    order = np.argsort(places[:, 0], kind="stable")
    half = len(order) // 2
    for side, numbers in enumerate((order[:half], order[half:])):
        height = _TOP / len(numbers)
        for row, number in enumerate(numbers[np.argsort(-places[numbers, 1], kind="stable")]):
            own = plot.add_axes((side * (1.0 - _SIDE), _TOP - height * (row + 1), _SIDE, height), zorder=-1)
            own.imshow(np.asarray(tiles[number]))
            own.set_axis_off()
            at, colour = places[number], colours[number]
            axes.annotate(
                "", xy=at, xytext=(0.78 if side == 0 else 0.22, 0.5), textcoords=own.transAxes, zorder=5,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
            edge: Any = {"markeredgecolor": "white", "markeredgewidth": 1.2}
            axes.plot(*at, "o", color=colour, markersize=8, zorder=6, **edge)


# --- pictures --------------------------------------------------------------------------------------------------------


def _plot(columns: int, *, width: float, height: float) -> tuple[Plot, list[Axes]]:
    plot = Plot(figsize=(width, height), dpi=_DPI, facecolor=PAPER)
    return plot, list(plot.subplots(1, columns, squeeze=False)[0])
