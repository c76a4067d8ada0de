"""Write one motion in every format, read each back, and see how far the joints moved on the way."""

from pathlib import Path

import numpy as np

import poise
from poise.motion.virtual_markers import virtual_markers
from poise.motion.world import joint_positions
from poise.pictures import save

out = Path("out/examples")
out.mkdir(parents=True, exist_ok=True)


def positions_of_roles(motion: poise.Motion) -> np.ndarray:
    """Where pelvis, head, hands, feet ... are; formats may rename joints, but roles are found again."""
    joints = [motion.skeleton.index(role) for role in throw.skeleton.roles]
    return joint_positions(motion)[:, joints]


throw = poise.performer.act("throw", performer="maya")
for extension in ("bvh", "glb", "amc"):
    path = poise.write(throw, out / f"03_throw.{extension}")
    difference = np.abs(positions_of_roles(poise.read(path)) - positions_of_roles(throw)).max()
    print(f"{path}  {path.stat().st_size / 1000:7.1f} kB  read back within {1000 * difference:.4f} mm")

markers = virtual_markers(throw)  # what an optical system would have recorded
path = poise.write(markers, out / "03_throw.trc")
print(f"{path}  {path.stat().st_size / 1000:7.1f} kB  read back as {poise.read(path)}")

save(throw, out / "03_throw.png", poses=6)
save(markers, out / "03_markers.png", poses=6)
print(f"look at {out / '03_throw.png'} and {out / '03_markers.png'}")
