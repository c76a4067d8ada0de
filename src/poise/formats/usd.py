"""USD, read and written through OpenUSD: a UsdSkel skeleton, its animation and a mesh skinned to it.

https://openusd.org/release/api/usd_skel_page_front.html. Joint names that are not identifiers are stored in the
skeleton's `jointNames`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, ParseError
from poise.formats.apart import arrays_of, need
from poise.formats.files import existing_file, replacing, scratch_folder
from poise.formats.gltf.dressing import dressed
from poise.formats.gltf.meshes import read_mesh
from poise.formats.registry import SKINS
from poise.formats.rigs import motion_of_matrices
from poise.formats.units import metres_per_unit
from poise.geometry import rotations
from poise.motion.motion import SEPARATOR, Motion
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

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
    with scratch_folder() as folder:
        layer = folder / f"motion{'.usdc' if target.suffix.lower() == '.usdz' else target.suffix.lower()}"
        stage = _stage(motion, metres_per_unit(units), mannequin=mannequin)
        stage.GetRootLayer().Export(str(layer))
        content = (_package(layer) if target.suffix.lower() == ".usdz" else layer).read_bytes()
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


def _package(layer: Path) -> Path:
    from pxr import UsdUtils

    package = layer.with_suffix(".usdz")
    UsdUtils.CreateNewUsdzPackage(str(layer), str(package))
    return package


def _stage(motion: Motion, metres: float, *, mannequin: bool) -> Any:
    from pxr import Usd, UsdGeom, UsdSkel

    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().comment = SEPARATOR.join(motion.origin.credits)
    UsdGeom.SetStageUpAxis(stage, "Y")
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    stage.SetTimeCodesPerSecond(motion.fps)
    stage.SetFramesPerSecond(motion.fps)
    stage.SetStartTimeCode(0.0)
    stage.SetEndTimeCode(len(motion) - 1.0)
    root = UsdSkel.Root.Define(stage, "/Character")
    stage.SetDefaultPrim(root.GetPrim())
    skeleton = _add_skeleton(stage, motion.skeleton, metres)
    _add_animation(stage, skeleton, motion, metres)
    if mannequin:
        for name, mesh in _meshes(motion):
            _add_mesh(stage, f"/Character/{name}", mesh, metres)
    return stage


def _add_skeleton(stage: Any, skeleton: Skeleton, metres: float) -> Any:
    from pxr import UsdSkel, Vt

    prim = UsdSkel.Skeleton.Define(stage, "/Character/Skeleton")
    prim.CreateJointsAttr(_tokens(skeleton))
    prim.CreateJointNamesAttr(list(skeleton.names))
    rest, bind = (np.tile(np.eye(4), (len(skeleton), 1, 1)) for _ in range(2))
    rest[:, 3, :3], bind[:, 3, :3] = skeleton.offsets / metres, _rest_places(skeleton) / metres
    prim.CreateRestTransformsAttr(Vt.Matrix4dArray.FromNumpy(rest))
    prim.CreateBindTransformsAttr(Vt.Matrix4dArray.FromNumpy(bind))
    prim.GetPrim().SetCustomDataByKey(_ORDERS, ",".join(skeleton.orders))
    return prim


def _add_animation(stage: Any, skeleton: Any, motion: Motion, metres: float) -> None:
    from pxr import UsdSkel, Vt

    animation = UsdSkel.Animation.Define(stage, "/Character/Skeleton/Animation")
    animation.CreateJointsAttr(skeleton.GetJointsAttr().Get())
    places = np.tile(motion.skeleton.offsets, (len(motion), 1, 1))
    places[:, 0] = motion.root_positions
    turns = rotations.continuous(rotations.normalize(motion.rotations))
    moved, turned = animation.CreateTranslationsAttr(), animation.CreateRotationsAttr()
    animation.CreateScalesAttr(Vt.Vec3hArray.FromNumpy(np.ones((len(motion.skeleton), 3), np.float16)))
    for frame in range(len(motion)):
        moved.Set(Vt.Vec3fArray.FromNumpy((places[frame] / metres).astype(np.float32)), frame)
        # FromNumpy takes quaternions with the real part last
        turned.Set(Vt.QuatfArray.FromNumpy(np.roll(turns[frame], -1, axis=-1).astype(np.float32)), frame)
    binding = UsdSkel.BindingAPI.Apply(skeleton.GetPrim())
    binding.CreateAnimationSourceRel().SetTargets([animation.GetPrim().GetPath()])


Mesh = tuple[
    Float[Array, "vertices 3"],
    Int[Array, "triangles 3"],
    Float[Array, "vertices 3"],
    Int[Array, "vertices slots"],
    Float[Array, "vertices slots"],
]  # rest positions, triangles, colours, and the joints and weights of each vertex


def _meshes(motion: Motion) -> Iterator[tuple[str, Mesh]]:
    """The mesh of the motion's character, else a mannequin."""
    skeleton = motion.skeleton
    if motion.origin.character:
        own = read_mesh(motion.origin.character)
        axes = np.tile(np.eye(3), (len(skeleton), 1, 1))
        places = own.posed(_rest_places(skeleton), axes)[0]
        yield "Body", (places, own.triangles, own.colours, own.slot_joints[own.slots], own.weights)
        return
    body = SKINS["mannequin"](skeleton, rotations=motion.rotations)
    places = body.vertices + _rest_places(skeleton)[body.joints]
    colours = np.array(list(body.palette.values()))[body.tones] ** 2.2
    yield "Mannequin", (places, body.triangles, colours, body.joints[:, None], np.ones((len(places), 1)))


def _add_mesh(stage: Any, path: str, mesh: Mesh, metres: float) -> None:
    from pxr import UsdGeom, UsdSkel, Vt

    places, triangles, colours, joints, weights = mesh
    prim = UsdGeom.Mesh.Define(stage, path)
    prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy((places / metres).astype(np.float32)))
    prim.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    prim.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.astype(np.int32).ravel()))
    prim.CreateSubdivisionSchemeAttr("none")
    shown = prim.CreateDisplayColorPrimvar(UsdGeom.Tokens.vertex)
    shown.Set(Vt.Vec3fArray.FromNumpy(colours.astype(np.float32)))
    binding = UsdSkel.BindingAPI.Apply(prim.GetPrim())
    slots = joints.shape[1]
    binding.CreateJointIndicesPrimvar(False, slots).Set(
        Vt.IntArray.FromNumpy(joints.astype(np.int32).ravel())
    )
    binding.CreateJointWeightsPrimvar(False, slots).Set(
        Vt.FloatArray.FromNumpy(weights.astype(np.float32).ravel())
    )
    binding.CreateSkeletonRel().SetTargets(["/Character/Skeleton"])
    binding.CreateGeomBindTransformAttr()


def _tokens(skeleton: Skeleton) -> list[str]:
    """A path of identifiers for each joint, as in UsdSkel."""
    from pxr import Tf

    own: list[str] = []
    for number, name in enumerate(skeleton.names):
        plain = Tf.MakeValidIdentifier(name)
        own.append(plain if plain not in own else f"{plain}_{number}")
    paths: list[str] = []
    for joint, parent in enumerate(skeleton.parents.tolist()):
        paths.append(own[joint] if parent < 0 else f"{paths[parent]}/{own[joint]}")
    return paths


def _rest_places(skeleton: Skeleton) -> Float[Array, "joints 3"]:
    """Joint positions with all rotations at identity and the root at its own offset."""
    places = skeleton.offsets.copy()
    for joint in range(1, len(skeleton)):
        places[joint] += places[skeleton.parents[joint]]
    return places
