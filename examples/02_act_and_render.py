"""Have the performer do one thing in every style, compare the styles in one picture, and animate an action."""

from pathlib import Path

import numpy as np

import poise

out = Path("out/examples")

poses = {}
for style in poise.performer.STYLES:
    walk = poise.performer.act("walk", style=style, seconds=2.0, seed=1)
    speed = np.linalg.norm(np.diff(walk.root_positions, axis=0), axis=-1).sum() / walk.seconds
    print(f"{style:10s} {speed:.2f} m/s")
    poses[style] = walk[90]

poise.performer.act("jump", seconds=1.5, seed=1).save(out / "02_jump.gif", size=(320, 400), fps=15)
poise.pictures.draw_panels(poses, size=(220, 400), columns=6).save(out / "02_styles.png")
print(f"look at {out / '02_styles.png'} and {out / '02_jump.gif'}")
