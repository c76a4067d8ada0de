"""The process in which `usd` reads a file: `usd_child.py FILE OUT.npz [ANIMATION]`, with nothing of Poise imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from pxr import Gf, Tf, Usd, UsdGeom, UsdSkel

_MOST = 4_000_000  # frames times joints
_Y_UP = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def _main(file: str, out: str, wanted: str | None = None) -> None:
    try:
        stage = Usd.Stage.Open(file)
    except Tf.ErrorException as error:
        sys.exit(f"refused OpenUSD cannot read it: {' '.join(str(error).split())[-120:]}")
    query, bound = _largest_skeleton(stage)
    skeleton = query.GetSkeleton()
    metres, fps = UsdGeom.GetStageMetersPerUnit(stage), stage.GetTimeCodesPerSecond()
    animation = query.GetAnimQuery()
    times = animation.GetJointTransformTimeSamples() if animation and wanted != "" else []
    codes = _time_codes(times, len(query.GetJointOrder()))
    to_metres = (np.eye(4) if UsdGeom.GetStageUpAxis(stage) == "Y" else _Y_UP) @ np.diag([metres] * 3 + [1.0])
    tokens = [str(token) for token in query.GetJointOrder()]
    rests = query.GetTopology()
    data = skeleton.GetPrim().GetCustomDataByKey("poise:orders")
    np.savez(
        out, names=np.array(_names(skeleton, tokens)), parents=np.array(rests.GetParentIndices()),
        bind=to_metres @ _worlds(query, None), metres=metres, units=f"{metres:g} m",
        frames=np.stack([to_metres @ _worlds(query, code) for code in codes]),
        fps=fps * _spacing(codes), animations=np.array([], dtype=str), orders=np.array(str(data or "")),
        warnings=np.array([f"of {bound} skeletons the largest is read"] if bound > 1 else [], dtype=str),
    )  # fmt: skip


def _largest_skeleton(stage: Any) -> tuple[Any, int]:
    """The skeleton with the most joints, as the animation that is bound to it moves it, and how many there are."""
    cache, found = UsdSkel.Cache(), []
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        if prim.IsA(UsdSkel.Root):
            cache.Populate(UsdSkel.Root(prim), Usd.TraverseInstanceProxies())
        if prim.IsA(UsdSkel.Skeleton) and (query := cache.GetSkelQuery(UsdSkel.Skeleton(prim))):
            found.append(query)
    if not found:
        sys.exit("refused it holds no UsdSkel skeleton; export the character with its armature")
    return max(found, key=lambda query: len(query.GetJointOrder())), len(found)


def _names(skeleton: Any, tokens: list[str]) -> list[str]:
    given = [str(name) for name in skeleton.GetJointNamesAttr().Get() or ()]
    names = given if len(given) == len(tokens) else [token.rpartition("/")[2] for token in tokens]
    return names if len(set(names)) == len(names) else tokens


def _worlds(query: Any, code: float | None) -> Any:
    """Matrices of the joints in the world, in the pose that meshes are bound in or at a time."""
    if code is None:
        own = query.GetJointWorldBindTransforms()
        if own and len(own) == len(query.GetJointOrder()):
            return np.array(own).transpose(0, 2, 1)
        code = 0.0
    at = Usd.TimeCode(code)
    in_skeleton = query.ComputeJointSkelTransforms(at)
    to_world: Gf.Matrix4d = UsdGeom.XformCache(at).GetLocalToWorldTransform(query.GetPrim())
    return np.array(to_world).T @ np.array(in_skeleton).transpose(0, 2, 1)


def _time_codes(times: list[float], joints: int) -> list[float]:
    """The samples, or even steps of time between the first and the last where they are uneven."""
    if len(times) < 2:
        return list(times) or [0.0]
    step = float(np.median(np.diff(times)))
    count = round((times[-1] - times[0]) / step) + 1
    if not 0 < count * joints < _MOST:
        sys.exit(f"refused {count} frames of {joints} joints are more than Poise takes")
    return [times[0] + step * k for k in range(count)]


def _spacing(codes: list[float]) -> float:
    return 1.0 / (codes[1] - codes[0]) if len(codes) > 1 else 1.0


if __name__ == "__main__":
    _main(*sys.argv[1:])
