"""Feeds damaged scripts, constraints, mappings, cameras, views, rhythms, paths and photos to Poise.

    python fuzz/fuzz_scripts.py [--count 20000] [--seed 0]

What is taken is used: a script is planned, constraints are solved, cameras project.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from fuzz_models import check
from mutations import DEPTHS, Mutator, changed_json
from PIL import Image
from running import Case, parser, run

from poise import performer
from poise.apps.animate import read_animate_script
from poise.apps.dragging import displacements, read_path
from poise.apps.keyframing import plan
from poise.apps.keyframing_script import MODEL, read_script
from poise.apps.posing import read_constraints
from poise.bounds import LONGEST_TEXT
from poise.capture.matching import read_hues, read_layout
from poise.capture.photos import read_photo, read_views
from poise.formats import write
from poise.formats.camera_file import read_camera
from poise.priors.dynamics.sequences import given_rhythm, read_rhythms, rhythm_of, rhythm_text
from poise.priors.gaussian import GaussianPrior
from poise.vision.rig import load_rig

WALK = performer.act("walk", seconds=1.5, fps=30)
POINTS = np.array([[0.0, 1.0, 0.0], [0.3, 0.2, -0.4], [0.0, 0.0, 0.0]])
FEW = 2000  # frames of a script that are examined
CAMERA = """
size = [64, 48]
fov = 40.0
position = [2.0, 1.4, 3.5]
target = [0.0, 0.95, 0.0]
"""
OTHER_CAMERA = """
size = [64, 48]
focal = 50.0
centre = [30, 20]
rotation = [[1, 0, 0], [0, -1, 0], [0, 0, -1]]
translation = [0.0, 1.0, 3.0]
"""
KEYFRAMES = """
duration = 1.0
fps = 30
floor = true
smoothness = 2.0
[handles.right_hand]
ease = "in-out"
tolerance = 0.01
keys = [
  { time = 0.0, at = [-0.2, 0.9, 0.2] },
  { time = 0.8, at = [-0.6, 1.4, 0.1], tangent = [0, 0, 2], rotation = [0, 90, 0] },
]
[handles.head]
keys = [{ time = 0.2, rotation = [1.0, 0.0, 0.0, 0.0] }]
[[pins]]
handle = "left_foot"
from = 0.0
to = 1.0
at = [0.1, 0.07, 0.0]
[[style]]
time = 0.5
name = "model"
over = 0.2
[[constraints]]
kind = "look-at"
handle = "head"
target = [0.0, 1.6, 5.0]
"""
ANIMATION = """
duration = 1.0
fps = 60
floor = 0.0
[[contacts]]
handle = "left_foot"
from = 0.2
to = 0.9
at = [0.1, 0.02, 0.4]
[handles.right_hand]
keys = [{ time = 0.0, at = [-0.2, 0.9, 0.2] }, { time = 1.0, at = [-0.6, 1.4, 0.1] }]
[[keyframes]]
time = 0.5
clip = "walk.bvh"
frame = 4
"""
CONSTRAINTS = """
[[constraints]]
kind = "position"
handle = "right_hand"
offset = [0.0, 0.1, 0.0]
at = [-0.3, 1.2, 0.4]
priority = 2
[[constraints]]
kind = "look-at"
handle = "head"
target = [0.0, 1.6, 5.0]
tolerance = 0.1
[[constraints]]
kind = "orientation"
handle = "left_hand"
rotation = [10, 20, 30]
weight = 4.0
[[constraints]]
kind = "projection"
handle = "left_foot"
camera = "camera.toml"
pixel = [30, 40]
"""
MAPPING = """
[markers]
LWRIST = "left_hand"
STICK = { joint = "right_hand", offset = [0.0, -0.4, 0.0] }
[joints]
M17 = "right_foot"
[colours]
LWRIST = "red"
STICK = 0.33
"""
RIG = """
[[camera]]
name = "one"
size = [64, 48]
matrix = [[50.0, 0.0, 32.0], [0.0, 50.0, 24.0], [0.0, 0.0, 1.0]]
distortion = [0.1, 0.0, 0.0, 0.0, 0.0]
rotation = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
translation = [0.0, 1.0, 3.0]
"""
VIEWS = """
[[views]]
photo = "photo.png"
camera = "camera.toml"
points = { left_hand = [41, 23], right_foot = [38, 40] }
"""
PATH = "time,x,y,z\n0.0,0.1,1.0,0.2\n0.4,0.3,1.2,0.2\n1.0,0.3,0.9,-0.1\n"

Use = Callable[[Path], None]


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    options = parser(__doc__, count=20_000).parse_args()
    kinds = _kinds()
    beside = _beside()
    seeds = tuple(content for _, _, content in kinds.values())
    cases: dict[str, Case] = {
        kind: partial(_case, use, name, content, beside, seeds)
        for kind, (use, name, content) in kinds.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        for use, name, content in kinds.values():  # the seeds are sound, and what they need is compiled
            _write(Path(folder), beside | {name: content})
            use(Path(folder) / name)
    return 1 if run(cases, options) else 0


def _kinds() -> dict[str, tuple[Use, str, bytes]]:
    """The reader and user of each kind of file, its name, and a valid one."""
    prior = GaussianPrior.learn([WALK], clusters=3)
    rhythm = rhythm_text([rhythm_of(WALK, name="walk")[0]])
    photo = _photo()
    texts = {
        "keyframes": (partial(_plan, prior), KEYFRAMES),
        "animation": (partial(_animate, prior), ANIMATION),
        "constraints": (lambda path: check(prior, read_constraints(path)), CONSTRAINTS),
        "mapping": (_map, MAPPING),
        "camera": (_project, CAMERA),
        "other_camera": (_project, OTHER_CAMERA),
        "rig": (_watch, RIG),
        "views": (read_views, VIEWS),
        "rhythm": (lambda path: given_rhythm(read_rhythms(path), ["walk"], [WALK]), rhythm),
    }
    kinds = {kind: (use, f"{kind}.toml", text.encode()) for kind, (use, text) in texts.items()}
    kinds["path"] = (_drag, "path.csv", PATH.encode())
    kinds["png"] = (read_photo, "photo.png", photo["png"])
    kinds["jpeg"] = (read_photo, "photo.jpg", photo["jpeg"])
    return kinds


def _beside() -> dict[str, bytes]:
    """The files that scripts name."""
    with tempfile.TemporaryDirectory() as folder:
        write(WALK, Path(folder) / "walk.bvh")
        clip = (Path(folder) / "walk.bvh").read_bytes()
    return {"walk.bvh": clip, "camera.toml": CAMERA.encode(), "photo.png": _photo()["png"]}


def _photo() -> dict[str, bytes]:
    """A small picture with a focal length, in two formats."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0xA405] = 35
    found = {}
    for kind in ("png", "jpeg"):
        content = io.BytesIO()
        image.save(content, kind, exif=exif)
        found[kind] = content.getvalue()
    return found


