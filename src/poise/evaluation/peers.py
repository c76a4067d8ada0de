"""Other IK libraries on the same body: pinocchio, placo, mink and pink, each with its own usual loop.

Each builds the body from the pose space (its free joints; the others are fixed) and solves like our methods: from its
current pose, until every handle is within the tolerance or the loop ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from xml.etree import ElementTree as Xml

import numpy as np
from jaxtyping import Float

from poise.skeleton.pose_space import PoseSpace
from poise.types import Array

TOLERANCE = 0.010  # metres: the papers' threshold
MOST_STEPS = 100
DAMPING = {"pinocchio": 1e-2, "placo": 1e-2, "mink": 1e-2, "pink": 1e-4}
"""Settings of each peer's loop: of those tried, the fastest for a cold pose plus a tracked frame."""


@runtime_checkable
class Contender(Protocol):
    """A solver with a current pose that can be moved to targets."""

    def reset(self) -> None:
        """Reset to the rest pose."""
        ...

    def solve(self, targets: Float[Array, "handles 3"]) -> None:
        """Move from the current pose until the handles are at the targets."""
        ...

    def points(self) -> Float[Array, "handles 3"]:
        """Handle positions, by its own kinematics."""
        ...


class Pinocchio:
    """Damped least squares in Python on pinocchio's Jacobians, as in its examples."""

    def __init__(self, space: PoseSpace, handles: Sequence[str]) -> None:
        import pinocchio as pin

        self._pin, self._model = pin, pinocchio_model(space)
        self._data = self._model.createData()
        self._joints = [self._model.getJointId(name) for name in _joints_of(space, handles)]
        self._rest = pin.neutral(self._model)
        self._rest[:3] = rest_root(space)
        self._jacobian = np.empty((3 * len(handles), self._model.nv))
        self._damping = DAMPING["pinocchio"] * np.eye(3 * len(handles))
        self.reset()

    def reset(self) -> None:
        self._q = self._rest.copy()

    def solve(self, targets: Float[Array, "handles 3"]) -> None:
        pin, model, data = self._pin, self._model, self._data
        for _ in range(MOST_STEPS):
            pin.computeJointJacobians(model, data, self._q)
            gap = targets - np.array([data.oMi[joint].translation for joint in self._joints])
            if np.max(np.einsum("hi,hi->h", gap, gap)) <= TOLERANCE**2:
                return
            for number, joint in enumerate(self._joints):
                rows = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)
                self._jacobian[3 * number : 3 * number + 3] = rows[:3]
            jacobian = self._jacobian
            step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + self._damping, gap.ravel())
            self._q = pin.integrate(model, self._q, step)

    def points(self) -> Float[Array, "handles 3"]:
        self._pin.forwardKinematics(self._model, self._data, self._q)
        return np.array([self._data.oMi[joint].translation for joint in self._joints])


class Placo:
    """placo's kinematics solver with a position task per handle; its spherical joints are three hinges each."""

    def __init__(self, space: PoseSpace, handles: Sequence[str]) -> None:
        import placo

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "robot.urdf")
            path.write_text(urdf(space), encoding="utf-8")
            self._robot = placo.RobotWrapper(str(path), placo.Flags.ignore_collisions)
        self._names = _joints_of(space, handles)
        self._solver = placo.KinematicsSolver(self._robot)
        self._solver.enable_joint_limits(False)
        self._solver.enable_velocity_limits(False)
        self._tasks = [self._solver.add_position_task(name, np.zeros(3)) for name in self._names]
        for name, task in zip(self._names, self._tasks, strict=True):
            task.configure(name, "soft", 1.0)
        self._solver.add_regularization_task(DAMPING["placo"])
        self._rest = self._robot.state.q.copy()
        self._rest[:3] = rest_root(space)
        self.reset()

    def reset(self) -> None:
        self._robot.state.q = self._rest.copy()
        self._robot.update_kinematics()

    def solve(self, targets: Float[Array, "handles 3"]) -> None:
        for task, target in zip(self._tasks, targets, strict=True):
            task.target_world = target
        for _ in range(MOST_STEPS):
            if np.max(np.linalg.norm(self.points() - targets, axis=1)) <= TOLERANCE:
                return
            self._solver.solve(True)
            self._robot.update_kinematics()

    def points(self) -> Float[Array, "handles 3"]:
        return np.array([self._robot.get_T_world_frame(name)[:3, 3] for name in self._names])


