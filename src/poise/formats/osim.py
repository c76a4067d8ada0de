"""OpenSim models (`.osim`, OpenSim 3 and 4): bodies, joints and coordinates, forward kinematics, and scaling.

OpenSim's own definitions (Delp et al. 2007; Seth et al. 2010 for CustomJoint): a joint rotates about up to three axes
in turn and then translates along three, each by a function of one coordinate. Supported are the joints in `_SIMPLE`,
CustomJoint, functions in `_CURVES`, and coordinates coupled to one other. Muscles and masses are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring
from xml.etree.ElementTree import ParseError as XmlError

import numpy as np
from jaxtyping import Bool, Float
from numpy.polynomial import Polynomial

from poise.errors import ParseError
from poise.formats.files import existing_file
from poise.geometry import rotations
from poise.types import Array

GROUND = -1
LARGEST = 1e9  # OpenSim's value for a range without an end

_X, _Y, _Z = (tuple(row) for row in np.eye(3).tolist())
_SIMPLE: dict[str, tuple[tuple[bool, tuple[float, ...]], ...]] = {
    "WeldJoint": (),
    "PinJoint": ((True, _Z),),
    "SliderJoint": ((False, _X),),
    "UniversalJoint": ((True, _X), (True, _Y)),
    "PlanarJoint": ((True, _Z), (False, _X), (False, _Y)),
    "BallJoint": ((True, _X), (True, _Y), (True, _Z)),
    "GimbalJoint": ((True, _X), (True, _Y), (True, _Z)),
    "FreeJoint": ((True, _X), (True, _Y), (True, _Z), (False, _X), (False, _Y), (False, _Z)),
}  # whether each coordinate rotates or translates, and its axis


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of one coordinate, linear outside its range, times a factor."""

    inside: Callable[[Array], Array]
    slope_inside: Callable[[Array], Array]
    range: tuple[float, float] = (-np.inf, np.inf)
    factor: float = 1.0

    def both(self, x: Array) -> tuple[Array, Array]:
        """Its values, and its derivatives there."""
        near = np.clip(x, *self.range)
        slope = self.slope_inside(near)
        return self.factor * (self.inside(near) + slope * (x - near)), self.factor * slope


@dataclass(frozen=True, eq=False)
class OsimAxis:
    """One of a joint's axes; a coordinate of -1 means a constant."""

    turns: bool
    axis: Float[Array, "3"]
    curve: Curve
    coordinate: int

    def longer(self, factors: Float[Array, "3"]) -> OsimAxis:
        """The axis in a body scaled along its own axes."""
        factor = float(np.abs(self.axis) @ factors / np.abs(self.axis).sum())
        return replace(self, curve=replace(self.curve, factor=self.curve.factor * factor))


@dataclass(frozen=True, eq=False)
class OsimJoint:
    """The joint of a body on its parent: its frame in both, and its axes, rotations first."""

    parent: int
    in_parent: Float[Array, "4 4"]
    in_child: Float[Array, "4 4"]
    axes: tuple[OsimAxis, ...]


@dataclass(frozen=True)
class OsimCoordinate:
    """A coordinate with its default; the range is infinite unless the model clamps it to less than a full turn."""

    name: str
    default: float
    range: tuple[float, float]
    locked: bool
    turns: bool
    wraps: bool = False
    """Whether it is an angle that the model clamps to one full turn."""


