"""The process in which `usd` reads a file: `usd_child.py FILE OUT.npz [ANIMATION [meshes]]`, without Poise.

OpenUSD opens whatever a layer names, anywhere. So each layer is opened by itself first, and every name in it is
replaced by the place of the file that `named_files` allows, or removed; only then is the stage composed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
import zlib
from typing import Any

import numpy as np
from named_files import MOST_BYTES, RefusedNameError, named_file
from pxr import Ar, Gf, Sdf, Tf, Usd, UsdGeom, UsdShade, UsdSkel, UsdUtils

_MOST_LAYERS, _MOST_PACKED = 200, 2000
_MOST = 4_000_000  # frames times joints
_GREY = (0.6, 0.6, 0.6)
_Y_UP = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def _main(file: str, out: str, wanted: str | None = None, meshes: str = "") -> None:
    try:
        layers, unread = _contained(_unpacked(file, out) if file.lower().endswith(".usdz") else file)
        stage = Usd.Stage.Open(layers[0])
    except Tf.ErrorException as error:
        sys.exit(f"refused OpenUSD cannot read it: {' '.join(str(error).split())[-120:]}")
    query, worn, bound = _largest_skeleton(stage)
    skeleton = query.GetSkeleton()
    metres, fps = UsdGeom.GetStageMetersPerUnit(stage), stage.GetTimeCodesPerSecond()
    animation = query.GetAnimQuery()
    times = animation.GetJointTransformTimeSamples() if animation and wanted != "" else []
    codes, tokens = list(times) or [0.0], [str(token) for token in query.GetJointOrder()]
    if len(times) > 1:  # evenly spaced times, also if the samples are uneven
        step = float(np.median(np.diff(times)))
        count = round((times[-1] - times[0]) / step) + 1
        if not 0 < count * len(tokens) < _MOST:
            sys.exit(f"refused {count} frames of {len(tokens)} joints are more than Poise takes")
        codes = [times[0] + step * k for k in range(count)]
    given = [str(name) for name in skeleton.GetJointNamesAttr().Get() or ()]
    names = given if len(given) == len(tokens) else [token.rpartition("/")[2] for token in tokens]
    to_metres = (np.eye(4) if UsdGeom.GetStageUpAxis(stage) == "Y" else _Y_UP) @ np.diag([metres] * 3 + [1.0])
    rests = query.GetTopology()
    data = skeleton.GetPrim().GetCustomDataByKey("poise:orders")
    bind = to_metres @ _worlds(query, None)
    frames = np.stack([to_metres @ _worlds(query, code) for code in codes])
    np.savez(
        out, names=np.array(names if len(set(names)) == len(names) else tokens),
        parents=np.array(rests.GetParentIndices()), bind=bind, metres=metres, units=f"{metres:g} m",
        frames=frames, fps=fps * (1.0 / (codes[1] - codes[0])) if len(codes) > 1 else fps,
        animations=np.array([], dtype=str), orders=np.array(str(data or "")),
        warnings=np.array([*([f"{bound} skeletons; the largest was read"] if bound > 1 else []), *unread[:5]], str),
        dressed=any(own.GetPrim().GetName() != "Mannequin" for own in worn),
        **(_Wardrobe(to_metres, frames[0] @ np.linalg.inv(bind), tokens).arrays(worn) if meshes else {}),
    )  # fmt: skip


def _contained(file: str) -> tuple[list[Any], list[str]]:
    """The layers of a file, the file's own first, that name only files beside it; and what they name otherwise."""
    layers: list[Any] = []
    unread: dict[str, None] = {}
    waiting, known = [file], {file}
    while waiting:
        layer = Sdf.Layer.FindOrOpen(waiting.pop())
        if layer is None:
            continue
        layers.append(layer)
        if len(layers) > _MOST_LAYERS:
            sys.exit(f"refused it names more than {_MOST_LAYERS} layers")

        def place(name: str, layer: Any = layer) -> str:
            try:
                found = named_file(os.path.dirname(layer.realPath), name, below=os.path.dirname(file))
                kind = Sdf.FileFormat.FindByExtension(found.suffix[1:])
                if not found.is_file() or (kind and kind.IsPackage()):
                    raise RefusedNameError(f"{name[:60]!r} is not a layer or a picture beside this file")
            except RefusedNameError as error:
                unread[f"not read: {error}"] = None
                return ""
            if kind and str(found) not in known:
                known.add(str(found))
                waiting.append(str(found))
            return str(found)

        UsdUtils.ModifyAssetPaths(layer, place)
    if not layers:
        sys.exit("refused OpenUSD cannot read it: it is damaged or not USD")
    return layers, list(unread)


