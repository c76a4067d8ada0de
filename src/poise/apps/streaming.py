"""Send poses live over OSC by the Virtual Motion Capture protocol (VMC), to Blender, Unreal, Unity or VTuber tools.

VMC uses Unity's humanoid (`performance.unity`): bones by Unity's names, each rotated relative to its parent bone and
to a T-pose with identity rotations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.capture.feeds.humanoid import BONES, mirrored_place, mirrored_turn
from poise.errors import InvalidValueError, MissingExtraError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array, Progress, silent

HOST, PORT = "127.0.0.1", 39539  # the usual port of VMC performers
Transform = tuple[Float[Array, "3"], Float[Array, "4"]]


class Humanoid:
    """A skeleton in VMC's form: a tree of bones, each with its position in the T-pose."""

    def __init__(self, skeleton: Skeleton, samples: Float[Array, "frames joints 4"] | None = None) -> None:
        if "pelvis" not in skeleton.roles:
            raise InvalidValueError("no pelvis was found in this skeleton; VMC needs a humanoid")
        neutral = neutral_pose(skeleton, samples)
        self.skeleton, self._neutral = skeleton, neutral
        self.joints = {bone: skeleton.index(role) for role, bone in BONES.items() if role in skeleton.roles}
        bone_of = {joint: bone for bone, joint in self.joints.items()}
        self.parents: dict[str, str | None] = {}
        for bone, joint in self.joints.items():
            above = int(skeleton.parents[joint])
            while above >= 0 and above not in bone_of:
                above = int(skeleton.parents[above])
            self.parents[bone] = bone_of.get(above)

    def bones(self, pose: Pose) -> dict[str, Transform]:
        """Every bone's position and rotation relative to its parent bone, in VMC's world."""
        positions, matrices = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
        turned = matrices @ np.swapaxes(self._neutral.world, -1, -2)  # from the T-pose, in the world
        found = {}
        for bone, joint in self.joints.items():
            parent = self.parents[bone]
            if parent is None:
                place, turn = positions[joint], turned[joint]
            else:
                above = self.joints[parent]
                place = self._neutral.positions[joint] - self._neutral.positions[above]
                turn = turned[above].T @ turned[joint]
            found[bone] = (mirrored_place(place), mirrored_turn(rotations.quaternion_from_matrix(turn)))
        return found


class VmcSender:
    """Sends poses of one skeleton to one receiver."""

    def __init__(
        self, skeleton: Skeleton, *, host: str = HOST, port: int = PORT,
        samples: Float[Array, "frames joints 4"] | None = None,
    ) -> None:  # fmt: skip
        try:
            from pythonosc.udp_client import UDPClient
        except ModuleNotFoundError as error:
            raise MissingExtraError("python-osc", extra="studio", purpose="live out over OSC") from error
        try:
            client = UDPClient(host, port)
        except OSError as error:
            raise InvalidValueError(f"cannot reach {host}:{port}: {error.strerror or error}") from error
        self._client, self.skeleton = client, skeleton
        self._humanoid, self._begun = Humanoid(skeleton, samples), time.perf_counter()

    def send(self, pose: Pose, seconds: float | None = None) -> None:
        """Send one pose as one bundle; its time is given, or counted from the start of the sender."""
        from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder

        bundle = OscBundleBuilder(IMMEDIATELY)
        now = time.perf_counter() - self._begun if seconds is None else seconds
        bundle.add_content(_message("/VMC/Ext/OK", 1))
        bundle.add_content(_message("/VMC/Ext/T", float(now)))
        bundle.add_content(_message("/VMC/Ext/Root/Pos", "root", *(0.0,) * 6, 1.0))
        for bone, (place, turn) in self._humanoid.bones(pose).items():
            w, x, y, z = turn.tolist()
            bundle.add_content(_message("/VMC/Ext/Bone/Pos", bone, *place.tolist(), x, y, z, w))
        self._client.send(bundle.build())

    def close(self) -> None:
        """Close the socket."""
        self._client.close()


def stream(
    motion: Motion,
    send: Callable[[Pose, float], None],
    *,
    loops: int | None = 1,
    progress: Progress = silent,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Send a motion in real time, once, several times, or (None) forever; late frames are skipped."""
    begun, number = time.perf_counter(), 0
    total = len(motion) * (loops or 0)
    while loops is None or number < len(motion) * loops:
        send(motion[number % len(motion)], number / motion.fps)
        progress(number + 1, total)
        number = max(number + 1, int((time.perf_counter() - begun) * motion.fps))
        sleep(max(0.0, begun + number / motion.fps - time.perf_counter()))


def address_from_text(text: str) -> tuple[str, int]:
    """A receiver from `HOST:PORT`, `HOST` or `:PORT`."""
    host, _, port = text.strip().rpartition(":") if ":" in text else (text.strip(), "", str(PORT))
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidValueError(f"write a receiver as HOST:PORT, such as {HOST}:{PORT}; got {text!r}")
    return host.strip("[]") or HOST, int(port)


def _message(address: str, *values: Any) -> Any:
    from pythonosc.osc_message_builder import OscMessageBuilder

    builder = OscMessageBuilder(address)
    for value in values:
        builder.add_arg(value)
    return builder.build()
