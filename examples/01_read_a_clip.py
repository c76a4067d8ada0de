"""Read a motion file, see what the reader decided, and look at the motion.

Any BVH, AMC or GLB file will do. Here the performer makes one first, so that the example runs without a recording.
"""

from pathlib import Path

import poise

out = Path("out/examples")
poise.performer.act("walk", style="proud", seconds=2.5).save(out / "walk.bvh")

walk = poise.read(out / "walk.bvh")
print(walk)
print(f"height   {walk.skeleton.height:.2f} m")
print(f"units    {walk.origin.units}: {walk.origin.units_reason}")
print(f"still    {', '.join(poise.motion.still_joints(walk)) or 'none'}")
print(f"hands    {walk.skeleton.roles['left_hand']}, {walk.skeleton.roles['right_hand']}")
for warning in walk.origin.warnings:
    print(f"warning  {warning}")

pose = walk[60]  # one frame: a root position and a rotation per joint
print(f"frame 60 has its left hand at {pose.positions['left_hand'].round(2)}")

walk.save(out / "01_walk.png")
print(f"look at  {out / '01_walk.png'}")
