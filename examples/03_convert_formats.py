"""Write one motion in every format, read each back, and see how far the joints moved on the way."""

from pathlib import Path

import numpy as np

import poise

out = Path("out/examples")


def positions_of_roles(motion: poise.Motion) -> np.ndarray:
    """Where pelvis, head, hands, feet ... are; formats may rename joints, but roles are found again."""
    return np.stack([motion.positions[role] for role in throw.skeleton.roles])


throw = poise.performer.act("throw", performer="maya")
for extension in ("bvh", "glb", "amc"):
    path = throw.save(out / f"03_throw.{extension}")
    difference = np.abs(positions_of_roles(poise.read(path)) - positions_of_roles(throw)).max()
    print(f"{path}  {path.stat().st_size / 1000:7.1f} kB  read back within {1000 * difference:.4f} mm")

markers = poise.virtual_markers(throw)  # what an optical system would have recorded
path = markers.save(out / "03_throw.trc")
print(f"{path}  {path.stat().st_size / 1000:7.1f} kB  read back as {poise.read(path)}")

throw.save(out / "03_throw.png", poses=6)
markers.save(out / "03_markers.png", poses=6)
print(f"look at {out / '03_throw.png'} and {out / '03_markers.png'}")
