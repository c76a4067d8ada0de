"""The constraint vocabulary: algebraic conditions C(q) = 0 or C(q) >= 0 on a pose, soft or hard, with a priority.

A constraint is hard unless it is given a tolerance (one standard deviation, in its own unit: metres, radians or pixels)
or a weight (1 / tolerance squared). Among hard constraints that cannot all be met, those of higher priority win.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float

from poise.bounds import FARTHEST, is_number
from poise.errors import InvalidValueError
from poise.formats.camera_file import read_camera
from poise.formats.tables import Among, Named, Range, Read, Table
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.registry import Registry
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.types import Array

Vector = Sequence[float] | Array


def handle_from(table: Table, key: str) -> Handle:
    """Return the handle named in a table, with its offset in the joint's frame if given."""
    x, y, z = table.get("offset", Float[Array, "3"], (0.0, 0.0, 0.0))
    return Handle(table.get(key, str), (float(x), float(y), float(z)))


def turn_from(table: Table, key: str) -> Float[Array, "4"]:
    """Return a rotation as a quaternion, given as wxyz or as Euler angles x, y, z in degrees (applied y, x, z)."""
    turn = table.get(key, Float[Array, "3"] | Float[Array, "4"])
    if len(turn) == 3:
        x, y, z = np.radians(turn)
        return rotations.quaternion_from_euler(np.array([y, x, z]), "YXZ")
    if not np.isclose(np.linalg.norm(turn), 1.0, atol=0.01):
        raise table.error(key, f"expected a unit quaternion (wxyz); got {turn.tolist()}")
    return rotations.normalize(turn)


def _support_from(table: Table, _key: str) -> list[Array]:
    """Return one point, or the corners of a polygon."""
    corners = Float[Array, "corners 2"]
    return [table.get("at", Float[Array, "2"])] if table.has("at") else list(table.get("inside", corners))


Point = Annotated[Vector, Read(lambda table, key: table.get(key, Float[Array, "3"]))]
Pixel = Annotated[Vector, Read(lambda table, key: table.get(key, Float[Array, "2"]))]
OnHandle = Annotated[Handle | str, Read(handle_from)]
OnOther = Annotated[Handle | str, Read(lambda table, key: Handle(table.get(key, str)))]
ByCamera = Annotated[Camera, Read(lambda table, key: read_camera(table.get(key, Path)))]


class Kind(IntEnum):
    """The quantity that a block of rows measures; the compiled core switches on it."""

    POSITION, ORIENTATION, LINE, PLANE, PROJECTION, LOOK_AT = range(6)
    DISTANCE, CENTRE_OF_MASS, ROTATION, LINEAR, APART = range(6, 11)


ROWS = dict(zip(Kind, (3, 3, 2, 1, 2, 2, 1, 1, 3, 1, 1), strict=True))
LOOSEST = 1e6  # largest tolerance, and one over the smallest, in the constraint's unit (weights: squared)
HIGHEST_PRIORITY = 1000
MOST_PIXELS = 1e6  # largest pixel coordinate, from the corner of the picture
PARAMETERS = 16  # floats per block: the handle's offset (3), then those of the kind; a linear row has more


