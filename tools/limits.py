"""Learn what people's joints reach from the CMU recordings, compare it with published ranges, write both as data.

    python tools/limits.py ../shared/mocap/cmu-all-30hz.npz.xz

It writes `src/poise/skeleton/ranges.json` and the table of `docs/results/notes/joints.md`. A range is that of nine
performers of ten, each without the half percent of frames at either end. Joint zeros were calibrated by hand for
every performer: those of spine and neck are measured where a performer stands quietly. Frames in which a part is 40
degrees beyond what is published are mistakes of the solver of the markers, and left out.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from poise.evaluation.novelty import roc_area
from poise.geometry import rotations
from poise.priors.universal.prior import UniversalPrior
from poise.priors.universal.recordings import RATE, PoseTable, motion_of, read_table
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.ranges import MOVEMENTS, excess_of, measured
from poise.types import Array

DATABASE = "CMU Graphics Lab Motion Capture Database, mocap.cs.cmu.edu, funded by NSF EIA-0196217"
EVERY = 3  # frames
ENDS, PERFORMERS = (0.5, 99.5), (10.0, 90.0)  # percent of a performer's frames, and of performers
MISTAKE = 40.0  # degrees beyond the published range
BROKEN, SPARSE, STILL = 15.0, 24, 25.0  # degrees beyond a range, frames, degrees of a leg that stands
MORE = 5.0  # degrees: a limit is the published range, extended by at most this where people reach further
ZEROED = ("spine", "neck")
CHAINS = {"spine": ("LowerBack", "Spine", "Spine1"), "neck": ("Neck", "Neck1", "Head")}
KNEES = (0, 15, 30, 45, 60, 75, 90)
ELEVATIONS = (-100, -80, -60, -40, -20, 0, 20, 40, 60)  # of the arm: it hangs at -90
FEWEST = 200  # frames of a performer between two knots, and performers of whom so many are needed
ENOUGH = 5
LOADED = 40.0  # degrees that an ankle bends up under load with the knee bent
Range = tuple[float, float]

# Degrees about left, up and forward from the neutral pose (arms out, palms down), of left limbs. About "left", + bends
# the trunk forward, the thigh back and the knee shut. None where nothing is published.
PUBLISHED: dict[str, tuple[Range | None, Range | None, Range | None]] = {
    "spine": ((-30, 80), (-45, 45), (-35, 35)),
    "neck": ((-60, 50), (-80, 80), (-45, 45)),
    "upper_arm": ((-90, 90), (-135, 60), (-90, 90)),
    "forearm": ((-80, 80), (-150, 10), None),
    "hand": ((-80, 80), (-30, 20), (-80, 70)),
    "thigh": ((-120, 30), (-45, 45), (-30, 45)),
    "shin": ((-10, 150), None, None),
    "foot": ((-LOADED, 50), (-35, 35), (-35, 20)),
    "toes": ((-70, 45), None, None),
}
# Limits that the ranges above do not give: a shoulder shares its motion with the collar bone, an elbow's bend and twist
# mix in its map, a bent hip spreads further than a straight one, feet that push off stretch further than a hand can
# stretch them, and hinges of capture rigs turn a little about their other axes.
GIVEN: dict[str, tuple[Range, Range, Range]] = {
    "shoulder": ((-45, 45), (-35, 35), (-15, 50)),
    "upper_arm": ((-140, 100), (-140, 60), (-110, 100)),
    "forearm": ((-90, 90), (-155, 15), (-90, 90)),
    "hand": ((-105, 105), (-35, 40), (-85, 75)),
    "thigh": ((-125, 35), (-60, 60), (-35, 70)),
    "foot": ((-44, 65), (-40, 40), (-35, 35)),
    "shin": ((-10, 155), (-30, 30), (-15, 15)),
    "toes": ((-75, 50), (-15, 15), (-15, 15)),
}

# Ends of ranges that depend on another angle of the same side: part, axis (0 left, 1 up, 2 forward), end, then the
# angle and where it is measured; what is published there, or None for what recorded people reach. The hip's and the
# knee's, whose muscles span both, and the spread of a bent hip, are from Kapandji (2010), "The physiology of the
# joints", volume 2; an arm's twist and swing are learned (Wang et al. 1998, "Three-dimensional modelling of the motion
# range of axial rotation of the upper arm", found a twist of 94 to 157 degrees in all).
COUPLED: tuple[tuple[str, int, int, str, int, tuple[int, ...], tuple[float, ...] | None], ...] = (
    ("thigh", 0, 0, "shin", 0, (0, 90), (-90, -120)),
    ("shin", 0, 1, "thigh", 0, (-60, 0), (150, 125)),
    ("thigh", 2, 1, "thigh", 0, (-70, -20), (70, 50)),
    ("upper_arm", 0, 0, "upper_arm", 2, ELEVATIONS, None),
    ("upper_arm", 0, 1, "upper_arm", 2, ELEVATIONS, None),
    ("upper_arm", 1, 0, "upper_arm", 2, ELEVATIONS, None),
    ("upper_arm", 1, 1, "upper_arm", 2, ELEVATIONS, None),
)


def main() -> None:
    table = read_table(Path(sys.argv[1]))
    found = angles_of(table)
    learned = {part: learned_range(part, found[part]) for part in PUBLISHED}
    parts = {
        part: {
            "learned": learned.get(part),
            "published": PUBLISHED.get(part),
            "limit": GIVEN.get(part) or limit(PUBLISHED[part], learned[part]),
        }
        for part in (*PUBLISHED, "shoulder")
    }
    coupled = [{"part": "foot", "axis": 0, "end": 0, "with": ["shin", 0], **ankle_by_knee(found)}]
    for part, axis, end, other, across, at, published in COUPLED:
        known = (
            {"at": at, "reach": published}
            if published
            else reach_by(found, part, axis, end, other, across, at)
        )
        coupled.append({"part": part, "axis": axis, "end": end, "with": [other, across], **known})
    joints = shares(table)
    print(joints)
    header = {"database": DATABASE, "frames": len(table.rotations), "performers": len(set(table.performers))}
    root = Path(__file__).parents[1]
    lines = [f"  {json.dumps(part)}: {json.dumps(each)}" for part, each in parts.items()]
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in header.items())
    text += (
        f',\n"shares": {json.dumps(joints)},\n"coupled": [\n  '
        + ",\n  ".join(json.dumps(each) for each in coupled)
        + '\n],\n"parts": {\n'
        + ",\n".join(lines)
        + "\n}"
    )
    (root / "src/poise/skeleton/ranges.json").write_text(f"{{\n{text}\n}}\n", "utf-8")
    print("\n".join(page_table(parts)))
    print("\n".join(coupled_table(coupled)))
    print(f"ROC area of ends broken by {BROKEN:.0f} degrees: {roc(table):.3f}")


def angles_of(table: PoseTable) -> dict[str, dict[str, Array]]:
    """Per part, the angles of all frames (both sides, mirrored), their performers, and both knees' bends there."""
    rows: dict[str, list[Array]] = defaultdict(list)
    who: dict[str, list[str]] = defaultdict(list)
    knees: dict[str, list[Array]] = defaultdict(list)
    quiet: dict[str, list[Array]] = defaultdict(list)
    for clip in range(len(table.clips)):
        motion = motion_of(table, clip, every=EVERY)
        skeleton = motion.skeleton.with_roles(left_hand="LeftFingerBase", right_hand="RightFingerBase")
        world = world_transforms(skeleton, motion.root_positions, motion.rotations)[1]
        own = measured(skeleton, world)
        speed = (
            np.linalg.norm(np.gradient(motion.root_positions, axis=0), axis=1) * RATE / EVERY
            if len(world) > 1
            else np.full(len(world), np.inf)
        )
        bends = [own["shin", side][:, 0] for side in ("left", "right")]
        hips = [np.abs(own["thigh", side]).max(axis=1) for side in ("left", "right")]
        still = (np.max([*bends, *hips], axis=0) < STILL) & (speed < 0.15)
        for (part, side), angles in own.items():
            rows[part].append(angles)
            who[part] += [str(table.performers[clip])] * len(angles)
            knees[part].append(own["shin", side][:, 0] if side else np.zeros(len(angles)))
            quiet[part].append(still)
    return {
        part: {
            "angles": np.concatenate(rows[part]), "who": np.array(who[part]),
            "knee": np.concatenate(knees[part]), "quiet": np.concatenate(quiet[part]),
        }
        for part in MOVEMENTS
    }  # fmt: skip