@dataclass(frozen=True, eq=False)
class OsimModel:
    """The bodies of a model, parents first, each with its joint."""

    path: Path
    bodies: tuple[str, ...]
    joints: tuple[OsimJoint, ...]
    coordinates: tuple[OsimCoordinate, ...]
    couplings: dict[int, tuple[int, Curve]]
    """For a dependent coordinate: the one it depends on, and the function."""
    markers: dict[str, tuple[int, Float[Array, "3"]]]
    """By label, the body and the place in its frame."""

    @cached_property
    def free(self) -> list[int]:
        """The coordinates that are neither locked nor dependent."""
        return [k for k, one in enumerate(self.coordinates) if not one.locked and k not in self.couplings]

    @property
    def defaults(self) -> Float[Array, "coordinates"]:
        """The default pose."""
        return self.followed(np.array([[one.default for one in self.coordinates]]))[0]

    def followed(self, values: Float[Array, "frames coordinates"]) -> Float[Array, "frames coordinates"]:
        """Values of all coordinates, with the dependent ones computed."""
        whole = values.copy()
        for coordinate, (leader, curve) in self.couplings.items():
            whole[:, coordinate] = curve.both(whole[:, leader])[0]
        return whole

    def scaled(self, factors: Float[Array, "bodies 3"]) -> OsimModel:
        """The model with every body scaled along its own axes, as by OpenSim's Scale Tool."""
        own = np.concatenate([factors, np.ones((1, 3))])  # the last one is the ground
        joints = (
            replace(
                joint,
                in_parent=_stretched(joint.in_parent, own[joint.parent]),
                in_child=_stretched(joint.in_child, own[body]),
                axes=tuple(axis if axis.turns else axis.longer(own[joint.parent]) for axis in joint.axes),
            )
            for body, joint in enumerate(self.joints)
        )
        markers = {label: (body, place * factors[body]) for label, (body, place) in self.markers.items()}
        return replace(self, joints=tuple(joints), markers=markers)

    @cached_property
    def axes(self) -> list[tuple[int, OsimAxis]]:
        """Every joint's axes with its body; translations first, because they are along the parent's axes."""
        return [
            (body, one)
            for body, joint in enumerate(self.joints)
            for one in sorted(joint.axes, key=attrgetter("turns"))
        ]

    @cached_property
    def axes_of(self) -> list[list[int]]:
        """For each body the indices of its joint's axes."""
        return [
            [k for k, (body, _) in enumerate(self.axes) if body == wanted]
            for wanted in range(len(self.bodies))
        ]

    @cached_property
    def above(self) -> Bool[Array, "bodies bodies"]:
        """For each body, a mask of itself and its ancestors."""
        found = np.eye(len(self.bodies), dtype=bool)
        for body, joint in enumerate(self.joints):
            if joint.parent != GROUND:
                found[body] |= found[joint.parent]
        return found


@dataclass(frozen=True, eq=False)
class OsimPlacing:
    """World positions of a model's bodies: joint centres, rotations, and the motion of each joint axis."""

    centres: Float[Array, "frames bodies 3"]
    turns: Float[Array, "frames bodies 3 3"]
    axes: Float[Array, "frames axes 3"]
    """The axes of `OsimModel.axes` in the world, times the derivative by their coordinate."""
    pivots: Float[Array, "frames axes 3"]


def placed(model: OsimModel, values: Float[Array, "frames coordinates"]) -> OsimPlacing:
    """Forward kinematics at values of all coordinates (`OsimModel.followed`)."""
    coordinates = [one.coordinate for _, one in model.axes]
    given = np.concatenate([values, np.zeros((len(values), 1))], axis=1)[:, coordinates]
    amounts, rates = np.empty_like(given), np.empty_like(given)  # of each axis, and their derivatives
    for number, (_, one) in enumerate(model.axes):
        amounts[:, number], rates[:, number] = one.curve.both(given[:, number])
    cross = rotations.skew(np.array([one.axis for _, one in model.axes]))
    sines, versines = np.sin(amounts)[..., None, None], (1.0 - np.cos(amounts))[..., None, None]
    bent: Array = sines * cross + versines * (cross @ cross)  # Rodrigues
    spun = np.eye(3) + bent
    frames, count = len(values), len(model.bodies)
    places, turns = np.zeros((count + 1, frames, 3)), np.tile(np.eye(3), (count + 1, frames, 1, 1))
    centres, along = np.empty((count, frames, 3)), np.empty((len(model.axes), frames, 3))
    for body, joint in enumerate(model.joints):  # the ground is the last body
        place = places[joint.parent] + turns[joint.parent] @ joint.in_parent[:3, 3]
        turn = turns[joint.parent] @ joint.in_parent[:3, :3]
        for number in model.axes_of[body]:
            axis = model.axes[number][1]
            along[number] = turn @ axis.axis
            if axis.turns:
                turn = turn @ spun[:, number]
            else:
                place = place + along[number] * amounts[:, number, None]
        centres[body] = place
        turns[body] = turn @ joint.in_child[:3, :3].T
        places[body] = place - turns[body] @ joint.in_child[:3, 3]
    pivots = centres[[body for body, _ in model.axes]]
    moving = np.moveaxis(along, 0, 1) * rates[..., None]
    return OsimPlacing(
        np.moveaxis(centres, 0, 1), np.moveaxis(turns[:-1], 0, 1), moving, np.moveaxis(pivots, 0, 1)
    )


def _stretched(frame: Float[Array, "4 4"], factors: Float[Array, "3"]) -> Float[Array, "4 4"]:
    moved = frame.copy()
    moved[:3, 3] *= factors
    return moved


# --- reading -------------------------------------------------------------------------------------------------------


