"""The process in which `fbx` reads a file: `fbx_child.py FILE OUT.npz [ANIMATION [meshes]]`, without Poise.

ufbx 0.0.5 for Python crashes if one of its objects is freed before its scene. So all of them are kept, and the process
ends without cleaning up.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import ufbx
from named_files import RefusedNameError, named_bytes

_MOST = 4_000_000  # frames times joints
_CARRIERS = (None, int(ufbx.ElementType.EMPTY))  # for a body without bones: other attributes a node may have
_kept: list[Any] = []


def _keep(value: Any) -> Any:
    _kept.append(value)
    return value


def _listed(values: Any) -> list[Any]:
    return [_keep(_keep(values)[number]) for number in range(len(values))]


class _Scene:
    """The nodes of a file in metres, Y up, those of one body chosen as joints."""

    def __init__(self, file: str, *, meshes: bool) -> None:
        self.scene = _keep(
            ufbx.load_file(
                file, ignore_geometry=not meshes, ignore_embedded=not meshes, target_unit_meters=1.0,
                target_axes=ufbx.axes_right_handed_y_up,
                inherit_mode_handling=ufbx.InheritModeHandling.COMPENSATE,
            )
        )  # fmt: skip
        self.nodes = sorted(_listed(self.scene.nodes), key=lambda node: node.node_depth)
        self.number = number = {node.typed_id: k for k, node in enumerate(self.nodes)}
        above = [_keep(node.parent) for node in self.nodes]
        self.parents = [-1 if parent is None else number[parent.typed_id] for parent in above]
        skins = sorted(_listed(self.scene.skin_deformers), key=lambda skin: len(_keep(skin.clusters)))
        self.bound = {node: _matrix(one.bind_to_world) for skin in skins for one, node in self.carriers(skin)}
        self.stacks = {
            one.name: one for one in _listed(self.scene.anim_stacks)
            if one.time_end > one.time_begin and any(len(_keep(x.anim_values)) for x in _listed(one.layers))
        }  # fmt: skip
        # The largest tree of bones, parents first, and the parent index of each.
        bones = {*self.bound, *(k for k, node in enumerate(self.nodes) if _keep(node.bone) is not None)}
        if not bones:
            bones = {
                k for k, node in enumerate(self.nodes)
                if not node.is_root and (_keep(node.attrib) is None or node.attrib_type in _CARRIERS)
            }  # fmt: skip
        over, top = [-1] * len(self.nodes), list(range(len(self.nodes)))
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                over[node] = parent if parent in bones else over[parent]
                top[node] = top[over[node]] if over[node] >= 0 else node
        if not bones:
            sys.exit("refused it holds no skeleton: neither bones nor nodes that could be bones")
        body = Counter(top[bone] for bone in bones).most_common(1)[0][0]
        self.joints = [bone for bone in sorted(bones) if top[bone] == body]
        place = {joint: k for k, joint in enumerate(self.joints)}
        self.joint_parents = [place.get(over[joint], -1) for joint in self.joints]

    def carriers(self, skin: Any) -> list[tuple[Any, int]]:
        """The clusters of a skin that have a bone, with its index."""
        bones = [(one, _keep(one.bone_node)) for one in _listed(skin.clusters)]
        return [(one, self.number[bone.typed_id]) for one, bone in bones if bone is not None]

    def worlds(self, anim: Any = None, at: float = 0.0) -> Any:
        """World matrices of the joints, at rest or at a time of an animation."""
        found = np.empty((len(self.nodes), 4, 4))
        for k, (node, parent) in enumerate(zip(self.nodes, self.parents, strict=True)):
            moved = node.local_transform if anim is None else ufbx.evaluate_transform(anim, node, at)
            x, y, z, w = moved.rotation
            turn = np.array([
                [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
                [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
                [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
            ])  # fmt: skip
            own = np.eye(4)
            own[:3, :3], own[:3, 3] = turn * np.array(tuple(moved.scale)), tuple(moved.translation)
            found[k] = own if parent < 0 else found[parent] @ own
        return found[self.joints]

    def frames(self, stack: Any, fps: float) -> Any:
        count = round((stack.time_end - stack.time_begin) * fps) + 1
        if not 0 < count * len(self.nodes) < _MOST:
            sys.exit(f"refused {count} frames of {len(self.nodes)} nodes are more than Poise takes")
        anim = _keep(stack.anim)
        return np.stack([self.worlds(anim, stack.time_begin + frame / fps) for frame in range(count)])


class _Clothes:
    """The meshes carried by the joints, in the form of `gltf.dressing`."""

    def __init__(self, rig: _Scene, rest: Any, file: Path) -> None:
        self.rig, self.rest, self.folder = rig, rest, file.parent
        self.joint = {node: k for k, node in enumerate(rig.joints)}
        self.looks: list[dict[str, Any]] = []
        self.pictures: list[bytes] = []
        self.look_of: dict[int, int] = {}

    def arrays(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        meshes = [(mesh, _listed(mesh.skin_deformers)) for mesh in _listed(self.rig.scene.meshes)]
        for mesh, skins in sorted(meshes, key=lambda one: -sum(len(skin.clusters) for skin in one[1])):
            for node in _listed(mesh.instances):
                carried = self._skinned(mesh, skins[0]) if skins else self._attached(mesh, node)
                if carried is None or not len(mesh.faces):
                    continue
                faces, chosen = (
                    np.array(_keep(mesh.faces)),
                    np.array(_keep(mesh.face_material), dtype=np.int64),
                )
                looks = np.array([*map(self._look, _listed(mesh.materials)), -1])
                known = len(chosen) and chosen.max() < len(looks)
                carried["name"], carried["faces"] = (
                    np.array(node.name or mesh.name),
                    faces[:, 1].astype(np.int64),
                )
                carried["looks"] = looks[chosen] if known else np.full(len(faces), -1)
                on_picture = _keep(mesh.vertex_uv)
                if on_picture.exists:
                    places = np.array(_keep(on_picture.values))
                    carried["places"] = places[np.array(_keep(on_picture.indices))]
                found.append(carried)
        flat = {f"{k}.{name}": value for k, one in enumerate(found) for name, value in one.items()}
        pictures = {f"picture.{k}": np.frombuffer(data, np.uint8) for k, data in enumerate(self.pictures)}
        return {"meshes": len(found), "looks": np.array(json.dumps(self.looks)), **flat, **pictures}

    def _skinned(self, mesh: Any, skin: Any) -> dict[str, Any] | None:
        """A mesh skinned to clusters, in its bind pose."""
        chosen = [(one, self.joint[node]) for one, node in self.rig.carriers(skin) if node in self.joint]
        if not chosen:
            return None
        to_world = _matrix(chosen[0][0].bind_to_world) @ _matrix(chosen[0][0].geometry_to_bone)
        bound = [self.rig.bound.get(node, self.rest[k]) for k, node in enumerate(self.rig.joints)]
        moves = self.rest @ np.linalg.inv(bound)
        rows = [np.empty((0, 3))]
        for one, joint in chosen:
            moves[joint] = self.rest[joint] @ _matrix(one.geometry_to_bone) @ np.linalg.inv(to_world)
            points, weights = np.array(_keep(one.vertices)), np.array(_keep(one.weights))
            rows.append(np.column_stack([points, np.full(len(points), joint), weights]))
        return self._placed(mesh, to_world) | {"moves": moves, "influences": np.concatenate(rows)}

    def _attached(self, mesh: Any, node: Any) -> dict[str, Any] | None:
        """A mesh attached to one joint, in its current pose."""
        above = self.rig.number[node.typed_id]
        while above >= 0 and above not in self.joint:
            above = self.rig.parents[above]
        if above < 0:
            return None
        found = self._placed(mesh, _matrix(node.geometry_to_world))
        points = np.arange(len(found["points"]))
        rows = np.column_stack([points, np.full(len(points), self.joint[above]), np.ones(len(points))])
        return found | {"moves": np.tile(np.eye(4), (len(self.joint), 1, 1)), "influences": rows}

    def _placed(self, mesh: Any, to_world: Any) -> dict[str, Any]:
        """Points and normals of a mesh in the world."""
        place, normal = _keep(mesh.vertex_position), _keep(mesh.vertex_normal)
        points = np.array(_keep(place.values)).reshape(-1, 3) @ to_world[:3, :3].T + to_world[:3, 3]
        found = {"points": points, "corners": np.array(_keep(place.indices), dtype=np.int64)}
        if normal.exists:
            values = np.array(_keep(normal.values))[np.array(_keep(normal.indices))]
            found["normals"] = values @ np.linalg.inv(to_world[:3, :3])
        return found

    def _look(self, material: Any) -> int:
        """The index of a material."""
        if material is None:
            return -1
        if material.typed_id not in self.look_of:
            base = _keep(_keep(material.pbr).base_color)
            texture, picture = _keep(base.texture), b""
            if texture is not None and not (picture := bytes(_keep(texture.content))):
                name = texture.relative_filename.replace("\\", "/")
                # Below or beside the file; never from elsewhere.
                for beside in (name, name.rpartition("/")[2]):
                    with suppress(RefusedNameError):
                        picture = named_bytes(self.folder, beside)
                        break
            if picture:
                self.pictures.append(picture)
            colour = [float(min(max(part, 0.0), 1.0)) for part in tuple(base.value_vec4)[:3]]
            self.look_of[material.typed_id] = len(self.looks)
            self.looks.append({
                "name": material.name, "colour": [*(colour if base.has_value else [0.6] * 3), 1.0],
                "picture": len(self.pictures) - 1 if picture else -1,
            })  # fmt: skip
        return self.look_of[material.typed_id]


def _matrix(columns: Any) -> Any:
    found = np.eye(4)
    found[:3] = np.array([tuple(column) for column in columns]).T
    return found


def _main(file: str, out: str, wanted: str | None = None, meshes: str = "") -> None:
    try:
        rig = _Scene(file, meshes=bool(meshes))
    except ufbx.UfbxError as error:
        sys.exit(f"refused ufbx cannot read it: {type(error).__name__} {error}".strip())
    if wanted and wanted not in rig.stacks:
        sys.exit(f"refused no animation {wanted!r}; valid: {', '.join(rig.stacks) or '(the file has none)'}")
    name = next(iter(rig.stacks), "") if wanted is None else wanted
    settings, rest = _keep(rig.scene.settings), rig.worlds()
    fps, metres = float(settings.frames_per_second), float(settings.original_unit_meters)
    names: list[str] = []
    for number, joint in enumerate(rig.joints):
        plain = rig.nodes[joint].name or f"node_{number}"
        names.append(plain if plain not in names else f"{plain}_{number}")
    np.savez(
        out, names=np.array(names),
        parents=np.array(rig.joint_parents), fps=fps, metres=metres, units=f"{metres:g} m",
        bind=np.stack([rig.bound.get(joint, rest[k]) for k, joint in enumerate(rig.joints)]),
        frames=rig.frames(rig.stacks[name], fps) if name else rest[None],
        animations=np.array(list(rig.stacks)), warnings=np.array([], dtype=str), dressed=bool(rig.bound),
        **(_Clothes(rig, rest, Path(file)).arrays() if meshes else {}),
    )  # fmt: skip


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except SystemExit as refused:
        print(refused, file=sys.stderr, flush=True)
    os._exit(0)
