"""The humanoid map of VRM avatars and VRMA animations: the node of each bone.

VRM 0.0 (VRM Consortium), VRMC_vrm-1.0 and VRMC_vrm_animation-1.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from poise.formats.gltf.container import Container, Json

_TRUNK = {"hips": "pelvis", "spine": "spine", "neck": "neck", "head": "head"}
_LIMBS = {
    "Shoulder": "shoulder", "UpperArm": "upper_arm", "LowerArm": "forearm", "Hand": "hand",
    "UpperLeg": "thigh", "LowerLeg": "shin", "Foot": "foot", "Toes": "toes",
}  # fmt: skip
ROLE_OF_BONE = _TRUNK | {
    f"{side}{bone}": f"{side}_{role}" for side in ("left", "right") for bone, role in _LIMBS.items()
}


def humanoid_roles(file: Container, names: Mapping[int, str]) -> dict[str, str]:
    """Role to joint name from the file's humanoid map; empty if there is none."""
    nodes = {bone: node for bone, node in _bones(file).items() if node in names}
    found = {ROLE_OF_BONE[bone]: names[node] for bone, node in nodes.items() if bone in ROLE_OF_BONE}
    chest = next((nodes[bone] for bone in ("upperChest", "chest") if bone in nodes), None)
    return found if chest is None else found | {"chest": names[chest]}


def _bones(file: Container) -> dict[str, int]:
    extensions = file.record("extensions", file.json)
    count = len(file.objects("nodes"))
    old = file.objects("humanBones", file.record("humanoid", file.record("VRM", extensions)))
    listed: list[tuple[object, Json]] = [(entry.get("bone"), entry) for entry in old]
    for name in ("VRMC_vrm", "VRMC_vrm_animation"):
        bones = file.record("humanBones", file.record("humanoid", file.record(name, extensions)))
        listed += [(bone, file.record(bone, bones)) for bone in bones]
    return {
        bone: file.integer("node", entry, below=count)
        for bone, entry in listed
        if isinstance(bone, str) and "node" in entry
    }