def read_model(path: str | os.PathLike[str]) -> OsimModel:
    """Read a model from a file of OpenSim 3 or 4."""
    file = existing_file(path)
    try:
        root = fromstring(file.read_bytes().replace(b"::", b".")).find("Model")  # C++ names are tags
        if root is None:
            raise ValueError("there is no Model element")
        return _model(root, file)
    except (XmlError, KeyError, ValueError, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not an OpenSim model that Poise can read: {error}", path=file) from error


def _model(root: Element, file: Path) -> OsimModel:
    hung = _hung(root)
    order: list[str] = []  # parents first
    while len(order) < len(hung):
        ready = [body for body in hung if body not in order and hung[body][0] in ("ground", *order)]
        if not ready:
            raise ValueError("its bodies form a cycle, or a parent is missing")
        order += ready
    declared = [one for body in order for one in hung[body][3].iter("Coordinate")]
    names = [one.attrib["name"] for one in declared]
    joints = []
    for body in order:
        parent, in_parent, in_child, joint = hung[body]
        number = GROUND if parent == "ground" else order.index(parent)
        joints.append(OsimJoint(number, in_parent, in_child, _axes(joint, names)))
    turning = {
        axis.coordinate
        for joint in joints
        for axis in joint.axes
        if axis.turns and np.isinf(axis.curve.range[1])
    }
    coordinates = []
    for number, one in enumerate(declared):
        low, high = _numbers(one.findtext("range") or "-1e9 1e9", 2).tolist()
        clamped, locked = ((one.findtext(key) or "").strip() == "true" for key in ("clamped", "locked"))
        whole_turn = number in turning and high - low > 1.99 * np.pi
        span = (low, high) if clamped and not whole_turn else (-np.inf, np.inf)
        default = _number(one, "default_value", 0.0)
        wraps, turns = clamped and whole_turn, number in turning
        coordinates.append(OsimCoordinate(names[number], default, span, locked, turns, wraps))
    if not coordinates:
        raise ValueError("no joint can move")
    couplings = {}
    for constraint in root.iter("CoordinateCouplerConstraint"):
        leaders = _text(constraint, "independent_coordinate_names").split()
        if len(leaders) != 1:
            raise ValueError(f"a coordinate depends on {' and '.join(leaders)}; only one is supported")
        follower = names.index(_text(constraint, "dependent_coordinate_name"))
        function = _curve_in(constraint.find("coupled_coordinates_function"))
        couplings[follower] = names.index(leaders[0]), function
    return OsimModel(file, tuple(order), tuple(joints), tuple(coordinates), couplings, _markers(root, order))


def _markers(root: Element, bodies: list[str]) -> dict[str, tuple[int, Array]]:
    """The markers on bodies, as OpenSim 4 has them, or OpenSim 3."""
    found = {}
    for one in root.iter("Marker"):
        body = _last((one.findtext("socket_parent_frame") or one.findtext("body") or "").strip())
        if body in bodies:
            found[one.attrib["name"]] = bodies.index(body), _numbers(_text(one, "location"), 3)
    return found


def _hung(root: Element) -> dict[str, tuple[str, Array, Array, Element]]:
    """Each body's parent, the joint's frame in both, and the joint, as OpenSim 4 has them, else OpenSim 3."""
    found: dict[str, tuple[str, Array, Array, Element]] = {}
    for joint in root.iterfind("JointSet/objects/*"):
        frames = {}
        for frame in joint.iter("PhysicalOffsetFrame"):
            offset = _frame(frame, "translation", "orientation")
            frames[frame.attrib["name"]] = _last(_text(frame, "socket_parent")), offset
        ends = (_last(_text(joint, f"socket_{end}_frame")) for end in ("parent", "child"))
        (parent, in_parent), (child, in_child) = (frames.get(end, (end, np.eye(4))) for end in ends)
        found[child] = parent, in_parent, in_child, joint
    for body in root.iterfind("BodySet/objects/Body") if not found else ():
        for joint in body.iterfind("Joint/*"):
            in_parent = _frame(joint, "location_in_parent", "orientation_in_parent")
            in_child = _frame(joint, "location", "orientation")
            found[body.attrib["name"]] = _text(joint, "parent_body"), in_parent, in_child, joint
    return found


def _axes(joint: Element, names: list[str]) -> tuple[OsimAxis, ...]:
    own = [names.index(one.attrib["name"]) for one in joint.iter("Coordinate")]
    if joint.tag == "CustomJoint":
        axes = []
        for one in joint.iter("TransformAxis"):
            used, axis = (one.findtext("coordinates") or "").split(), _numbers(_text(one, "axis"), 3)
            if len(used) > 1:
                several = " and ".join(used)
                raise ValueError(f"a joint's axis depends on {several}; only one coordinate is supported")
            if np.linalg.norm(axis) < 1e-9:
                raise ValueError("a joint's axis has no length")
            turns, number = one.attrib["name"].startswith("rotation"), names.index(used[0]) if used else -1
            axes.append(OsimAxis(turns, axis / np.linalg.norm(axis), _curve_in(one), number))
        return tuple(axis for axis in axes if axis.coordinate >= 0 or axis.curve.both(np.zeros(1))[0] != 0.0)
    if joint.tag not in _SIMPLE:
        raise ValueError(f"a joint is a {joint.tag}; valid: CustomJoint, {', '.join(_SIMPLE)}")
    straight = _polynomial([0.0, 1.0])
    return tuple(
        OsimAxis(turns, np.array(axis), straight, coordinate)
        for (turns, axis), coordinate in zip(_SIMPLE[joint.tag], own, strict=True)
    )


def _curve_in(element: Element | None) -> Curve:
    """The function below an element; a MultiplierFunction scales the one inside it."""
    for one in element.iter() if element is not None else ():
        if one.tag == "MultiplierFunction":
            inner = _curve_in(one.find("function") if one.find("function") is not None else one[0])
            return replace(inner, factor=inner.factor * _number(one, "scale", 1.0))
        if one.tag in _CURVES:
            return _CURVES[one.tag](one)
    raise ValueError(f"unsupported kind of function; valid: MultiplierFunction, {', '.join(_CURVES)}")


def _polynomial(coefficients: list[float]) -> Curve:
    """A polynomial from its coefficients, the constant first."""
    if len(coefficients) <= 2:
        start, slope = (*coefficients, 0.0)[:2]
        return Curve(lambda x: start + slope * x, lambda x: np.full_like(x, slope))
    curve = Polynomial(coefficients)
    return Curve(curve, curve.deriv())


def _spline(element: Element) -> Curve:
    """SIMM's cubic spline (Forsythe, Malcolm and Moler 1977): the end conditions use a cubic through four points."""
    # not with the module: it imports scipy.optimize, which the studio's first page can spare
    from scipy.interpolate import make_interp_spline

    x, y = (_numbers(_text(element, key)) for key in ("x", "y"))
    if len(x) < 4:
        raise ValueError(f"a spline has {len(x)} points; expected at least four")
    if np.any(np.diff(x) <= 1e-9 * np.ptp(x)):
        raise ValueError("the x values of a spline must increase")
    ends = ([(3, 6.0 * _third_difference(x[:4], y[:4]))], [(3, 6.0 * _third_difference(x[-4:], y[-4:]))])
    curve = make_interp_spline(x, y, k=3, bc_type=ends)
    return Curve(curve, curve.derivative(), (float(x[0]), float(x[-1])))


def _third_difference(x: Array, y: Array) -> float:
    """The leading coefficient of the cubic through four points (Newton's divided difference)."""
    apart = np.prod(np.subtract.outer(x, x) + np.eye(4), axis=1)
    return float(np.sum(y / apart))


_CURVES: dict[str, Callable[[Element], Curve]] = {
    "LinearFunction": lambda one: _polynomial(_numbers(_text(one, "coefficients"))[::-1].tolist()),
    "PolynomialFunction": lambda one: _polynomial(_numbers(_text(one, "coefficients"))[::-1].tolist()),
    "Constant": lambda one: _polynomial([_number(one, "value", 0.0)]),
    "SimmSpline": _spline,
    "NaturalCubicSpline": _spline,
}


def _frame(element: Element, place: str, turn: str) -> Float[Array, "4 4"]:
    frame = np.eye(4)
    frame[:3, :3] = rotations.matrix_from_euler(_numbers(element.findtext(turn) or "0 0 0", 3), "XYZ")
    frame[:3, 3] = _numbers(element.findtext(place) or "0 0 0", 3)
    return frame


def _numbers(text: str, count: int | None = None) -> Array:
    values = np.array([float(word) for word in text.split()])
    if (count is not None and len(values) != count) or not np.all(np.abs(values) <= LARGEST):
        raise ValueError(f"expected {count or ''} numbers up to {LARGEST:g}; got {text.strip()[:80]!r}")
    return values


def _number(element: Element, key: str, usual: float) -> float:
    found = element.findtext(key)
    return usual if found is None else float(_numbers(found, 1)[0])


def _text(element: Element, key: str) -> str:
    found = element.findtext(key)
    if found is None or not found.strip():
        raise ValueError(f"a {element.tag} without {key}")
    return found.strip()


def _last(path: str) -> str:
    return path.rsplit("/", maxsplit=1)[-1]
