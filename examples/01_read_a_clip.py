"""Read a motion file, see what the reader decided, and look at the motion.

Any BVH, AMC or GLB file will do. Here the performer makes one first, so that the example runs without a recording.
"""

from pathlib import Path

import poise
from poise.motion.stillness import still_joints
from poise.pictures import save

out = Path("out/examples")
out.mkdir(parents=True, exist_ok=True)

poise.write(poise.performer.act("walk", style="proud", seconds=2.5), out / "walk.bvh")

walk = poise.read(out / "walk.bvh")
print(walk)
print(f"height   {walk.skeleton.height:.2f} m")
print(f"units    {walk.origin.units}: {walk.origin.units_reason}")
print(f"still    {', '.join(still_joints(walk)) or 'none'}")
print(f"hands    {walk.skeleton.roles['left_hand']}, {walk.skeleton.roles['right_hand']}")
for warning in walk.origin.warnings:
    print(f"warning  {warning}")

pose = walk[60]  # one frame: a root position and a rotation per joint
print(f"frame 60 has its root at {pose.root_position.round(2)}")

save(walk, out / "01_walk.png")
print(f"look at  {out / '01_walk.png'}")
