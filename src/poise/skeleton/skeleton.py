"""Skeletons: a tree of joints with offsets in metres, immutable, and the poses they take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, SkeletonError, UnknownNameError
from poise.geometry import rotations
from poise.savable import Savable
from poise.skeleton.measure import standing_height
from poise.skeleton.roles import guess_roles, path
from poise.types import Array

EXACT = 1e-6  # largest deviation of a quaternion's length from one that is kept: that of single precision
CLOSE = 1e-2  # largest one that is normalised: that of half precision, or of four digits in a file
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class JointLimits:
    """A box per joint on the exponential map e about that joint's reference rotation: R = reference exp(e)."""

    references: Float[Array, "joints 4"]
    lower: Float[Array, "joints 3"]
    upper: Float[Array, "joints 3"]

    def __post_init__(self) -> None:
        for name in ("references", "lower", "upper"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        joints = len(self.references) if self.references.ndim else 0
        if self.references.shape != (joints, 4) or not self.lower.shape == self.upper.shape == (joints, 3):
            raise InvalidValueError("joint limits need references (joints, 4), lower and upper (joints, 3)")
        if not np.all(self.lower <= self.upper):
            raise InvalidValueError("joint limits need lower <= upper for every joint and axis")


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints in an order in which parents come first; joint 0 is the root. Offsets are from the parent, in metres.

    In the rest pose every rotation is the identity and every joint's frame is aligned with the world's. `orders` are
    the rotation channels a file uses for the joint ("ZYX"); an end site has none ("") and never rotates.
    """

    names: tuple[str, ...]
    parents: Int[Array, "joints"]
    offsets: Float[Array, "joints 3"]
    orders: tuple[str, ...] = ()
    limits: JointLimits | None = None
    role_overrides: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = tuple(self.names) if np.iterable(self.names) else ()
        if isinstance(self.names, str) or not all(isinstance(name, str) for name in names):
            raise SkeletonError(f"joint names are a sequence of texts; got {self.names!r:.40}")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "parents", read_only(self.parents, dtype=np.int64))
        object.__setattr__(self, "offsets", read_only(self.offsets))
        if self.parents.shape != (len(self.names),):
            raise SkeletonError(f"{len(self.names)} names need as many parents; got {self.parents.shape}")
        inner = {0, *self.parents.tolist()}
        default = ("ZYX" if joint in inner else "" for joint in range(len(names)))
        object.__setattr__(self, "orders", tuple(self.orders) or tuple(default))
        object.__setattr__(self, "role_overrides", MappingProxyType(dict(self.role_overrides)))
        self._check()

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Skeleton)
            and self.same_topology(other)
            and self.orders == other.orders
            and np.array_equal(self.offsets, other.offsets)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.names, self.parents.tobytes(), self.offsets.tobytes()))

    def __repr__(self) -> str:
        return f"Skeleton({len(self)} joints, root {self.names[0]!r})"

    def __reduce__(self) -> tuple[type[Skeleton], tuple[Any, ...]]:
        """Rebuild the same skeleton in another process."""
        return Skeleton, (
            self.names, self.parents, self.offsets, self.orders, self.limits, dict(self.role_overrides),
        )  # fmt: skip

    def index(self, name: str) -> int:
        """The index of the joint with this role or name; raise an error with close matches if there is none.

        Roles come first: SMPL calls its ankles `left_ankle`, and its `left_foot` is not the foot's joint.
        """
        found = self._index_of.get(self.roles.get(name, name))
        if found is None:
            raise UnknownNameError("joint or role", name, (*self.names, *self.roles))
        return found

    def same_topology(self, other: Skeleton) -> bool:
        """Whether both have the same joints with the same parents; limb lengths may differ."""
        return self.names == other.names and np.array_equal(self.parents, other.parents)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The indices of each joint's children."""
        found: list[list[int]] = [[] for _ in self.names]
        for joint, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                found[parent].append(joint)
        return tuple(tuple(joints) for joints in found)

    def bone_end(self, joint: int) -> Float[Array, "3"]:
        """The end of a joint's bone in its frame: the mean of its children, or of its end sites if it has no others."""
        grown = [child for child in self.children[joint] if self.children[child]]
        ends = self.offsets[grown or list(self.children[joint])]
        return np.asarray(ends.mean(axis=0)) if len(ends) else np.zeros(3)

    @cached_property
    def is_end_site(self) -> Array:
        """Per joint, whether it is an end site: a point that never rotates."""
        return read_only([order == "" for order in self.orders], dtype=np.bool_)

    def chain(self, name: str) -> tuple[int, ...]:
        """Joint indices from the root down to the named joint, both included."""
        return tuple(path(self, 0, self.index(name)))

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Role to joint name, guessed from names and geometry, with the overrides applied; see `skeleton.roles`."""
        return MappingProxyType({**guess_roles(self), **self.role_overrides})

    @cached_property
    def height(self) -> float:
        """The height in metres of the standing body, from its bone lengths; see `skeleton.measure`."""
        return standing_height(self)

    def with_roles(self, **roles: str) -> Skeleton:
        """The same skeleton with these roles given by hand: `with_roles(left_hand="Wrist_L")`."""
        return replace(self, role_overrides={**self.role_overrides, **roles})

    def with_limits(self, limits: JointLimits | None) -> Skeleton:
        """The same skeleton with these joint limits."""
        return replace(self, limits=limits)

    def with_offsets(self, offsets: Float[Array, "joints 3"]) -> Skeleton:
        """The same topology with other limb lengths."""
        return replace(self, offsets=offsets)

    def scaled(self, factor: float) -> Skeleton:
        """The same body scaled."""
        return replace(self, offsets=self.offsets * factor)

    @cached_property
    def given_roles(self) -> frozenset[tuple[str, str]]:
        """The roles given by hand."""
        return frozenset(self.role_overrides.items())

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return {name: joint for joint, name in enumerate(self.names)}

    def _check(self) -> None:
        count = len(self.names)
        if count == 0:
            raise SkeletonError("a skeleton needs at least one joint")
        if not (
            self.parents.shape == (count,) and self.offsets.shape == (count, 3) and len(self.orders) == count
        ):
            raise SkeletonError(
                f"{count} names need parents ({count},), offsets ({count}, 3) and {count} orders; "
                f"got {self.parents.shape}, {self.offsets.shape} and {len(self.orders)}"
            )
        if not np.all(np.isfinite(self.offsets)):
            raise SkeletonError("joint offsets must be finite")
        if self.parents[0] != -1 or np.any(self.parents[1:] < 0) or np.any(self.parents >= np.arange(count)):
            raise SkeletonError(
                "joint 0 must be the only root (parent -1) and parents must come before their children"
            )
        if len(set(self.names)) != count:
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise SkeletonError(f"joint names must be unique; given more than once: {', '.join(twice)}")
        for role, name in self.role_overrides.items():
            if name not in self.names:
                raise UnknownNameError(f"joint for the role {role!r}:", name, self.names)


class Positions(np.lib.mixins.NDArrayOperatorsMixin):
    """World positions of joints, in metres: by joint name or role, and as an array (..., joints, 3).

    `positions["right_hand"]` is one joint, in every frame. Other indices, arithmetic, NumPy functions and
    `np.asarray(positions)` use the array and return plain arrays.
    """

    def __init__(self, skeleton: Skeleton, values: Float[Array, "*frames joints 3"]) -> None:
        self.skeleton, self._values = skeleton, read_only(values)

    @classmethod
    def of(
        cls, skeleton: Skeleton, roots: Float[Array, "*frames 3"], rotations: Float[Array, "*frames joints 4"]
    ) -> Positions:
        """Compute positions by forward kinematics, for one pose or many."""
        from poise.skeleton.kinematics import world_transforms  # compiled, which a skeleton is not

        return cls(skeleton, world_transforms(skeleton, roots, rotations)[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self._values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Array]:
        return iter(self._values)

    def __getitem__(self, key: Any) -> Array:
        """A joint by its name or role; with any other index, that element of the array."""
        return self._values[..., self.skeleton.index(key), :] if isinstance(key, str) else self._values[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._values, dtype=dtype) if copy else np.asarray(self._values, dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(value) if isinstance(value, Positions) else value for value in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        return f"Positions({', '.join(self.skeleton.names)}; an array {self.shape})"


@dataclass(frozen=True, eq=False, repr=False)
class Pose(Savable):
    """One frame: the root's position, and every joint's rotation relative to its parent (identity at end sites)."""

    skeleton: Skeleton
    root_position: Float[Array, "3"]
    rotations: Float[Array, "joints 4"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "root_position", read_only(self.root_position))
        object.__setattr__(self, "rotations", read_only(self.rotations))
        expected = (len(self.skeleton), 4)
        if self.root_position.shape != (3,) or self.rotations.shape != expected:
            raise InvalidValueError(
                f"a pose of this skeleton needs a root position (3,) and rotations {expected}; "
                f"got {self.root_position.shape} and {self.rotations.shape}"
            )
        if not np.isfinite(self.root_position).all():
            raise InvalidValueError(f"a pose's root position must be finite; got {self.root_position}")
        object.__setattr__(self, "rotations", unit_quaternions(self.rotations, "a pose's rotations"))

    @classmethod
    def rest(cls, skeleton: Skeleton, *, root_position: Sequence[float] = (0.0, 0.0, 0.0)) -> Pose:
        """The pose with all rotations at identity."""
        return cls(skeleton, np.asarray(root_position), np.tile(rotations.IDENTITY, (len(skeleton), 1)))

    @property
    def summary(self) -> str:
        """The number of joints, and the root's position."""
        return f"{len(self.skeleton)} joints, root at ({', '.join(f'{x:.3g}' for x in self.root_position)})"

    @cached_property
    def positions(self) -> Positions:
        """Joint positions, `pose.positions["right_hand"]`, computed on first access."""
        return Positions(self.skeleton, self.world[0])

    @cached_property
    def world(self) -> tuple[Float[Array, "joints 3"], Float[Array, "joints 3 3"]]:
        """World positions and rotations of the joints, computed on first access."""
        from poise.skeleton.kinematics import world_transforms  # compiled, which a skeleton is not

        positions, matrices = world_transforms(self.skeleton, self.root_position, self.rotations)
        positions.flags.writeable = matrices.flags.writeable = False
        return positions, matrices


def kept_for_body(function: Function) -> Function:
    """Cache a function's results by body: equal skeletons may have different roles, which count here."""

    @lru_cache(maxsize=256)
    def kept(_roles: frozenset[tuple[str, str]], skeleton: Skeleton, *given: Any) -> Any:
        return function(skeleton, *given)

    @wraps(function)
    def found(skeleton: Skeleton, *given: Any) -> Any:
        return kept(skeleton.given_roles, skeleton, *given)

    return cast(Function, found)


def read_only(values: Any, *, dtype: Any = np.float64) -> Array:
    """A copy of the values as a contiguous read-only array; an array that is already read-only is returned as is."""
    if (
        isinstance(values, np.ndarray)
        and not values.flags.writeable
        and values.dtype == dtype
        and values.flags.c_contiguous
    ):
        return values
    try:
        array = np.array(values, order="C")
        if array.dtype.kind in "cSU":
            raise TypeError(f"they are {array.dtype}")
        with np.errstate(invalid="ignore"):
            array = array.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(f"expected an array of numbers; got {values!r:.80} ({error})") from error
    array.flags.writeable = False
    return array


def unit_quaternions(values: Any, what: str) -> Array:
    """A read-only copy of rotations; those almost of unit length are normalised with a warning, others an error."""
    found = read_only(values)
    lengths = np.sqrt(np.einsum("...i,...i->...", found, found))
    off = float(np.abs(lengths - 1.0).max(initial=0.0))
    if off <= EXACT:
        return found
    if not off <= CLOSE:  # also for NaN
        raise InvalidValueError(
            f"{what} must be finite unit quaternions (w, x, y, z); the length of one is "
            f"{lengths.flat[np.argmax(np.nan_to_num(np.abs(lengths - 1.0), nan=np.inf))]:.3g}"
        )
    warnings.warn(f"{what} were normalised: lengths were up to {off:.1g} from one", stacklevel=4)
    return read_only(found / lengths[..., None])
