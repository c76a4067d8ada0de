"""USD, read and written through OpenUSD: a UsdSkel skeleton, its animation and a mesh skinned to it.

https://openusd.org/release/api/usd_skel_page_front.html. Joint names that are not identifiers are stored in the
skeleton's `jointNames`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import InvalidValueError, ParseError
from poise.formats.apart import arrays_of, need
from poise.formats.files import existing_file, replacing, scratch_folder
from poise.formats.gltf.dressing import dressed
from poise.formats.gltf.meshes import read_mesh
from poise.formats.registry import SKINS
from poise.formats.rigs import motion_of_matrices, rest_places
from poise.formats.units import metres_per_unit
from poise.geometry import rotations
from poise.motion.motion import SEPARATOR, Motion

_ORDERS = "poise:orders"


def read(path: str | os.PathLike[str]) -> Motion:
    """Read the largest skeleton of a stage with its bound animation; without one, in its rest pose."""
    return _read(existing_file(path))


def character(path: str | os.PathLike[str]) -> Motion:
    """The body in a file, in its rest pose."""
    return _read(existing_file(path), "")


def glb(path: str | os.PathLike[str]) -> bytes:
    """The body in a file, with its meshes, as GLB."""
    file = existing_file(path)
    return dressed(file, _found(file, "", "meshes"))


def write(
    motion: Motion, path: str | os.PathLike[str], *, units: str | float = "m", mannequin: bool = True
) -> Path:
    """Write a motion as .usda, .usdc, .usd or .usdz, Y up, with the mesh of its character or a mannequin."""
    if not isinstance(motion, Motion) or len(motion) == 0:
        raise InvalidValueError(f"a USD file holds a motion of a skeleton; got {motion!r:.60}")
    target = check_name(Path(path))
    is_package = target.suffix.lower() == ".usdz"
    with scratch_folder() as folder:
        layer = folder / f"motion{'.usdc' if is_package else target.suffix.lower()}"
        stage = _stage(motion, metres_per_unit(units), mannequin=mannequin)
        stage.GetRootLayer().Export(str(layer))
        if is_package:
            from pxr import UsdUtils

            UsdUtils.CreateNewUsdzPackage(str(layer), str(folder / "motion.usdz"))
        content = (folder / "motion.usdz" if is_package else layer).read_bytes()
    with replacing(target, "wb") as file:
        file.write(content)
    return target


def check_name(path: Path) -> Path:
    """Return the path if USD files can be written here; raise otherwise."""
    need("usd-core", module="pxr", extra="usd", purpose="writing USD files")
    return path


def _read(file: Path, *pose: str) -> Motion:
    return motion_of_matrices(file, _found(file, *pose), format="usd", animation=None)


def _found(file: Path, *wanted: str) -> dict[str, Any]:
    need("usd-core", module="pxr", extra="usd", purpose="reading USD files")
    found = arrays_of("usd", file, *wanted, reason="OpenUSD cannot read it: it is damaged or not USD")
    if np.count_nonzero(found["parents"] < 0) != 1:
        raise ParseError("its skeleton has several roots; expected one, such as Hips", path=file)
    return found


def _stage(motion: Motion, metres: float, *, mannequin: bool) -> Any:
    from pxr import Tf, Usd, UsdGeom, UsdSkel, Vt

    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().comment = SEPARATOR.join(motion.origin.credits)
    UsdGeom.SetStageUpAxis(stage, "Y")
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    stage.SetTimeCodesPerSecond(motion.fps)
    stage.SetFramesPerSecond(motion.fps)
    stage.SetStartTimeCode(0.0)
    stage.SetEndTimeCode(len(motion) - 1.0)
    stage.SetDefaultPrim(UsdSkel.Root.Define(stage, "/Character").GetPrim())

    body, prim = motion.skeleton, UsdSkel.Skeleton.Define(stage, "/Character/Skeleton")
    plain: list[str] = []  # valid identifiers
    tokens: list[str] = []  # a path of them for each joint, as in UsdSkel
    for number, (name, parent) in enumerate(zip(body.names, body.parents.tolist(), strict=True)):
        valid = Tf.MakeValidIdentifier(name)
        plain.append(valid if valid not in plain else f"{valid}_{number}")
        tokens.append(plain[-1] if parent < 0 else f"{tokens[parent]}/{plain[-1]}")
    prim.CreateJointsAttr(tokens)
    prim.CreateJointNamesAttr(list(body.names))
    rest, bind = (np.tile(np.eye(4), (len(body), 1, 1)) for _ in range(2))
    rest[:, 3, :3], bind[:, 3, :3] = body.offsets / metres, rest_places(body) / metres
    prim.CreateRestTransformsAttr(Vt.Matrix4dArray.FromNumpy(rest))
    prim.CreateBindTransformsAttr(Vt.Matrix4dArray.FromNumpy(bind))
    prim.GetPrim().SetCustomDataByKey(_ORDERS, ",".join(body.orders))

    animation = UsdSkel.Animation.Define(stage, "/Character/Skeleton/Animation")
    animation.CreateJointsAttr(tokens)
    places = np.tile(body.offsets, (len(motion), 1, 1))
    places[:, 0] = motion.root_positions
    turns = rotations.continuous(rotations.normalize(motion.rotations))
    moved, turned = animation.CreateTranslationsAttr(), animation.CreateRotationsAttr()
    animation.CreateScalesAttr(Vt.Vec3hArray.FromNumpy(np.ones((len(body), 3), np.float16)))
    for frame in range(len(motion)):
        moved.Set(Vt.Vec3fArray.FromNumpy((places[frame] / metres).astype(np.float32)), frame)
        # FromNumpy takes quaternions with the real part last
        turned.Set(Vt.QuatfArray.FromNumpy(np.roll(turns[frame], -1, axis=-1).astype(np.float32)), frame)
    binding = UsdSkel.BindingAPI.Apply(prim.GetPrim())
    binding.CreateAnimationSourceRel().SetTargets([animation.GetPrim().GetPath()])
    if mannequin:
        _add_mesh(stage, motion, metres)
    return stage


def _add_mesh(stage: Any, motion: Motion, metres: float) -> None:
    """The mesh of the motion's character, else a mannequin."""
    from pxr import UsdGeom, UsdSkel, Vt

    skeleton, rest = motion.skeleton, rest_places(motion.skeleton)
    if motion.origin.character:
        own = read_mesh(motion.origin.character)
        name, triangles, colours = "Body", own.triangles, own.colours
        places = own.posed(rest, np.tile(np.eye(3), (len(skeleton), 1, 1)))[0]
        joints, weights = own.slot_joints[own.slots], own.weights
    else:
        body = SKINS["mannequin"](skeleton, rotations=motion.rotations)
        name, triangles, places = "Mannequin", body.triangles, body.vertices + rest[body.joints]
        colours = np.array(list(body.palette.values()))[body.tones] ** 2.2
        joints, weights = body.joints[:, None], np.ones((len(places), 1))
    prim = UsdGeom.Mesh.Define(stage, f"/Character/{name}")
    prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy((places / metres).astype(np.float32)))
    prim.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    prim.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.astype(np.int32).ravel()))
    prim.CreateSubdivisionSchemeAttr("none")
    shown = prim.CreateDisplayColorPrimvar(UsdGeom.Tokens.vertex)
    shown.Set(Vt.Vec3fArray.FromNumpy(colours.astype(np.float32)))
    binding = UsdSkel.BindingAPI.Apply(prim.GetPrim())
    each = joints.shape[1]
    slots, shares = joints.astype(np.int32).ravel(), weights.astype(np.float32).ravel()
    binding.CreateJointIndicesPrimvar(False, each).Set(Vt.IntArray.FromNumpy(slots))
    binding.CreateJointWeightsPrimvar(False, each).Set(Vt.FloatArray.FromNumpy(shares))
    binding.CreateSkeletonRel().SetTargets(["/Character/Skeleton"])
    binding.CreateGeomBindTransformAttr()