class Mink:
    """mink on MuJoCo, with a frame task per handle and the solver daqp."""

    def __init__(self, space: PoseSpace, handles: Sequence[str]) -> None:
        import mink
        import mujoco

        self._mink, model = mink, mujoco.MjModel.from_xml_string(mjcf(space))
        self._configuration = mink.Configuration(model)
        names = _joints_of(space, handles)
        self._bodies = [model.body(name).id for name in names]
        costs = {"position_cost": 1.0, "orientation_cost": 0.0, "lm_damping": 0.0}
        self._tasks = [mink.FrameTask(name, "body", **costs) for name in names]
        self._rest = self._configuration.q.copy()
        self.reset()

    def reset(self) -> None:
        self._configuration.update(self._rest.copy())

    def solve(self, targets: Float[Array, "handles 3"]) -> None:
        mink, configuration = self._mink, self._configuration
        for task, target in zip(self._tasks, targets, strict=True):
            task.set_target(mink.SE3.from_translation(target))
        for _ in range(MOST_STEPS):
            if np.max(np.linalg.norm(self.points() - targets, axis=1)) <= TOLERANCE:
                return
            step = mink.solve_ik(configuration, self._tasks, 1.0, "daqp", damping=DAMPING["mink"], limits=[])
            configuration.integrate_inplace(step, 1.0)

    def points(self) -> Float[Array, "handles 3"]:
        return np.asarray(self._configuration.data.xpos[self._bodies])


class Pink:
    """pink on pinocchio, with a frame task per handle and the solver daqp."""

    def __init__(self, space: PoseSpace, handles: Sequence[str]) -> None:
        import pink
        import pinocchio as pin

        self._pink, self._pin, model = pink, pin, pinocchio_model(space)
        names = _joints_of(space, handles)
        for name in names:
            place = model.getJointId(name), pin.SE3.Identity(), pin.FrameType.OP_FRAME
            model.addFrame(pin.Frame(f"{name} handle", *place))
        self._rest = pin.neutral(model)
        self._rest[:3] = rest_root(space)
        costs = {"position_cost": 1.0, "orientation_cost": 0.0}
        self._tasks = [pink.FrameTask(f"{name} handle", **costs) for name in names]
        self._frames = [model.getFrameId(f"{name} handle") for name in names]
        self._configuration = pink.Configuration(model, model.createData(), self._rest)

    def reset(self) -> None:
        self._configuration.update(self._rest.copy())

    def solve(self, targets: Float[Array, "handles 3"]) -> None:
        pin, pink, configuration = self._pin, self._pink, self._configuration
        for task, target in zip(self._tasks, targets, strict=True):
            task.set_target(pin.SE3(np.eye(3), target))
        for _ in range(MOST_STEPS):
            if np.max(np.linalg.norm(self.points() - targets, axis=1)) <= TOLERANCE:
                return
            settings = {"damping": DAMPING["pink"], "limits": [], "safety_break": False}
            step = pink.solve_ik(configuration, self._tasks, 1.0, "daqp", **settings)
            configuration.integrate_inplace(step, 1.0)

    def points(self) -> Float[Array, "handles 3"]:
        return np.array([self._configuration.data.oMf[frame].translation for frame in self._frames])


PEERS: Mapping[str, tuple[str, Callable[[PoseSpace, Sequence[str]], Contender]]] = {
    "pinocchio": ("pinocchio", Pinocchio),
    "placo": ("placo", Placo),
    "mink": ("mink", Mink),
    "pink": ("pink", Pink),
}
"""Each peer's module, and how to build its contender."""


