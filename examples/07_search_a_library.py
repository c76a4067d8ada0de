"""Build a motion library, search it by words, and follow a performance by a few markers.

Run it with a folder to write into:  python examples/07_search_a_library.py out
"""

import sys
from pathlib import Path

import poise

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
clips = out / "clips"
for speed in (1.0, 1.3, 1.6):
    poise.performer.act("walk", speed=speed, seconds=2.0, fps=60).save(clips / f"walk_{speed:g}.bvh")
poise.performer.act("reach", fps=60).save(clips / "reach.bvh")

built = poise.library.build(out / "moves", [clips])
library = poise.library.Library.open(out / "moves")
print(f"{len(built.added)} clips added; walks: {[clip.name for clip in library.search(['walk'])]}")

markers = ["left_hand", "right_hand", "left_foot", "right_foot", "head"]
poses = library.poses
handles = poses.space.handles(markers)
metric = poise.library.QueryMetric.balanced(poses, handles)
search = poise.library.CoherentSearch(poise.library.find_runs(poses), metric.rows(poses, handles))

unseen = poise.library.Poses.of_motions(
    [poise.performer.act("walk", speed=1.45, seconds=1.0, fps=60, seed=5)]
)
before = before_that = None
for points in unseen.marker_positions(markers):
    query = metric.query(points.astype(float), before, before_that, maps=poses.maps.shape[1])
    found = search.nearest(query, 5)
    before, before_that = poses.maps[found.frames[0]].astype(float), before
clip = poses.names[poses.clip_of[found.frames[0]]]
print(f"at the end the nearest frame is of {clip}, {found.visited} frames looked at")

library.motion("reach").save(out / "reach.png")