@dataclass(frozen=True)
class Block:
    """Rows of one kind, in the form that the compiled core takes."""

    kind: Kind
    joint: int
    parameters: Sequence[float]
    other: int = -1
    inequality: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraint(ABC):
    """Base of all constraints: hard or soft, priority, and the name used in reports."""

    tolerance: Annotated[float | None, Range(above=0.0)] = None
    weight: Annotated[float | None, Range(least=0.0)] = None
    priority: int = 0
    name: str = ""

    kind: ClassVar[str] = ""
    unit: ClassVar[str] = "m"

    @classmethod
    def from_table(cls, table: Table) -> Constraint:
        """Create the constraint from a script table: its keys are the declared fields."""
        constraint = table.read(cls)
        try:
            constraint.check()
        except InvalidValueError as error:
            raise table.error("kind", str(error)) from error
        return constraint

    @property
    def hard(self) -> bool:
        """Whether the constraint must hold exactly if possible."""
        return self.tolerance is None and self.weight is None

    @property
    def compliance(self) -> float:
        """The constraint's variance: zero if hard, infinite if its weight is zero."""
        if self.tolerance is not None:
            return self.tolerance**2
        if self.weight is not None:
            return 1.0 / self.weight if self.weight > 0 else np.inf
        return 0.0

    @property
    def label(self) -> str:
        """The name, or a description of the constraint and its handle."""
        return self.name or self._describe()

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """Everything but the target; one solver serves all constraints with the same signature."""
        handle, other = getattr(self, "handle", None), getattr(self, "other", None)
        settings = self.tolerance, self.weight, self.priority, self.name
        return type(self), handle, other, *settings, *self._fixed

    @property
    def _fixed(self) -> tuple[object, ...]:
        """The parts of the target that a solver cannot change."""
        return ()

    @abstractmethod
    def blocks(self, space: PoseSpace) -> list[Block]:
        """Return the constraint's rows on one skeleton."""

    def blocks_on(self, space: PoseSpace) -> list[Block]:
        """The same, cached per space when the constraint holds no array or list that the caller could change."""
        known: tuple[PoseSpace, list[Block]] | None = self.__dict__.get("_known")
        if known is not None and known[0] is space:
            return known[1]
        found = self.blocks(space)
        if not any(isinstance(value, np.ndarray | list) for value in vars(self).values()):
            self.__dict__["_known"] = space, found
        return found

    def check(self) -> None:
        """Raise if a number is not finite or not plausible."""
        if self.tolerance is not None and self.weight is not None:
            raise InvalidValueError(f"{self.label}: give a tolerance or a weight, not both")
        for name, value in (("tolerance", self.tolerance), ("weight", self.weight)):
            if value is not None and not (is_number(value) and value >= 0):
                raise InvalidValueError(
                    f"{self.label}: {name} must be a finite number >= 0; got {value!r:.40}"
                )
        if self.tolerance == 0:
            raise InvalidValueError(
                f"{self.label}: a tolerance of 0 is a hard constraint; leave the tolerance out"
            )
        for name, value, largest in (
            ("tolerance", self.tolerance, LOOSEST),
            ("weight", self.weight, LOOSEST**2),
        ):
            if self.weight != 0 and value is not None and not 1 / largest <= value <= largest:
                raise InvalidValueError(
                    f"{self.label}: {name} must be between {1 / largest:g} and {largest:g}; got {value}"
                )
        if not (isinstance(self.priority, int | np.integer) and abs(self.priority) <= HIGHEST_PRIORITY):
            raise InvalidValueError(
                f"{self.label}: priority must be a whole number between {-HIGHEST_PRIORITY} and "
                f"{HIGHEST_PRIORITY}; got {self.priority!r:.40}"
            )

    def _describe(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True, eq=False)
class _OnHandle(Constraint):
    """A constraint on one handle: a joint's or role's name, or a Handle with an offset."""

    handle: OnHandle

    @property
    def at(self) -> Handle:
        return Handle(self.handle) if isinstance(self.handle, str) else self.handle

    def _describe(self) -> str:
        return f"{type(self).__name__.lower()} of {self.at.joint}"

    def _block(self, space: PoseSpace, kind: Kind, *parameters: float, inequality: bool = False) -> Block:
        joint, at = self.at.on(space.skeleton)
        offset = self._vector(at, "the handle's offset")
        return Block(kind, joint, (*offset, *parameters), inequality=inequality)

    def _vector(self, value: Vector, what: str, size: int = 3, largest: float = FARTHEST) -> Array:
        return finite_vector(value, f"{self.label}: {what}", size, largest)


@dataclass(frozen=True, eq=False)
class Position(_OnHandle):
    """The handle is at the point `target`."""

    target: Annotated[Point, Named("at")]
    kind: ClassVar[str] = "position"

    def blocks(self, space: PoseSpace) -> list[Block]:
        return [self._block(space, Kind.POSITION, *self._vector(self.target, "target"))]


@dataclass(frozen=True, eq=False)
class Orientation(_OnHandle):
    """The handle's joint has the world rotation `target`, a unit quaternion (wxyz)."""

    target: Annotated[Vector, Named("rotation"), Read(turn_from)]
    kind: ClassVar[str] = "orientation"
    unit: ClassVar[str] = "rad"

    def blocks(self, space: PoseSpace) -> list[Block]:
        target = rotations.normalize(self._vector(self.target, "target", 4))
        return [self._block(space, Kind.ORIENTATION, *rotations.matrix_from_quaternion(target).ravel())]


