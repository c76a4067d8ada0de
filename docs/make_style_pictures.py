"""Draws the pictures of style.md from the performer: `python docs/make_style_pictures.py` (needs nothing else)."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from poise import performer, pictures
from poise.pictures.latent_map import draw_annealed_maps, draw_latent_map, draw_mixture
from poise.priors.blend import BlendPrior
from poise.priors.style.prior import StylePrior
from poise.solvers.constraints import Position
from poise.solvers.solve import solve

FOLDER = Path(__file__).parent / "images" / "style"
WIDTH = 1000
FEET = ("left_foot", "right_foot", "left_toes", "right_toes")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    throw = StylePrior.learn([performer.act("throw", fps=60, seed=3)], dimensions=3, active=60)
    _save(draw_latent_map(throw, title="A throw"), "map.png")
    _save(draw_annealed_maps(throw, title="A throw, from fine to smooth"), "annealed.png")
    flat = StylePrior.learn([performer.act("throw", fps=60, seed=3)], dimensions=2, active=60)
    _save(draw_mixture(flat, title="A throw"), "mixture.png")
    _save(_strip(), "blend.png")


def _strip() -> Image.Image:
    """One step of an old walk, done with more and more of a proud one."""
    walks = [performer.act("walk", style=style, seconds=4.0, fps=30) for style in ("old", "proud")]
    styles = [StylePrior.learn([walk], dimensions=3, active=100) for walk in walks]
    space = styles[0].space
    q = space.q_from_frames(walks[0].root_positions[46], walks[0].rotations[46])
    points, _ = space.handle_positions(q, space.handles(FEET))
    steps = [Position(foot, point) for foot, point in zip(FEET, points, strict=True)]
    poses = {}
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        poses[f"{share:.2f}"] = solve(BlendPrior(styles, [1.0 - share, share]), steps).pose
    return pictures.draw_panels(poses, size=(240, 380))


def _save(image: Image.Image, name: str) -> None:
    small = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    small.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
