"""Read files that name other files: python fuzz/fuzz_references.py --count 5000 --seed 0

A received folder names a secret beside it: by a path, a link, a pipe or an address, at random spellings. Whatever
becomes of the file, the secret must not be in what is made of it, and nothing may wait for a pipe.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
from running import Case, parser, run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import poise
from fbx_text import fbx_text
from poise.apps.animate import read_animate_script
from poise.apps.keyframing_script import read_script
from poise.capture.photos import read_views
from poise.errors import PoiseError
from poise.formats.named_files import RefusedNameError, named_bytes
from poise.formats.registry import glb_of_character
from poise.performer import act

Random = np.random.Generator
SECRET = b"\x89PNG\r\n\x1a\n" + b"somebody's passport " * 40
WALK = act("walk", seconds=0.2, fps=30)


def main() -> int:
    """Run the fuzzer; return 1 if a secret was read, or anything else failed."""
    return 1 if run(cases_of(), parser(__doc__, count=5_000).parse_args()) else 0


def cases_of() -> dict[str, Case]:
    """A case for each kind of file that names others."""
    return {kind: partial(_case, kind) for kind in KINDS}


def _case(kind: str, random: Random, folder: Path) -> None:
    secret, received = folder / "secret", folder / "received"
    for place in (secret, received, received / "maps"):
        place.mkdir()
    (secret / "passport.png").write_bytes(SECRET)
    (received / "coat.png").write_bytes(b"\x89PNG\r\n\x1a\n its own")
    (received / "linked.png").symlink_to(secret / "passport.png")
    (received / "door").symlink_to(secret)
    os.mkfifo(received / "pipe.png")
    try:
        made = KINDS[kind](received, name_of(random, secret))
    finally:
        (received / "pipe.png").unlink()  # a copy of a failing case would wait for it
    assert SECRET[8:40] not in made, "the secret was read"


def name_of(random: Random, secret: Path) -> str:
    """A name of the secret, or of something else that must not be opened, in a random spelling."""
    name = str(
        random.choice(
            ["../secret/passport.png", f"{secret}/passport.png", "linked.png", "door/passport.png", "pipe.png",
             "/etc/passwd", "/proc/self/environ", "/dev/stdin", "http://127.0.0.1:9/x.png",
             "coat.png/../../secret/passport.png"]
        )
    )  # fmt: skip
    for _ in range(int(random.integers(0, 4))):
        name = _SPELLINGS[int(random.integers(len(_SPELLINGS)))](name)
    return name


_SPELLINGS = (
    lambda name: "file://" + name,
    lambda name: name.replace("/", "\\"),
    lambda name: name.replace("..", "%2e%2e"),
    lambda name: name.replace("/", "%2f"),
    lambda name: "./" + name,
    lambda name: "maps/../" + name,
    lambda name: name.replace("/", "//"),
    lambda name: name + "?a#b",
    lambda name: " " + name,
    lambda name: name.upper(),
    lambda name: re.sub("p", "\uff50", name),
)


# --- the kinds -----------------------------------------------------------------------------------------------------


def _gate(folder: Path, name: str) -> bytes:
    try:
        return bytes(named_bytes(folder, name))
    except RefusedNameError as error:  # readers say in which file the name is
        raise PoiseError(str(error)) from error


def _gltf(folder: Path, name: str) -> bytes:
    text = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"name": "a", "skin": 0}],
        "skins": [{"joints": [0], "inverseBindMatrices": 0}], "images": [{"uri": name}],
        "buffers": [{"byteLength": 64, "uri": name}], "bufferViews": [{"buffer": 0, "byteLength": 64}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 1, "type": "MAT4"}],
    }  # fmt: skip
    (folder / "hero.gltf").write_text(json.dumps(text))
    poise.read(folder / "hero.gltf")
    return bytes(glb_of_character(folder / "hero.gltf"))


def _fbx(folder: Path, name: str) -> bytes:
    (folder / "hero.fbx").write_text(fbx_text(mesh=True, picture=name))
    return bytes(glb_of_character(folder / "hero.fbx"))


def _usd(folder: Path, name: str, *, as_layer: bool = False) -> bytes:
    file = poise.write(WALK, folder / "hero.usda", mannequin=False)
    text = file.read_text()
    if as_layer:
        text = text.replace("(\n", f"(\n    subLayers = [@{name}@]\n", 1)
    else:
        at = text.index("{", text.index('def SkelRoot "Character"')) + 1
        text = text[:at] + f'\ndef "R" (references = @{name}@) {{ }}\n' + text[at:]
    file.write_text(text)
    return bytes(glb_of_character(file))


def _usdz(folder: Path, name: str) -> bytes:
    plain = poise.write(WALK, folder / "plain.usda", mannequin=False).read_text()
    with zipfile.ZipFile(folder / "hero.usdz", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("hero.usda", plain.replace("(\n", f"(\n    subLayers = [@{name}@]\n", 1))
    return bytes(glb_of_character(folder / "hero.usdz"))


def _text(folder: Path, name: str, *, script: str, read: object) -> bytes:
    path = folder / "script.toml"
    path.write_text(script.format(name=json.dumps(name)))
    return repr(read(path)).encode()  # type: ignore[operator]


KINDS = {
    "gate": _gate,
    "gltf": _gltf,
    "fbx": _fbx,
    "usd reference": _usd,
    "usd layer": partial(_usd, as_layer=True),
    "usdz": _usdz,
    "animation": partial(
        _text, script="duration = 1.0\n[[keyframes]]\ntime = 0.0\nclip = {name}\n", read=read_animate_script
    ),
    "keyframes": partial(
        _text, script='duration = 1\n[styles]\na = {name}\n[[style]]\nname = "a"\n', read=read_script
    ),
    "pose keys": partial(
        _text,
        script="[[poses]]\ntime = 0\npose = {name}\n[[poses]]\ntime = 1\npose = {name}\n",
        read=read_script,
    ),
    "views": partial(_text, script='[[views]]\nphoto = {name}\ncamera = "coat.png"\n', read=read_views),
}


if __name__ == "__main__":
    sys.exit(main())