@dataclass(frozen=True, eq=False)
class Against(Position):
    """A palm, fingertips, a sole or any handle rests at the point `target` on a surface that faces along `normal`.

    In a posture (`poise.pose`) palms and soles lie flat on the surface, and it carries a part of the body's weight: the
    body may lean on a table or a step, and lunges against a wall.
    """

    normal: Point = (0.0, 1.0, 0.0)
    kind: ClassVar[str] = "against"

    @property
    def _fixed(self) -> tuple[object, ...]:
        return (self.way,)

    @cached_property
    def way(self) -> tuple[float, float, float]:
        """The unit normal."""
        x, y, z = unit_vector(self._vector(self.normal, "normal"), self.label).tolist()
        return x, y, z

    def blocks(self, space: PoseSpace) -> list[Block]:
        assert self.way
        return super().blocks(space)


def transform(handle: Handle | str, position: Vector, orientation: Vector, **shared: Any) -> list[Constraint]:
    """A `Position` and an `Orientation` (quaternion, wxyz) of one handle."""
    return [Position(handle, position, **shared), Orientation(handle, orientation, **shared)]


@dataclass(frozen=True, eq=False)
class Line(_OnHandle):
    """The handle is on the ray from `origin` along `direction` (or on the whole line)."""

    origin: Point
    direction: Point
    whole_line: bool = field(default=False, kw_only=True)
    kind: ClassVar[str] = "line"

    @property
    def _fixed(self) -> tuple[object, ...]:
        return (self.whole_line,)

    def blocks(self, space: PoseSpace) -> list[Block]:
        origin, along = self._vector(self.origin, "origin"), self._unit(self.direction)
        first, second = normals_of(along)
        line = self._block(space, Kind.LINE, *origin, *first, *second)
        ahead = self._block(space, Kind.PLANE, *along, along @ origin, inequality=True)
        return [line] if self.whole_line else [line, ahead]

    def _unit(self, value: Vector) -> Array:
        return unit_vector(self._vector(value, "direction"), self.label)


@dataclass(frozen=True, eq=False)
class Plane(_OnHandle):
    """The handle is on the plane through `point` with this normal."""

    point: Point
    normal: Point = (0.0, 1.0, 0.0)
    kind: ClassVar[str] = "plane"
    inequality: ClassVar[bool] = False

    def blocks(self, space: PoseSpace) -> list[Block]:
        normal = unit_vector(self._vector(self.normal, "normal"), self.label)
        height = float(normal @ self._vector(self.point, "point"))
        return [self._block(space, Kind.PLANE, *normal, height, inequality=self.inequality)]


@dataclass(frozen=True, eq=False)
class HalfSpace(Plane):
    """The handle is on the plane or on the side its normal points to: a floor, a wall, a table."""

    kind: ClassVar[str] = "above"
    inequality: ClassVar[bool] = True


def floor(handles: Sequence[Handle | str], *, height: float = 0.0) -> list[HalfSpace]:
    """No handle is below the floor."""
    return [HalfSpace(handle, (0.0, height, 0.0)) for handle in handles]


@dataclass(frozen=True, eq=False)
class Projection(_OnHandle):
    """The handle projects to a pixel of a camera."""

    camera: ByCamera
    pixel: Pixel
    kind: ClassVar[str] = "projection"
    unit: ClassVar[str] = "px"

    def blocks(self, space: PoseSpace) -> list[Block]:
        pixel = self._vector(self.pixel, "pixel", 2, MOST_PIXELS)
        # A hard projection is measured in metres at the point's depth, so that it weighs like other hard handles.
        # A soft one is measured in pixels, marked by the sign.
        metric = (1.0 if self.hard else -1.0) / self.camera.focal_length
        rows = self.camera.matrix
        shifted = np.stack([rows[0] - pixel[0] * rows[2], rows[1] - pixel[1] * rows[2], rows[2]])
        camera = self._vector((*shifted.ravel(), metric), "the camera's matrix", 13, MOST_PIXELS * FARTHEST)
        return [self._block(space, Kind.PROJECTION, *camera)]


@dataclass(frozen=True, eq=False)
class LookAt(_OnHandle):
    """A direction fixed to the handle's joint points from the handle to a target."""

    target: Point
    axis: Point = (0.0, 0.0, 1.0)
    kind: ClassVar[str] = "look-at"
    unit: ClassVar[str] = "rad"

    def blocks(self, space: PoseSpace) -> list[Block]:
        axis = unit_vector(self._vector(self.axis, "axis"), self.label)
        return [self._block(space, Kind.LOOK_AT, *self._vector(self.target, "target"), *axis)]