def roc(table: PoseTable) -> float:
    """How well the largest excess over a range separates recorded poses from ones with an end broken by `BROKEN`.

    Spine, neck and the turn of the feet are measured from where a performer stands quietly.
    """
    random, frames, whose = np.random.default_rng(0), list[Array](), list[str]()
    for clip in range(len(table.clips)):
        motion = motion_of(table, clip, every=SPARSE)
        skeleton = motion.skeleton.with_roles(left_hand="LeftFingerBase", right_hand="RightFingerBase")
        own = measured(skeleton, world_transforms(skeleton, motion.root_positions, motion.rotations)[1])
        frames.append(np.stack(list(own.values()), axis=1))
        whose += [str(table.performers[clip])] * len(motion)
    angles, who, names = np.concatenate(frames), np.array(whose), list(own)
    legs = [number for number, (part, _) in enumerate(names) if part in ("thigh", "shin")]
    still = np.abs(angles[:, legs]).max(axis=(1, 2)) < STILL
    for name in np.unique(who):
        quiet = still & (who == name)
        zero = np.median(angles[quiet if quiet.sum() >= 10 else still], axis=0)
        for number, (part, _) in enumerate(names):
            axes = [1.0, 1.0, 1.0] if part in ZEROED else [0.0, 1.0, 1.0] if part == "foot" else [0.0] * 3
            angles[who == name, number] -= zero[number] * axes
    broken, over = angles.copy(), excess_of(skeleton, angles)
    ends = np.argwhere(np.isfinite(over[0]))
    for pose, left in zip(broken, over, strict=True):
        part, axis, end = ends[random.integers(len(ends))]
        pose[part, axis] += (BROKEN - left[part, axis, end]) * (2 * end - 1)
    worst, beyond = over.max(axis=(1, 2, 3)), excess_of(skeleton, broken).max(axis=(1, 2, 3))
    print(
        f"{len(worst):,} poses of {len(set(whose))} performers; over 10 degrees: {np.mean(worst > 10.0):.1%}"
    )
    return roc_area(-worst, -beyond)


