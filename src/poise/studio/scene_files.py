"""Scenes as files: JSON with the handles, the timeline and the pose, for the model by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.geometry import rotations
from poise.skeleton.skeleton import Pose
from poise.studio.messages import Feet, Handle, Timeline, Vec3, Weight
from poise.studio.models import PLAIN, Entry, ModelStore
from poise.studio.state import MOST_HANDLES, Placed, State

VERSION = 1


class SavedScene(msgspec.Struct, rename="camel", kw_only=True):
    """What a scene file holds; joints go by name."""

    poise: Literal["scene"] = "scene"
    version: int = VERSION
    model: str
    weights: list[Weight]
    handles: list[Handle]
    feet: Feet
    look_at: Vec3 | None
    anchors: dict[str, Vec3]
    timeline: Timeline
    joints: list[str]
    root: tuple[float, float, float]
    turns: list[tuple[float, float, float, float]]


def saved(state: State) -> bytes:
    """A state as a scene file."""
    x, y, z = state.pose.root_position.tolist()
    scene = SavedScene(
        model=state.model, weights=list(state.weights), handles=list(state.handles), feet=state.feet,
        look_at=state.look_at, anchors=dict(state.anchors), timeline=state.timeline,
        joints=list(state.pose.skeleton.names), root=(x, y, z),
        turns=[(w, i, j, k) for w, i, j, k in state.pose.rotations.tolist()],
    )  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(scene), indent=2)


def opened(path: Path, models: ModelStore, now: State) -> State:
    """The state of a scene file, under its own model if that is there, else under any of the same skeleton."""
    try:
        scene = msgspec.json.decode(path.read_bytes(), type=SavedScene)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise ParseError(f"not a scene of the studio: {error}", path=path) from error
    if scene.version > VERSION:
        raise ParseError(f"written by a newer Poise (scene version {scene.version}); upgrade", path=path)
    try:
        return _state_of(scene, models, now)
    except PoiseError as error:
        raise ParseError(f"not a scene that can be opened: {error}", path=path) from error


def _state_of(scene: SavedScene, models: ModelStore, now: State) -> State:
    entry = _model_of(scene, models, now)
    skeleton = entry.prior.space.skeleton
    turns = np.array(scene.turns, dtype=np.float64).reshape(-1, 4)
    if len(turns) != len(skeleton) or len(scene.handles) > MOST_HANDLES:
        raise InvalidValueError(
            f"{len(turns)} rotations for {len(skeleton)} joints, {len(scene.handles)} handles"
        )
    for handle in scene.handles:
        skeleton.index(handle.joint)
    pose = Pose(skeleton, np.array(scene.root), rotations.normalize(turns))
    if not np.all(np.isfinite(pose.root_position)):
        raise InvalidValueError("the root is nowhere")
    known = {other.id for other in models.learned}
    weights = tuple(scene.weights) if all(weight.model in known for weight in scene.weights) else ()
    return State(
        PLAIN if scene.model == PLAIN else entry.id, Placed(pose), weights, tuple(scene.handles), scene.feet,
        scene.look_at, dict(scene.anchors), scene.timeline,
    )  # fmt: skip


def _model_of(scene: SavedScene, models: ModelStore, now: State) -> Entry:
    """The model of the file's name, or the one in use, or the first: whichever has these joints."""
    wanted = {scene.model: 0, now.model: 1}
    for entry in sorted(models.learned, key=lambda entry: wanted.get(entry.id, 2)):
        if list(entry.prior.space.skeleton.names) == scene.joints:
            return entry
    raise InvalidValueError("no model here has its skeleton; open or learn one first")
