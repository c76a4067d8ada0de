"""Pose a body by a few handles with the prior that comes with Poise: no clips, no learning.

    python examples/00_pose_by_handles.py

Writes out/examples/00_*.png, a picture per task, and prints what each pose leaves open.
"""

from pathlib import Path

import poise

FEET = {"left_foot": (0.1, 0.09, 0.1), "right_foot": (-0.1, 0.09, 0.0)}
TASKS = {
    "shelf": {"right_hand": (-0.2, 1.95, 0.35), **FEET},
    "lift": {"right_hand": (-0.15, 0.25, 0.45), "left_hand": (0.15, 0.25, 0.45), **FEET},
    "sit": {"pelvis": (0.0, 0.5, -0.35), **FEET},
    "kick": {"right_foot": (-0.1, 0.7, 0.7), "left_foot": (0.1, 0.09, 0.0)},
}

out = Path("out/examples")
for task, handles in TASKS.items():
    solution = poise.pose(handles)
    solution.save(out / f"00_{task}.png", handles=handles)
    head, next_handle = solution.deviation["head"], solution.uncertainty.suggestions()[0]
    print(
        f"{task:<6} {solution.status.value}; the head may be off by {100 * head:.0f} cm; "
        f"a handle on {next_handle.joint} would settle {100 * next_handle.share:.0f} %"
    )
print(f"look at {out / '00_shelf.png'}")
