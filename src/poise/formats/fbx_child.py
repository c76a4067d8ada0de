"""The process in which `fbx` reads a file: `fbx_child.py FILE OUT.npz [ANIMATION]`, with nothing of Poise imported.

ufbx 0.0.5 for Python crashes when one of its objects is dropped before its scene is. So all of them are kept, and the
process ends without tidying up.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import numpy as np
import ufbx

_MOST = 4_000_000  # frames times joints
_CARRIERS = (None, int(ufbx.ElementType.EMPTY))  # of a body without bones: what else a node may carry
_kept: list[Any] = []


def _keep(value: Any) -> Any:
    _kept.append(value)
    return value


def _listed(values: Any) -> list[Any]:
    return [_keep(_keep(values)[number]) for number in range(len(values))]


class _Scene:
    """The nodes of a file in metres, Y up, those of one body chosen as joints."""

    def __init__(self, file: str) -> None:
        self.scene = _keep(
            ufbx.load_file(
                file, ignore_geometry=True, ignore_embedded=True, target_unit_meters=1.0,
                target_axes=ufbx.axes_right_handed_y_up,
                inherit_mode_handling=ufbx.InheritModeHandling.COMPENSATE,
            )
        )  # fmt: skip
        self.nodes = sorted(_listed(self.scene.nodes), key=lambda node: node.node_depth)
        number = {node.typed_id: k for k, node in enumerate(self.nodes)}
        above = [_keep(node.parent) for node in self.nodes]
        self.parents = [-1 if parent is None else number[parent.typed_id] for parent in above]
        clusters = [(one, _keep(one.bone_node)) for one in _listed(self.scene.skin_clusters)]
        self.bound = {
            number[bone.typed_id]: _matrix(one.bind_to_world) for one, bone in clusters if bone is not None
        }
        self.stacks = {
            one.name: one for one in _listed(self.scene.anim_stacks)
            if one.time_end > one.time_begin and any(len(_keep(x.anim_values)) for x in _listed(one.layers))
        }  # fmt: skip
        self.joints, self.joint_parents = self._body()

    def _body(self) -> tuple[list[int], list[int]]:
        """The largest tree of bones, parents first, and which of them is above which."""
        bones = {*self.bound, *(k for k, node in enumerate(self.nodes) if _keep(node.bone) is not None)}
        if not bones:
            bones = {
                k for k, node in enumerate(self.nodes)
                if not node.is_root and (_keep(node.attrib) is None or node.attrib_type in _CARRIERS)
            }  # fmt: skip
        above, top = [-1] * len(self.nodes), list(range(len(self.nodes)))
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                above[node] = parent if parent in bones else above[parent]
                top[node] = top[above[node]] if above[node] >= 0 else node
        if not bones:
            sys.exit("refused it holds no skeleton: neither bones nor nodes that could be bones")
        body = Counter(top[bone] for bone in bones).most_common(1)[0][0]
        chosen = [bone for bone in sorted(bones) if top[bone] == body]
        number = {joint: k for k, joint in enumerate(chosen)}
        return chosen, [number.get(above[joint], -1) for joint in chosen]

    def worlds(self, anim: Any = None, at: float = 0.0) -> Any:
        """Where the joints are, at rest or at a time of an animation."""
        found = np.empty((len(self.nodes), 4, 4))
        for k, (node, parent) in enumerate(zip(self.nodes, self.parents, strict=True)):
            own = _local(node.local_transform if anim is None else ufbx.evaluate_transform(anim, node, at))
            found[k] = own if parent < 0 else found[parent] @ own
        return found[self.joints]

    def frames(self, stack: Any, fps: float) -> Any:
        count = round((stack.time_end - stack.time_begin) * fps) + 1
        if not 0 < count * len(self.nodes) < _MOST:
            sys.exit(f"refused {count} frames of {len(self.nodes)} nodes are more than Poise takes")
        anim = _keep(stack.anim)
        return np.stack([self.worlds(anim, stack.time_begin + frame / fps) for frame in range(count)])


def _main(file: str, out: str, wanted: str | None = None) -> None:
    try:
        rig = _Scene(file)
    except ufbx.UfbxError as error:
        sys.exit(f"refused ufbx cannot read it: {type(error).__name__} {error}".strip())
    if wanted and wanted not in rig.stacks:
        sys.exit(f"refused no animation {wanted!r}; valid: {', '.join(rig.stacks) or '(the file has none)'}")
    name = next(iter(rig.stacks), "") if wanted is None else wanted
    settings, rest = _keep(rig.scene.settings), rig.worlds()
    fps, metres = float(settings.frames_per_second), float(settings.original_unit_meters)
    np.savez(
        out, names=np.array(_unique([rig.nodes[joint].name for joint in rig.joints])),
        parents=np.array(rig.joint_parents), fps=fps, metres=metres, units=f"{metres:g} m",
        bind=np.stack([rig.bound.get(joint, rest[k]) for k, joint in enumerate(rig.joints)]),
        frames=rig.frames(rig.stacks[name], fps) if name else rest[None],
        animations=np.array(list(rig.stacks)), warnings=np.array([], dtype=str),
    )  # fmt: skip


def _matrix(columns: Any) -> Any:
    found = np.eye(4)
    found[:3] = np.array([tuple(column) for column in columns]).T
    return found


def _local(moved: Any) -> Any:
    """A matrix of a translation, a rotation (xyzw) and a scale."""
    x, y, z, w = moved.rotation
    turn = np.array([
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ])  # fmt: skip
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = turn * np.array(tuple(moved.scale)), tuple(moved.translation)
    return found


def _unique(names: list[str]) -> list[str]:
    found: list[str] = []
    for number, name in enumerate(names):
        plain = name or f"node_{number}"
        found.append(plain if plain not in found else f"{plain}_{number}")
    return found


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except SystemExit as refused:
        print(refused, file=sys.stderr, flush=True)
    os._exit(0)
