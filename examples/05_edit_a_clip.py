"""Trim, join, resample and mirror clips: walk up, box, and the same with the other hand."""

from pathlib import Path

import poise

out = Path("out/examples")
walk = poise.performer.act("walk", seconds=3.0)
box = poise.performer.act("box", combination="jab cross", seconds=2.0)

joined = poise.motion.concatenate([poise.motion.trim(walk, 0.5, 2.5), box], blend=0.4)
joined = poise.motion.resample(joined, 60.0)
other_hand = poise.motion.mirror(joined)
print(f"{joined.seconds:.2f} s, {len(joined)} frames at {joined.fps:g} Hz")

other_hand.save(out / "05_mirrored.glb")
joined.save(out / "05_joined.png", layout="row")
other_hand.save(out / "05_mirrored.png", layout="row")
print(f"look at {out / '05_joined.png'} and {out / '05_mirrored.png'}")
