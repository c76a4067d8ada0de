"""Transfer poses to a body with the same joints and other limb lengths: rotations kept, positions scaled by legs."""

from __future__ import annotations

from jaxtyping import Float

from poise.errors import SkeletonError
from poise.skeleton.measure import leg_length, longest_way
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array


def retarget_pose(pose: Pose, target: Skeleton) -> Pose:
    """The pose on another body of the same topology; the root's position is scaled by the ratio of leg lengths."""
    check_same_topology(pose.skeleton, target)
    return Pose(target, scaled_places(pose.root_position, pose.skeleton, target), pose.rotations)


def scaled_places(places: Float[Array, "*n 3"], source: Skeleton, target: Skeleton) -> Float[Array, "*n 3"]:
    """Root positions for the other body, scaled by leg length."""
    return places * size_ratio(source, target)


def size_ratio(source: Skeleton, target: Skeleton) -> float:
    """The target's leg length over the source's; without legs, the ratio of the whole trees."""
    ours, theirs = leg_length(source), leg_length(target)
    if ours == 0.0 or theirs == 0.0:
        ours, theirs = longest_way(source), longest_way(target)
    return theirs / ours if ours > 0 else 1.0


def check_same_topology(source: Skeleton, target: Skeleton) -> None:
    """Raise a SkeletonError that names the first joint in which two skeletons differ."""
    for joint, (ours, theirs) in enumerate(zip(source.names, target.names, strict=False)):
        if ours != theirs:
            raise SkeletonError(
                f"the skeletons differ at joint {joint}: {ours!r} here, {theirs!r} in the target"
            )
        above = [int(skeleton.parents[joint]) for skeleton in (source, target)]
        parents = [
            each.names[up] if up >= 0 else "nothing" for each, up in zip((source, target), above, strict=True)
        ]
        if parents[0] != parents[1]:
            raise SkeletonError(
                f"joint {ours!r} has the parent {parents[0]!r} here and {parents[1]!r} in the target"
            )
    if len(source) != len(target):
        longer, where = max((source, "the source"), (target, "the target"), key=lambda each: len(each[0]))
        extra = longer.names[min(len(source), len(target))]
        raise SkeletonError(
            f"{where} has {abs(len(source) - len(target))} joints more; the first is {extra!r}"
        )