@dataclass(frozen=True, eq=False)
class Distance(_OnHandle):
    """Two handles are this far apart, in metres."""

    other: OnOther
    distance: Annotated[float, Range(least=0.0)]
    kind: ClassVar[str] = "distance"
    inequality: ClassVar[bool] = False

    def blocks(self, space: PoseSpace) -> list[Block]:
        if not (np.isfinite(self.distance) and self.distance >= 0):
            raise InvalidValueError(
                f"{self.label}: distance must be a finite number >= 0; got {self.distance}"
            )
        self._vector([self.distance], "distance", 1)
        other = Handle(self.other) if isinstance(self.other, str) else self.other
        joint, at = other.on(space.skeleton)
        offset = self._vector(at, "the other handle's offset")
        first = self._block(space, Kind.DISTANCE, *offset, self.distance)
        return [Block(first.kind, first.joint, first.parameters, other=joint, inequality=self.inequality)]


@dataclass(frozen=True, eq=False)
class Beyond(Distance):
    """Two handles are at least this far apart, in metres; of the ends of two bones, this bounds the bend between."""

    kind: ClassVar[str] = "beyond"
    inequality: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class Apart(Constraint):
    """Two bones, named by the joints they begin at, are at least this far apart, in metres."""

    bone: str
    other: str
    distance: Annotated[float, Range(above=0.0)]
    kind: ClassVar[str] = "apart"

    @property
    def _fixed(self) -> tuple[object, ...]:
        return (self.bone,)

    def _describe(self) -> str:
        return f"{self.bone} apart from {self.other}"

    def blocks(self, space: PoseSpace) -> list[Block]:
        (least,) = finite_vector([self.distance], f"{self.label}: distance", 1)
        joint, other = (space.skeleton.index(name) for name in (self.bone, self.other))
        ends = [space.skeleton.bone_end(one) for one in (joint, other)]
        parameters = (0.0, 0.0, 0.0, *ends[0], *ends[1], least)
        return [Block(Kind.APART, joint, parameters, other=other, inequality=True)]


@dataclass(frozen=True, eq=False)
class Inside(Constraint):
    """An angle is inside its range, linearised at the pose `q`: `excess` is how far beyond, `slope` its change."""

    excess: float
    slope: Array
    q: Array
    kind: ClassVar[str] = "inside"
    unit: ClassVar[str] = "rad"

    def blocks(self, space: PoseSpace) -> list[Block]:  # noqa: ARG002
        return [Block(Kind.LINEAR, 0, (self.excess, *-self.slope, *self.q), inequality=True)]


@dataclass(frozen=True, eq=False)
class CentreOfMass(Constraint):
    """The centre of mass is above a support: a point on the ground (x, z), or anywhere inside a convex polygon."""

    support: Annotated[Sequence[Vector], Read(_support_from)]
    kind: ClassVar[str] = "centre-of-mass"

    @property
    def _fixed(self) -> tuple[object, ...]:
        return (len(self._sides),)

    def blocks(self, space: PoseSpace) -> list[Block]:  # noqa: ARG002
        return self._sides

    @cached_property
    def _sides(self) -> list[Block]:
        corners = [finite_vector(corner, f"{self.label}: support", 2) for corner in self.support]
        if len(corners) == 1:
            x, z = corners[0]
            planes, inequality = [(1.0, 0.0, 0.0, x), (0.0, 0.0, 1.0, z)], False
        elif len(corners) >= 3:
            planes, inequality = _inward([(float(x), float(z)) for x, z in corners]), True
        else:
            raise InvalidValueError(
                f"{self.label}: a support is one point or a polygon of three or more, as (x, z)"
            )
        no_offset = (0.0, 0.0, 0.0)
        return [
            Block(Kind.CENTRE_OF_MASS, 0, (*no_offset, *plane), inequality=inequality) for plane in planes
        ]


