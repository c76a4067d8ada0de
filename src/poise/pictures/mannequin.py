"""An artist's mannequin for any skeleton: rigid parts, one joint each.

Lengths come from the skeleton. Other sizes (radii, head, hands, feet) are fractions of stature, chosen by eye to look
like a person in drawn clips; they are not measurements. Directions that offsets do not determine (face, sole) come
from example poses, or else from the rest pose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from poise.pictures.lofts import Solid
from poise.pictures.mannequin_parts import BodyPart, build_parts
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

Colour = tuple[float, float, float]  # sRGB, 0 to 1
TONES: dict[str, Colour] = {
    "centre": (0.90, 0.80, 0.64),
    "centre joint": (0.66, 0.53, 0.38),
    "left": (0.30, 0.56, 0.80),
    "left joint": (0.17, 0.36, 0.56),
    "right": (0.93, 0.54, 0.25),
    "right joint": (0.69, 0.34, 0.12),
}


@dataclass(frozen=True, eq=False)
class Mannequin:
    """A triangle mesh in rigid parts: each vertex is fixed in the frame of its joint. `tones` index the palette."""

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "vertices 3"]
    joints: Int[Array, "vertices"]
    tones: Int[Array, "vertices"]
    triangles: Int[Array, "triangles 3"]
    palette: Mapping[str, Colour] = field(default_factory=lambda: TONES)

    def __post_init__(self) -> None:
        for name in ("vertices", "normals"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        for name in ("joints", "tones", "triangles"):
            object.__setattr__(self, name, read_only(getattr(self, name), dtype=np.int64))

    def posed(
        self, positions: Float[Array, "joints 3"], matrices: Float[Array, "joints 3 3"]
    ) -> tuple[Float[Array, "vertices 3"], Float[Array, "vertices 3"]]:
        """Vertices and normals in the world, from the joints' world transforms."""
        turns = matrices[self.joints]
        vertices = np.einsum("vij,vj->vi", turns, self.vertices) + positions[self.joints]
        return vertices, np.einsum("vij,vj->vi", turns, self.normals)


def build_mannequin(
    skeleton: Skeleton, *, rotations: Float[Array, "frames joints 4"] | None = None
) -> Mannequin:
    """The mannequin of a skeleton.

    `rotations` are example poses, usually the motion's own: they show the directions of soles and face on skeletons
    whose rest pose is not a standing person. Any skeleton gets a body: joints without a role become tapered limbs.
    """
    return _joined(build_parts(skeleton, rotations))


def _joined(parts: list[BodyPart]) -> Mannequin:
    """All parts as one mesh."""
    solids: list[Solid] = [part.solid for part in parts]
    counts = [len(solid.vertices) for solid in solids]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    tone_of = {name: number for number, name in enumerate(TONES)}
    return Mannequin(
        vertices=np.concatenate([solid.vertices for solid in solids]),
        normals=np.concatenate([solid.normals for solid in solids]),
        joints=np.repeat([part.joint for part in parts], counts),
        tones=np.repeat([tone_of[part.tone] for part in parts], counts),
        triangles=np.concatenate([solid.triangles + s for solid, s in zip(solids, starts, strict=True)]),
    )