def of_performers(part: str, found: dict[str, Array]) -> list[tuple[Array, Array]]:
    """Angles from the performer's zeros and knee bends, of every performer with enough frames."""
    bounds = np.array([pair or (-180.0, 180.0) for pair in PUBLISHED[part]])
    everyone = np.median(found["angles"][found["quiet"]], axis=0)
    seen = []
    for name in np.unique(found["who"]):
        own = found["who"] == name
        angles = found["angles"][own]
        if part in ZEROED:
            quiet = found["quiet"][own]
            angles = angles - (np.median(angles[quiet], axis=0) if quiet.sum() >= 30 else everyone)
        sound = np.all((angles > bounds[:, 0] - MISTAKE) & (angles < bounds[:, 1] + MISTAKE), axis=1)
        if sound.sum() > 200:
            seen.append((angles[sound], found["knee"][own][sound]))
    return seen


def learned_range(part: str, found: dict[str, Array]) -> list[list[float]]:
    ends = np.array([np.percentile(angles, ENDS, axis=0) for angles, _ in of_performers(part, found)])
    lower, upper = (
        np.percentile(ends[:, 0], PERFORMERS[0], axis=0),
        np.percentile(ends[:, 1], PERFORMERS[1], axis=0),
    )
    return np.round(np.stack([lower, upper], axis=1)).tolist()


def ankle_by_knee(found: dict[str, dict[str, Array]]) -> dict[str, list[float]]:
    """How far ankles bend up by the bend of the knee: the median performer's shares of what they reach at most."""
    performers, reached = of_performers("foot", found["foot"]), []
    for low, high in itertools.pairwise(KNEES):
        own = [angles[(knee >= low) & (knee < high), 0] for angles, knee in performers]
        reached.append(-float(np.median([np.percentile(each, ENDS[0]) for each in own if len(each) > 200])))
    shares = np.maximum.accumulate(reached) / max(reached)
    return {"at": [knee + 7.5 for knee in KNEES[:-1]], "reach": np.round(-LOADED * shares).tolist()}