# --- use -----------------------------------------------------------------------------------------------------------


def _plan(prior: GaussianPrior, path: Path) -> None:
    script = read_script(path)
    if len(script.times) < FEW and not script.models:
        names, weights = script.weights()
        assert names == [MODEL] or list(names) == [MODEL]
        plan(script, [prior], weights, span=(0, 5))


def _animate(prior: GaussianPrior, path: Path) -> None:
    script = read_animate_script(path)
    if len(script.times) < FEW:
        script.frames(prior.space)


def _map(path: Path) -> None:
    read_hues(path)
    read_layout(path, WALK.skeleton)


def _project(path: Path) -> None:
    assert np.isfinite(read_camera(path).intrinsics).all()


def _watch(path: Path) -> None:
    for camera in load_rig(path).cameras:
        assert np.isfinite(camera.pinhole.intrinsics).all()


def _drag(path: Path) -> None:
    found = displacements(read_path(path), np.zeros((30, 3)), 30.0)
    assert np.isfinite(found).all()


# --- damage --------------------------------------------------------------------------------------------------------


def _case(
    use: Use, name: str, content: bytes, beside: dict[str, bytes], seeds: tuple[bytes, ...],
    generator: np.random.Generator, folder: Path,
) -> None:  # fmt: skip
    name, data = damaged(name, content, seeds, generator)
    _write(folder, beside | {name: data})
    use(folder / name)


def damaged(
    name: str, content: bytes, seeds: tuple[bytes, ...], generator: np.random.Generator
) -> tuple[str, bytes]:
    """A file that is damaged as bytes, as TOML, or as JSON with one value changed."""
    chance = generator.random()
    if not name.endswith(".toml") or chance < 0.4:
        return name, Mutator(generator, seeds)(content)
    if chance < 0.45:
        return name, content + _much(generator)
    text = json.dumps(tomllib.loads(content.decode()))
    for _ in range(int(generator.integers(1, 3))):
        text = changed_json(text, generator, words=WORDS)
    return name.replace(".toml", ".json"), text.encode()


WORDS = (
    "right_hand",
    "position",
    "distance",
    "centre-of-mass",
    "plane",
    "walk.bvh",
    "camera.toml",
    "nobody",
    "bezier",
)


def _much(generator: np.random.Generator) -> bytes:
    """Deeply nested tables or lists, and texts that are too long."""
    depth = int(generator.choice(DEPTHS))
    choices = (
        lambda: b"\n[" + b".".join([b"a"] * depth) + b"]\n",
        lambda: b"\nx = " + b"[" * depth + b"]" * depth + b"\n",
        lambda: b"\n" + b"x = {" * depth + b"}" * depth + b"\n",
        lambda: b"\n" + b"".join(b"k%d = 1\n" % number for number in range(depth)),
        lambda: b"\nx = " + b"9" * depth + b"\n",
        lambda: b"\n# " + b"x" * (LONGEST_TEXT if generator.random() < 0.05 else depth) + b"\n",
    )
    return choices[int(generator.integers(len(choices)))]()


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
