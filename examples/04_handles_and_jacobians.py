"""Pull a hand to a point: handles, their Jacobian, and the damped least squares step that every solver builds on.

Wampler 1986, "Manipulator inverse kinematic solutions based on vector formulations and damped least-squares methods".
It meets its targets and cares for nothing else: the pose it finds is one that no person would take. That is what
priors learned from motion are for; the example shows what their solvers are made of.
"""

from pathlib import Path

import numpy as np

import poise

NAMES = ("left_hand", "right_hand", "left_foot", "right_foot")

out = Path("out/examples")
idle = poise.performer.act("idle", seconds=1.0)
space = poise.skeleton.PoseSpace(idle.skeleton)
handles = space.handles(NAMES)

q = space.q_from_pose(idle[0])
points, _ = space.handle_positions(q, handles)
targets = points.copy()
targets[0] += [0.15, 0.55, 0.30]  # the left hand goes up and forward; the right hand and the feet stay

damping, steps = 0.05, 0
error = targets - points
while np.abs(error).max() > 1e-4 and steps < 60:
    points, jacobian = space.handle_positions(q, handles)
    error = (targets - points).reshape(-1)
    system = jacobian @ jacobian.T + damping**2 * np.eye(len(error))
    q = space.integrate(q, jacobian.T @ np.linalg.solve(system, error))
    steps += 1

print(f"{steps} steps: every handle within {1000 * np.abs(error).max():.2f} mm of its target")
print(f"centre of mass at {space.centre_of_mass(q)[0].round(3)}")

shown = dict(zip(NAMES, targets, strict=True))
space.pose_from_q(q).save(out / "04_reach.png", handles=shown, ghosts=[idle[0]])
print(f"look at {out / '04_reach.png'}")