def _unpacked(file: str, out: str) -> str:
    """The first layer of a package, with all files of the package unpacked beside `out`: packages cannot be changed."""
    folder = os.path.join(os.path.dirname(out), "package")
    try:
        with zipfile.ZipFile(file) as package:
            entries = [entry for entry in package.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > MOST_BYTES or not 0 < len(entries) < _MOST_PACKED:
                sys.exit("refused it holds no files, too many or too large ones")
            targets = [named_file(folder, entry.filename) for entry in entries]
            for entry, target in zip(entries, targets, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                with package.open(entry) as source, target.open("wb") as unpacked:
                    shutil.copyfileobj(source, unpacked)
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, ValueError) as error:
        sys.exit(f"refused the package cannot be unpacked: {error}")
    return str(targets[0])


def _largest_skeleton(stage: Any) -> tuple[Any, list[Any], int]:
    """The skeleton with the most joints, with its bound animation, its meshes, and the number of skeletons."""
    cache, found, proxies = UsdSkel.Cache(), [], Usd.TraverseInstanceProxies()
    worn: dict[Any, list[Any]] = {}
    for prim in stage.Traverse(proxies):
        if prim.IsA(UsdSkel.Root):
            cache.Populate(UsdSkel.Root(prim), proxies)
            for binding in cache.ComputeSkelBindings(UsdSkel.Root(prim), proxies):
                own = [one for one in binding.GetSkinningTargets() if one.GetPrim().IsA(UsdGeom.Mesh)]
                worn.setdefault(binding.GetSkeleton().GetPath(), []).extend(own)
        if prim.IsA(UsdSkel.Skeleton) and (query := cache.GetSkelQuery(UsdSkel.Skeleton(prim))):
            found.append(query)
    if not found:
        sys.exit("refused it holds no UsdSkel skeleton; export the character with its armature")
    chosen = max(found, key=lambda query: len(query.GetJointOrder()))
    return chosen, worn.get(chosen.GetPrim().GetPath(), []), len(found)


class _Wardrobe:
    """The meshes carried by the joints, in the form of `gltf.dressing`."""

    def __init__(self, to_metres: Any, moves: Any, tokens: list[str]) -> None:
        self.to_metres, self.moves = to_metres, moves
        self.joint = {token: number for number, token in enumerate(tokens)}
        self.looks: list[dict[str, Any]] = []
        self.pictures: list[bytes] = []
        self.look_of: dict[Any, int] = {}

    def arrays(self, worn: list[Any]) -> dict[str, Any]:
        found = [self._mesh(own) | self._surface(UsdGeom.Mesh(own.GetPrim())) for own in worn]
        flat = {f"{k}.{name}": value for k, one in enumerate(found) for name, value in one.items()}
        pictures = {f"picture.{k}": np.frombuffer(data, np.uint8) for k, data in enumerate(self.pictures)}
        return {"meshes": len(found), "looks": np.array(json.dumps(self.looks)), **flat, **pictures}

    def _mesh(self, own: Any) -> dict[str, Any]:
        """Points of a mesh in its bind pose, and their influences."""
        mesh = UsdGeom.Mesh(own.GetPrim())
        points = np.array(mesh.GetPointsAttr().Get(Usd.TimeCode.EarliestTime())).reshape(-1, 3)
        to_world = self.to_metres @ np.array(own.GetGeomBindTransform(Usd.TimeCode.EarliestTime())).T
        joints, weights = own.ComputeVaryingJointInfluences(len(points), Usd.TimeCode.EarliestTime())
        joints, weights = np.array(joints, dtype=np.int64), np.array(weights, dtype=np.float64)
        order = own.GetJointOrder()  # a mesh may have its own joint order
        if order:
            joints = np.array([self.joint[str(token)] for token in order])[joints]
        each = np.repeat(np.arange(len(points)), len(joints) // max(len(points), 1))
        return {
            "points": points @ to_world[:3, :3].T + to_world[:3, 3], "moves": self.moves,
            "influences": np.column_stack([each, joints, weights]), "name": np.array(mesh.GetPrim().GetName()),
        }  # fmt: skip

    def _surface(self, mesh: Any) -> dict[str, Any]:
        """The faces of a mesh and their materials."""
        corners = np.array(mesh.GetFaceVertexIndicesAttr().Get(), dtype=np.int64)
        faces = np.array(mesh.GetFaceVertexCountsAttr().Get(), dtype=np.int64)
        looks = np.full(len(faces), self._look(mesh.GetPrim()))
        for subset in UsdShade.MaterialBindingAPI(mesh).GetMaterialBindSubsets():
            looks[np.array(subset.GetIndicesAttr().Get(), dtype=np.int64)] = self._look(subset.GetPrim())
        turned = np.arange(len(corners))
        if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
            first = np.repeat(np.cumsum(faces) - faces, faces)
            turned = 2 * first + np.repeat(faces, faces) - 1 - turned
        found = {"corners": corners, "faces": faces, "looks": looks}
        kinds = (Sdf.ValueTypeNames.TexCoord2fArray, Sdf.ValueTypeNames.Float2Array)
        shown = UsdGeom.PrimvarsAPI(mesh).GetPrimvarsWithValues()
        on_picture = [one for one in shown if one.GetTypeName() in kinds]
        for name, primvar in (("places", on_picture[:1]), ("colours", [mesh.GetDisplayColorPrimvar()])):
            if primvar and primvar[0].HasValue():
                values, kind = np.array(primvar[0].ComputeFlattened()), primvar[0].GetInterpolation()
                if kind == UsdGeom.Tokens.faceVarying:
                    found[name] = values
                elif kind in (UsdGeom.Tokens.vertex, UsdGeom.Tokens.varying):
                    found[name] = values[corners]
        return {
            name: value[turned] if name not in ("faces", "looks") else value for name, value in found.items()
        }

    def _look(self, prim: Any) -> int:
        """The index of the material bound to a mesh or to a part of it."""
        material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
        path = material.GetPath() if material else prim.GetPath()
        if path not in self.look_of:
            # The diffuse colour or picture of its material, else its display colour.
            shader = material.ComputeSurfaceSource()[0] if material else None
            given, picture = shader.GetInput("diffuseColor") if shader else None, b""
            if given:
                source = given.GetConnectedSource()
                file = UsdShade.Shader(source[0].GetPrim()).GetInput("file") if source else None
                asset, colour = file.Get() if file else None, given.Get() or _GREY
                if isinstance(asset, Sdf.AssetPath) and asset.resolvedPath:  # as `_contained` has found it
                    opened = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(asset.resolvedPath))
                    picture = bytes(opened.GetBuffer()) if opened and opened.GetSize() <= MOST_BYTES else b""
            else:
                shown = UsdGeom.Gprim(prim).GetDisplayColorAttr().Get() if prim.IsA(UsdGeom.Gprim) else None
                plain = [_GREY] if shown is None else list(shown)
                colour = plain[0] if len(plain) == 1 else (1.0, 1.0, 1.0)
            if picture:
                self.pictures.append(picture)
            self.look_of[path] = len(self.looks)
            self.looks.append({
                "name": path.name, "colour": [*map(float, colour), 1.0],
                "picture": len(self.pictures) - 1 if picture else -1,
            })  # fmt: skip
        return self.look_of[path]


def _worlds(query: Any, code: float | None) -> Any:
    """World matrices of the joints, in the bind pose or at a time."""
    if code is None:
        own = query.GetJointWorldBindTransforms()
        if own and len(own) == len(query.GetJointOrder()):
            return np.array(own).transpose(0, 2, 1)
        code = 0.0
    at = Usd.TimeCode(code)
    in_skeleton = query.ComputeJointSkelTransforms(at)
    to_world: Gf.Matrix4d = UsdGeom.XformCache(at).GetLocalToWorldTransform(query.GetPrim())
    return np.array(to_world).T @ np.array(in_skeleton).transpose(0, 2, 1)


if __name__ == "__main__":
    _main(*sys.argv[1:])