def reach_by(
    found: dict[str, dict[str, Array]],
    part: str,
    axis: int,
    end: int,
    other: str,
    across: int,
    knots: Sequence[int],
) -> dict[str, list[float]]:
    """How far nine performers of ten reach between each two knots of another angle, and a little more."""
    at, reach = list[float](), list[float]()
    angles, whose, turned = found[part]["angles"], found[part]["who"], found[other]["angles"][:, across]
    bounds = np.array([pair or (-180.0, 180.0) for pair in PUBLISHED[part]])
    sound = np.all((angles > bounds[:, 0] - MISTAKE) & (angles < bounds[:, 1] + MISTAKE), axis=1)
    for low, high in itertools.pairwise(knots):
        here = sound & (turned >= low) & (turned < high)
        own = [angles[here & (whose == who), axis] for who in np.unique(whose)]
        ends = [np.percentile(each, ENDS[end]) for each in own if len(each) > FEWEST]
        if len(ends) >= ENOUGH:
            at.append((low + high) / 2)
            reach.append(float(np.round(np.percentile(ends, PERFORMERS[end]) + MORE * (2 * end - 1))))
    return {"at": at, "reach": reach}


def shares(table: PoseTable) -> dict[str, list[list[float]]]:
    """What each joint of the spine and the neck does, about its mean rotation; all together turn as far as people."""
    spaces = UniversalPrior.of_people().space
    found: dict[str, list[list[float]]] = {}
    for part, names in CHAINS.items():
        ranges = {}
        for name in names:
            joint = table.joints.index(name)
            turns = rotations.quaternion_from_expmap(table.rotations[::EVERY, joint].astype(np.float64))
            reference = rotations.conjugate(spaces.references[spaces.skeleton.index(name)])
            angles = np.degrees(rotations.expmap_from_quaternion(rotations.multiply(reference, turns)))
            who = table.performers[table.clip_of[::EVERY]]
            ends = [
                np.percentile(angles[who == one], ENDS, axis=0)
                for one in np.unique(who)
                if sum(who == one) > 200
            ]
            lower, upper = (
                np.percentile(ends, PERFORMERS[0], axis=0)[0],
                np.percentile(ends, PERFORMERS[1], axis=0)[1],
            )
            even = 0.5 * (upper - lower)  # left and right are alike
            low, high, tilt = lower[0] - MORE, upper[0] + MORE, even[2] + MORE
            ranges[name] = np.array([[low, high], [-even[1], even[1]], [-tilt, tilt]])
        scale = PUBLISHED[part][1][1] / sum(each[1, 1] for each in ranges.values())  # type: ignore[index]
        for name, each in ranges.items():
            each[1] *= scale
            found[name] = np.round(each, 1).tolist()
    return found


def limit(published: tuple[Range | None, ...], learned: list[list[float]]) -> list[list[float]]:
    return [
        [max(min(own[0], pair[0]), pair[0] - MORE), min(max(own[1], pair[1]), pair[1] + MORE)]
        if pair
        else own
        for pair, own in zip(published, learned, strict=True)
    ]


def page_table(parts: dict[str, dict[str, object]]) -> list[str]:
    rows = ["| part | axis | learned | published | limit |", "|---|---|---|---|---|"]
    for part, each in parts.items():
        for number, axis in enumerate(("left", "up", "forward")):
            cells = [each[key][number] if each[key] else None for key in ("learned", "published", "limit")]  # type: ignore[index]
            words = [f"{cell[0]:.0f} to {cell[1]:.0f}" if cell else "" for cell in cells]
            rows.append(f"| {part.replace('_', ' ')} | {axis} | {' | '.join(words)} |")
    return rows


def coupled_table(coupled: list[dict[str, Any]]) -> list[str]:
    """A table for all ends with the same knots: a row for each knot, a column for each end."""
    axes, ends, rows = ("left", "up", "forward"), ("least", "most"), list[str]()
    for (other, across), alike in itertools.groupby(coupled, key=lambda each: each["with"]):
        own = list(alike)
        what = [f"{each['part']}, {axes[each['axis']]}, {ends[each['end']]}" for each in own]
        rows += ["", "| " + " | ".join([f"{other}, {axes[across]}", *what]).replace("_", " ") + " |"]
        rows.append("|---" * (1 + len(own)) + "|")
        known = [dict(zip(each["at"], each["reach"], strict=True)) for each in own]
        for at in sorted({at for each in own for at in each["at"]}):
            cells = [f"{each[at]:.0f}" if at in each else "" for each in known]
            rows.append("| " + " | ".join([f"{at:.0f}", *cells]) + " |")
    return rows


if __name__ == "__main__":
    main()