def installed() -> list[str]:
    """The peers that can be imported here."""
    return [name for name, (module, _) in PEERS.items() if find_spec(module) is not None]


def rest_root(space: PoseSpace) -> Float[Array, "3"]:
    """The root's position in the rest pose."""
    return np.asarray(space.skeleton.offsets[0])


def _joints_of(space: PoseSpace, handles: Sequence[str]) -> list[str]:
    return [space.skeleton.names[space.skeleton.index(name)] for name in handles]


def pinocchio_model(space: PoseSpace) -> Any:
    """The body as a free-flyer with spherical joints; joints that do not move are fixed to their parents."""
    import pinocchio as pin

    skeleton, model = space.skeleton, pin.Model()
    ids = {0: model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), skeleton.names[0])}
    places = {0: pin.SE3.Identity()}
    for joint in range(1, len(skeleton)):
        parent = int(skeleton.parents[joint])
        place = places[parent] * pin.SE3(np.eye(3), skeleton.offsets[joint])
        if space.is_moving[joint]:
            ids[joint] = model.addJoint(ids[parent], pin.JointModelSpherical(), place, skeleton.names[joint])
            places[joint] = pin.SE3.Identity()
        else:
            ids[joint], places[joint] = ids[parent], place
    return model


def urdf(space: PoseSpace) -> str:
    """The body as URDF, whose joints have one axis: every spherical joint is three hinges about x, y and z."""
    skeleton = space.skeleton
    robot = Xml.Element("robot", name="body")
    for name in skeleton.names:
        Xml.SubElement(robot, "link", name=name)
    for joint in range(1, len(skeleton)):
        name, parent = skeleton.names[joint], skeleton.names[skeleton.parents[joint]]
        offset = " ".join(f"{x:.17g}" for x in skeleton.offsets[joint])
        if not space.is_moving[joint]:
            _hinge(robot, f"{name}.fixed", parent, name, offset=offset, axis=None)
            continue
        for axis in ("x", "y"):
            between = f"{name} {axis}"
            Xml.SubElement(robot, "link", name=between)
            _hinge(robot, f"{name}.{axis}", parent, between, offset=offset, axis=axis)
            parent, offset = between, "0 0 0"
        _hinge(robot, f"{name}.z", parent, name, offset=offset, axis="z")
    return Xml.tostring(robot, encoding="unicode")


def mjcf(space: PoseSpace) -> str:
    """The body as MuJoCo's format, with a free joint and ball joints."""
    skeleton = space.skeleton
    model = Xml.Element("mujoco")
    parents: dict[int, Xml.Element] = {-1: Xml.SubElement(model, "worldbody")}
    for joint, name in enumerate(skeleton.names):
        place = " ".join(f"{x:.17g}" for x in skeleton.offsets[joint])
        body = Xml.SubElement(parents[int(skeleton.parents[joint])], "body", name=name, pos=place)
        Xml.SubElement(body, "inertial", pos="0 0 0", mass="1", diaginertia="0.01 0.01 0.01")
        if joint == 0:
            Xml.SubElement(body, "freejoint")
        elif space.is_moving[joint]:
            Xml.SubElement(body, "joint", name=f"{name} ball", type="ball")
        parents[joint] = body
    return Xml.tostring(model, encoding="unicode")


def _hinge(robot: Xml.Element, name: str, parent: str, child: str, *, offset: str, axis: str | None) -> None:
    joint = Xml.SubElement(robot, "joint", name=name, type="fixed" if axis is None else "revolute")
    Xml.SubElement(joint, "origin", xyz=offset, rpy="0 0 0")
    Xml.SubElement(joint, "parent", link=parent)
    Xml.SubElement(joint, "child", link=child)
    if axis is not None:
        Xml.SubElement(joint, "axis", xyz=" ".join("1" if axis == other else "0" for other in "xyz"))
        Xml.SubElement(joint, "limit", lower="-6.3", upper="6.3", effort="1000", velocity="1000")