def _inward(corners: list[tuple[float, float]]) -> list[tuple[float, float, float, float]]:
    """The half-planes of a convex polygon on the ground; plain numbers, because a dragged body needs them anew."""
    middle_x, middle_z = (sum(along) / len(corners) for along in zip(*corners, strict=True))
    planes = []
    for (x, z), (next_x, next_z) in zip(corners, [*corners[1:], corners[0]], strict=True):
        across, ahead = next_z - z, x - next_x
        if (length := math.hypot(across, ahead)) > 0.0:
            if across * (middle_x - x) + ahead * (middle_z - z) < 0.0:  # the corners are in the other order
                length = -length
            planes.append((across / length, 0.0, ahead / length, (across * x + ahead * z) / length))
    return planes


@dataclass(frozen=True, eq=False)
class Pinned(Constraint):
    """Joints keep the rotations (relative to their parents) of a given pose vector; a body part is several joints."""

    joints: Sequence[str]
    q: Array
    unit: ClassVar[str] = "rad"

    @property
    def _fixed(self) -> tuple[object, ...]:
        return (tuple(self.joints), np.asarray(self.q).tobytes() if self.hard else b"")

    def blocks(self, space: PoseSpace) -> list[Block]:
        q, found = space.checked(self.q), []
        for slot in self.slots(space):
            turn = q[7 + 3 * slot : 10 + 3 * slot]
            found.append(Block(Kind.ROTATION, int(space.moving[slot]), (0.0, 0.0, 0.0, *turn), other=slot))
        return found

    def slots(self, space: PoseSpace) -> list[int]:
        """Indices of the pinned exponential maps; joints without degrees of freedom have none."""
        joints = [space.skeleton.index(name) for name in self.joints]
        return [int(slot) for slot, joint in enumerate(space.moving) if joint in joints]

    def _describe(self) -> str:
        return f"pinned {', '.join(self.joints)}"


_OWN: tuple[type[Constraint], ...]
_OWN = (
    Position,
    Against,
    Orientation,
    LookAt,
    Line,
    Plane,
    HalfSpace,
    Distance,
    Apart,
    CentreOfMass,
    Projection,
)
CONSTRAINTS: Registry[type[Constraint]] = Registry("kind of constraint", {own.kind: own for own in _OWN})


def register_constraint(constraint: type[Constraint]) -> None:
    """Register a kind of constraint, for scripts and `poise pose --constraints`."""
    CONSTRAINTS.register(constraint.kind, constraint)


def constraint_from(table: Table) -> Constraint:
    """Create a constraint of the kind named in its table."""
    return CONSTRAINTS[table.get("kind", Annotated[str, Among(CONSTRAINTS)])].from_table(table)


def finite_vectors(values: Any, shape: tuple[int, ...], largest: float = FARTHEST) -> Array:
    """Return the targets of many constraints as an array of this shape; raise if one is not finite and plausible."""
    try:
        vectors = np.array(values)
        if vectors.dtype.kind == "c":
            raise TypeError
        vectors = vectors.astype(np.float64).reshape(shape)
    except (TypeError, ValueError, OverflowError):
        vectors = np.full(shape, np.nan)
    if not np.all(np.abs(vectors) <= largest):
        raise InvalidValueError(f"every target must be {shape[-1]} finite numbers up to {largest:g}")
    return vectors


def finite_vector(value: Vector, what: str, size: int, largest: float = FARTHEST) -> Array:
    """Return `value` as `size` finite numbers of magnitude at most `largest`; raise otherwise."""
    try:
        vector = np.asarray(value)
        if vector.dtype.kind == "c":
            raise TypeError
        vector = vector.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValueError(f"{what} must be {size} numbers; got {value!r:.80}") from None
    if vector.shape != (size,):
        raise InvalidValueError(f"{what} must be {size} numbers; got shape {vector.shape}")
    if not all(abs(number) <= largest for number in vector.tolist()):  # faster than NumPy for a few
        wanted = f"within {largest:,.0f} of zero" if np.isfinite(vector).all() else "finite"
        raise InvalidValueError(f"{what} must be {wanted}; got {vector.tolist()}")
    return vector


def unit_vector(vector: Array, what: str) -> Array:
    """The vector scaled to length one; raise if it is zero."""
    length = np.linalg.norm(vector)
    if length == 0:
        raise InvalidValueError(f"{what}: a direction must not be zero")
    return np.asarray(vector / length)


def normals_of(direction: Array) -> tuple[Array, Array]:
    """Two unit vectors perpendicular to a unit vector and to each other."""
    axis = np.eye(3)[np.argmin(np.abs(direction))]
    first = np.cross(direction, axis)
    first /= np.linalg.norm(first)
    return first, np.cross(direction, first)
