"""Random reachable handle sets over ten bodies: joints beyond people, parts below the floor or in each other, balance.

Handles come from random poses that a person can hold: within the ranges, above the floor, out of itself, and in balance
on the feet and the parts that have a handle.
`SETS=20000 python -m benchmarks anatomy` is the long run.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from benchmarks.table import Row
from poise.performer import PERFORMERS, Body
from poise.performer.bodies import Proportions
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.clearance import depths
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.ranges import beyond_people
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose
from poise.solvers import bearing
from poise.solvers.constraints import Position
from poise.solvers.posture import Manner, Posture

SETS = int(os.environ.get("SETS", "2000"))
BODIES = (
    *PERFORMERS.values(),
    Body("child", 1.15, Proportions(thigh=0.225, shank=0.225, foot=0.145)),
    Body("giant", 2.10),
    Body("long arms", 1.80, Proportions(upper_arm=0.185, forearm=0.170)),
)  # and the typical body of the recordings
SIDED = ("hand", "foot", "forearm", "shin")
ROLES = ("head", "pelvis", *(f"{side}_{part}" for side in SIDES for part in SIDED))
MOST, TURN = 5, 0.4  # handles in a set, and radians: deviation of every joint from a known pose
BEYOND, BELOW, INSIDE = 5.0, 0.005, 0.01  # degrees and metres from which a fault counts
FAULTS = ("beyond people", "below the floor", "inside itself", "off balance", "out of reach")


def run() -> list[Row]:
    """The same number of sets for each body; then each fault by body part."""
    rng, counts, seconds = np.random.default_rng(0), Counter[str](), 0.0
    bodies = [*(body.skeleton for body in BODIES), UniversalPrior.of_people().space.skeleton]
    for skeleton in bodies:
        prior = UniversalPrior(skeleton)
        posture, source = Posture(prior), poses_of_people(prior, rng)
        for _ in range(SETS // len(bodies)):
            roles = rng.choice(ROLES, size=rng.integers(1, MOST + 1), replace=False).tolist()
            pose = next(pose for pose in source if "off balance" not in faults(pose, roles))
            asked = [Position(role, tuple(pose.positions[role])) for role in roles]
            begun = time.perf_counter()
            solution = posture.solve(asked, Manner())
            seconds += time.perf_counter() - begun
            found = faults(solution.pose, roles) | ({"out of reach"} if not solution.reached else set())
            counts.update(found | {fault.partition(":")[0] for fault in found})
    total = SETS // len(bodies) * len(bodies)
    parts = [name for name, _ in counts.most_common() if ":" in name]
    rows = [Row(name, 100.0 * counts[name] / total, "%", note=f"{total:,} sets") for name in FAULTS]
    rows += [Row(name, 100.0 * counts[name] / total, "%") for name in parts]
    return [*rows, Row("a solve", 1e3 * seconds / total, "ms")]


def poses_of_people(prior: UniversalPrior, rng: np.random.Generator) -> Iterator[Pose]:
    """Random poses without faults: between standing and poses far from each other, every joint turned at random."""
    space, (maps, ups), limits = prior.space, prior.known_poses(), prior.limits
    lower, upper = limits.lower[space.moving].ravel(), limits.upper[space.moving].ravel()
    firm = bearing.firm_of(space.skeleton)
    while True:
        which, share = rng.integers(len(maps)), rng.uniform()
        middle = share * maps[which] + (1.0 - share) * prior.mean
        turned = np.clip(middle + TURN * rng.normal(size=len(middle)), lower, upper)
        q = space.standing(turned, share * ups[which] + (1.0 - share) * np.array([0.0, 1.0, 0.0]))
        q[1] -= min(0.0, float((space.forward(q)[0][firm.parts, 1] - firm.skin).min()))
        if not faults(pose := space.pose_from_q(q), ROLES):
            yield pose


def faults(pose: Pose, held: Collection[str]) -> set[str]:
    """What a person could not do, by body part; `held` are the roles that may carry the body."""
    skeleton, (positions, _) = pose.skeleton, pose.world
    found = {f"beyond people: {one.part} {one.movement}" for one in beyond_people(pose, slack=BEYOND)}
    firm = bearing.firm_of(skeleton)
    low = positions[firm.parts, 1] - firm.skin < -BELOW
    found |= {f"below the floor: {skeleton.names[joint]}" for joint in firm.parts[low]}
    deep = depths(skeleton, positions[None])
    found |= {f"inside itself: {one} in {other}" for (one, other), depth in deep.items() if depth[0] > INSIDE}
    space = PoseSpace(skeleton)
    centre, _ = space.centre_of_mass(space.q_from_pose(pose))
    return found | ({"off balance"} if bearing.overhang(pose, centre, held=held) > 0.0 else set())
