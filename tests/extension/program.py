"""Run by tests/test_extending.py in a process of its own, with a plugin installed: its toys in every command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import poise
from poise.cli import main
from poise.motion.virtual_markers import virtual_markers
from poise.priors.model_file import load
from poise.solvers.constraints import CONSTRAINTS, Position
from poise.solvers.solve import solve

CONSTRAINTS_TOML = '[[constraints]]\nkind = "level"\nfirst = "left_hand"\nsecond = "right_hand"\n'


def call(*arguments: object, code: int = 0) -> None:
    assert main([str(argument) for argument in arguments]) == code, arguments


def hands(motion: poise.Motion) -> np.ndarray:
    from poise.motion.world import joint_positions

    return joint_positions(motion)[:, [motion.skeleton.index(name) for name in ("left_hand", "right_hand")]]


# A prior, learned with an option of its own, kept in a file, and refused what it does not take.
call("act", "walk", "--seconds", 2, "--fps", 30, "-o", "walk.bvh")
call("learn", "mine.poise", "walk.bvh", "--kind", "average", "--softness", 0.2)
call("learn", "no.poise", "walk.bvh", "--kind", "average", "--softness", -1, code=2)
call("learn", "no.poise", "walk.bvh", "--kind", "average", "--clusters", 3, code=2)
prior = load("mine.poise")
assert prior.kind == "average"

# A constraint, in Python, in poses and in keyframes.
level = CONSTRAINTS["level"]("left_hand", "right_hand")
assert solve(prior, [Position("left_hand", (0.3, 1.2, 0.3)), level]).reached
Path("level.toml").write_text(CONSTRAINTS_TOML)
call(
    "pose", "mine.poise", "--handle", "left_hand=0.3,1.2,0.3", "--constraints", "level.toml", "-o", "pose.bvh"
)
posed = hands(poise.read("pose.bvh", keep_first=True))[0]
assert np.abs(posed[0] - [0.3, 1.2, 0.3]).max() < 2e-3
assert abs(posed[0, 1] - posed[1, 1]) < 2e-3
script = "duration = 0.3\nfps = 10\n[handles.left_hand]\nkeys = [{ time = 0, at = [0.3, 1.1, 0.3] }, "
Path("keys.toml").write_text(script + "{ time = 0.3, at = [0.3, 1.3, 0.3] }]\n" + CONSTRAINTS_TOML)
call("keyframe", "mine.poise", "keys.toml", "-o", "keys.bvh")
keyed = hands(poise.read("keys.bvh", keep_first=True))
assert np.abs(keyed[:, 0, 1] - keyed[:, 1, 1]).max() < 5e-3
assert np.ptp(keyed[:, 0, 1]) > 0.15

# A term of a model of motion: the root keeps its height, though the hands ask for a crouch, or a rise.
call("learn", "gliding.poise", "walk.bvh", "--kind", "gliding", "--softness", 0.2)
Path("rise.toml").write_text(
    "duration = 1.0\nfps = 10\n[handles.left_hand]\nkeys = [{ time = 0, at = [0.3, 0.9, 0.3] }, "
    "{ time = 1, at = [0.3, 1.3, 0.3] }]\n" + CONSTRAINTS_TOML
)
heights = []
for model in ("mine", "gliding"):
    call("animate", f"{model}.poise", "rise.toml", "-o", f"{model}.bvh")
    risen = poise.read(f"{model}.bvh", keep_first=True)
    assert np.abs(hands(risen)[[0, -1], 0] - [[0.3, 0.9, 0.3], [0.3, 1.3, 0.3]]).max() < 2e-3
    heights.append(np.ptp(risen.root_positions[:, 1]))
assert heights[1] < 0.02 < 0.1 < heights[0], heights

# A format of markers, written, read, listed, and solved for a body.
walk = poise.read("walk.bvh")
assert isinstance(walk, poise.Motion)
poise.write(virtual_markers(walk), "take.points")
assert poise.read("take.points").points.shape == (len(walk), 41, 3)
call("info", "take.points")
call("markers", "solve", "take.points", "-o", "solved.bvh")
assert len(poise.read("solved.bvh", keep_first=True)) == len(walk)
call("markers", "solve", "take.points", "--style", "mine.poise", "-o", "styled.bvh")
whole = virtual_markers(walk)
few = [whole.labels.index(label) for label in ("LFHD", "LWRA", "RWRA", "LANK", "RANK")]
poise.write(
    replace(whole, labels=tuple(whole.labels[k] for k in few), points=whole.points[:, few]), "few.points"
)
call("perform", "mine.poise", "few.points", "-o", "few.bvh")
for file in ("styled.bvh", "few.bvh"):
    assert len(poise.read(file, keep_first=True)) == len(walk)
Path("bad.points").write_text("{}")
call("info", "bad.points", code=2)

# A protocol with an option of its own, and the prior as a method of others.
clips = ("--train", "walk.bvh", "--test", "keys.bvh")
call(
    "evaluate",
    "sway",
    "--train",
    "keys.bvh",
    "--test",
    "walk.bvh",
    "--joint",
    "pelvis",
    "--json",
    "sway.json",
)
assert json.loads(Path("sway.json").read_text())["rows"][0]["sway_cm"] > 10
call("evaluate", "sway", "--stride", 2, code=2)
call("evaluate", "handles", *clips, "--methods", "average", "--json", "handles.json")
assert json.loads(Path("handles.json").read_text())["rows"][0]["reached_10mm"] == 1.0

call("act", "walk", "--seconds", 1, "--fps", 30, "--seed", 4, "-o", "other.bvh")
clips = ("--train", "walk.bvh", "--test", "other.bvh")
call("evaluate", "animate", *clips, "--methods", "gliding", "--json", "feet.json")
assert json.loads(Path("feet.json").read_text())["rows"][0]["handle_max_mm"] < 1.0

# The studio learns it and poses with it.
from poise.studio import messages  # noqa: E402
from poise.studio.models import ModelStore  # noqa: E402

models = ModelStore()
entry = models.add(prior, "mine")
assert entry.described().kind == "average"
assert entry.body.joints
assert messages.Learn(name="mine", kind="average", uploads=["x"]).kind == "average"
print("everything worked")
