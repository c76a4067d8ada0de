"""Tools for agents: the Model Context Protocol over the public functions of Poise (`poise mcp`).

Every method of `Tools` is a tool. Its docstring and its typed arguments are what an agent reads; its answer is numbers,
words and a picture. Files are named relative to one folder, and no tool reads or writes outside of it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from mcp import MCPError
from mcp.server.mcpserver import Image as Picture
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from poise import pictures
from poise.apps import posing
from poise.apps.describe import describe
from poise.apps.inbetweening import PoseKey
from poise.apps.keyframing import inbetween
from poise.apps.outputs import ANIMATIONS, STILLS, save
from poise.apps.planting import slides
from poise.apps.repairing import repair
from poise.apps.retargeting import open_character, retarget
from poise.errors import InvalidValueError, PoiseError
from poise.formats import extensions, read, read_motion
from poise.formats.named_files import RefusedNameError, named_file
from poise.formats.tables import TYPED, Table
from poise.motion.motion import Motion
from poise.performer.acting import act
from poise.performer.actions import ACTIONS
from poise.performer.styles import STYLES
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.roles import ROLES
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import CONSTRAINTS, Constraint, Position, constraint_from
from poise.solvers.solution import MotionSolution, Solution

INSTRUCTIONS = """\
Poise poses and moves human bodies. Lengths are metres, Y is up. A body stands on height 0 and faces +Z; its left is +X.
Handles are roles of joints, the same on every character: pelvis, head, left_hand, right_foot and others. Look at the
picture and at `problems` and `doubt_m` of an answer before you go on: a handle on the part in doubt helps most."""
LONGEST = 60.0  # seconds of a motion
Point = tuple[FiniteFloat, FiniteFloat, FiniteFloat]
File = Annotated[str, Field(description="A file of the folder, such as walk.bvh or heroes/me.glb.")]
Output = Annotated[str | None, Field(description="The file to write; its extension is the format.")]
Body = Annotated[
    str | None, Field(description="A character's file (.glb, .vrm, .bvh ...); else an average body.")
]
Handles = Annotated[dict[str, Point], Field(description="Place of each handle, by role or joint, in metres.")]


class Listing(BaseModel):
    """What is in the folder, and what is built in."""

    motions_and_characters: list[str]
    models: list[str]
    actions: list[str]
    styles: list[str]
    roles: list[str]
    constraints: dict[str, str]


class AgentKey(BaseModel):
    """A pose at a time: a frame of a file, or places of handles."""

    model_config = ConfigDict(extra="forbid")
    time: Annotated[FiniteFloat, Field(ge=0.0, le=LONGEST, description="Seconds.")]
    file: str | None = None
    frame: Annotated[int, Field(ge=0)] = 0
    handles: dict[str, Point] | None = None
    hold: Annotated[float, Field(ge=0.0, le=LONGEST, description="Seconds to stay in the pose.")] = 0.0


class PoseAnswer(BaseModel):
    """A solved pose, what is wrong with it, and how certain it is."""

    status: str
    missed_m: dict[str, float] = Field(description="Constraints that cannot be met, and by how much.")
    problems: list[str]
    positions_m: dict[str, Point]
    doubt_m: dict[str, float] = Field(description="Standard deviation of each part's place, per axis.")
    kinds: list[float] = Field(description="Shares of clearly different poses that the handles allow.")
    next_handles: list[str] = Field(description="Handles that would remove most doubt, the best first.")
    file: str | None


class MotionAnswer(BaseModel):
    """A motion, what was not met, and how certain it is."""

    frames: int
    fps: float
    seconds: float
    missed: list[str]
    worst_m: float = Field(description="Largest distance of a handle from its place.")
    doubt_m: dict[str, float] = Field(
        description="Largest standard deviation of each part's place, per axis."
    )
    slide_m: float = Field(description="How far a standing foot strays at most.")
    file: str | None


class Tools:
    """What an agent can do in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list_files(self) -> Listing:
        """List the motions, characters and models of the folder, and the actions, roles and constraints there are."""
        kinds: dict[str, list[str]] = {"motion": [], "model": []}
        for place, folders, names in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                extension = Path(name).suffix.lower()
                kind = "model" if extension == ".poise" else "motion" if extension in extensions() else ""
                if kind:
                    kinds[kind].append((Path(place) / name).relative_to(self.folder).as_posix())
        return Listing(
            motions_and_characters=kinds["motion"],
            models=kinds["model"],
            actions=list(ACTIONS),
            styles=list(STYLES),
            roles=list(ROLES),
            constraints={kind: posing.table_of(kind) for kind in CONSTRAINTS},
        )

    def describe(self, file: File) -> dict[str, Any]:
        """Describe a motion, a character or a model: joints, roles, frames, height, units, warnings."""
        path = self._there(file)
        if path.suffix.lower() != ".poise":
            return describe(read(path))
        prior = load(path)
        skeleton = prior.space.skeleton
        return {"kind": prior.kind, "joints": list(skeleton.names), "roles": dict(skeleton.roles),
                "height_m": round(skeleton.height, 4), "credits": list(getattr(prior, "credits", ()))}  # fmt: skip

    def pose(
        self,
        handles: Handles | None = None,
        constraints: Annotated[
            list[dict[str, Any]] | None, Field(description="Others, as tables with a kind; see list_files.")
        ] = None,
        look_at: Point | None = None,
        character: Body = None,
        model: Annotated[str | None, Field(description="A learned model, such as a style (.poise).")] = None,
        output: Output = None,
    ) -> Annotated[CallToolResult, PoseAnswer]:
        """Pose a whole body by a few handles, and say how certain every part of it is. Returns a picture too."""
        places = handles or {}
        asked: list[Constraint] = [Position(name, place) for name, place in places.items()]
        asked += [constraint_from(Table(entry, TYPED)) for entry in constraints or ()]
        found = posing.pose(asked, self._prior(model, character), look_at=look_at)
        targets = {name: np.array(place) for name, place in places.items()}
        file = self._new(output)
        if file is not None:
            onto = None if character is None else self._there(character)
            posing.save_pose(found, file, targets, onto=onto)
        drawn = pictures.picture(found.pose, handles=targets, size=(480, 560))
        return _answer(_pose_answer(found, output, asked), drawn)

    def animate(
        self,
        keys: Annotated[list[AgentKey], Field(min_length=2, max_length=100)],
        fps: Annotated[float, Field(ge=5.0, le=120.0)] = 30.0,
        loop: bool = False,
        variant: Annotated[int, Field(ge=0, le=64, description="1, 2 ... are other motions.")] = 0,
        output: Output = None,
    ) -> Annotated[CallToolResult, MotionAnswer]:
        """Make the motion through keys as people move: keys are met exactly, standing feet stay in place."""
        made = inbetween([self._key(key) for key in keys], fps=fps, loop=loop, variant=variant)
        return self._motion(made.motion, output, made)

    def act(
        self,
        action: Annotated[str, Field(description="One of the actions of list_files.")],
        style: str = "neutral",
        seconds: Annotated[float, Field(ge=0.2, le=LONGEST)] = 4.0,
        output: Output = None,
    ) -> Annotated[CallToolResult, MotionAnswer]:
        """Make a motion of the procedural performer: walk, throw, box and others."""
        return self._motion(act(action, style=style, seconds=seconds, fps=30.0), output)

    def retarget(
        self, motion: File, character: File, output: Output = None
    ) -> Annotated[CallToolResult, MotionAnswer]:
        """Put a motion on a character. GLB and VRM keep the character's own mesh."""
        moved, onto = retarget(self._there(motion), self._there(character)), self._there(character)
        return self._motion(moved, output, onto=onto)

    def repair(self, motion: File, output: Output = None) -> Annotated[CallToolResult, MotionAnswer]:
        """Mend a motion: jitter, sliding feet, a sunk floor, missing frames, limbs inside the body."""
        return self._motion(repair(self._there(motion)).motion, output)

    def render(
        self,
        file: File,
        poses: Annotated[int, Field(ge=1, le=24, description="How many moments to draw.")] = 8,
        output: Output = None,
    ) -> Picture:
        """Draw a motion or a character as a picture; with an output .gif or .mp4 also as an animation."""
        shown, target = read(self._there(file)), self._new(output)
        if target is not None:
            save(shown, target)
        return _drawn(pictures.picture(shown, poses=poses))

    def convert(self, file: File, output: Annotated[str, Field(description="The file to write.")]) -> str:
        """Write a motion in another format: .bvh .glb .gltf .usda .npz .csv .c3d and others."""
        target = self._new(output)
        assert target is not None
        save(self._there(file), target)
        return f"{output}: {target.stat().st_size} bytes"

    def _there(self, name: str) -> Path:
        """A file of the folder."""
        try:
            named_file(self.folder, name.partition("#")[0])  # of FILE#clip, too
            return named_file(self.folder, name)
        except RefusedNameError as error:
            raise InvalidValueError(str(error)) from error

    def _new(self, name: str | None) -> Path | None:
        """A file to write, in the folder."""
        if name is None:
            return None
        if Path(name).suffix.lower() not in (*extensions(written=True), *STILLS, *ANIMATIONS):
            written = ", ".join((*extensions(written=True), *STILLS, *ANIMATIONS))
            raise InvalidValueError(f"{name} has no extension that is written; take one of {written}")
        return self._there(name)

    def _prior(self, model: str | None, character: str | None) -> Prior | None:
        body = None if character is None else open_character(self._there(character)).skeleton
        if model is None:
            return None if body is None else UniversalPrior(body)
        prior = load(self._there(model))
        return prior if body is None else prior.on_body(body)

    def _key(self, key: AgentKey) -> PoseKey:
        if (key.file is None) == (key.handles is None):
            raise InvalidValueError(f"the key at {key.time:g} s needs either a file and a frame, or handles")
        pose: Pose | dict[str, Sequence[float]] = dict(key.handles or {})
        if key.file is not None:
            clip = read_motion(self._there(key.file))
            if key.frame >= len(clip):
                raise InvalidValueError(f"{key.file} has {len(clip)} frames; got frame {key.frame}")
            pose = clip[key.frame]
        return PoseKey(key.time, pose, hold=key.hold)

    def _motion(
        self,
        motion: Motion,
        output: str | None,
        solved: MotionSolution | None = None,
        *,
        onto: Path | None = None,
    ) -> CallToolResult:
        """Save a motion, and the answer about it."""
        file, doubt = self._new(output), {}
        if file is not None:
            save(motion, file, onto=onto)
        if solved is not None and solved.deviations.size:
            most = dict(zip(motion.skeleton.names, solved.deviations.max(axis=0).tolist(), strict=True))
            doubt = {role: round(most[joint], 4) for role, joint in motion.skeleton.roles.items()}
        has_feet = {"left_foot", "right_foot"} <= set(motion.skeleton.roles)
        answer = MotionAnswer(
            frames=len(motion),
            fps=motion.fps,
            seconds=round(motion.seconds, 3),
            missed=[] if solved is None else solved.misses(),
            worst_m=0.0 if solved is None else round(solved.worst, 5),
            doubt_m=doubt,
            slide_m=round(max(slides(motion), default=0.0), 4) if has_feet else 0.0,
            file=output,
        )
        return _answer(answer, pictures.picture(motion, poses=6))


def _pose_answer(found: Solution, output: str | None, asked: list[Constraint]) -> PoseAnswer:
    roles = found.space.skeleton.roles
    return PoseAnswer(
        status=found.status.value,
        missed_m={one.label: round(one.value, 4) for one in found.relaxed if one.unit == "m"},
        problems=[*posing.judged(found, asked), *found.notes],
        positions_m={role: tuple(found.positions[role].round(4).tolist()) for role in roles},
        doubt_m={role: round(found.deviation[role], 4) for role in roles},
        kinds=[round(mode.share, 3) for mode in found.uncertainty.modes],
        next_handles=[one.joint for one in posing.next_handles(found)[: posing.SUGGESTED]],
        file=output,
    )


def _answer(fields: BaseModel, image: Any) -> CallToolResult:
    """Words for those who read text, the same as data, and a picture."""
    words = TextContent(type="text", text=fields.model_dump_json())
    picture = _drawn(image).to_image_content()
    return CallToolResult(content=[words, picture], structured_content=fields.model_dump(mode="json"))


def _drawn(image: Any) -> Picture:
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return Picture(data=file.getvalue(), format="png")


class Server(MCPServer[Any]):
    """The server of the tools of one folder.

    A call that does not fit its tool is an error of the protocol. What can only be seen by doing it, such as an unknown
    joint or a file outside of the folder, is an answer that is marked as an error and says what to do.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__("poise", instructions=INSTRUCTIONS, version=version("poise"), log_level="ERROR")
        place = Path(folder)
        if not place.is_dir():
            raise InvalidValueError(f"{place} is not a folder; name one whose files agents may use")
        tools = Tools(place)
        for name, tool in vars(Tools).items():
            if not name.startswith("_"):
                self.add_tool(getattr(tools, name), description=tool.__doc__)

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool; see the class for errors."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, PoiseError | OSError):
                raise ToolError(str(cause)) from cause
            if cause is None or isinstance(cause, ValidationError):  # no such tool, wrong arguments
                raise MCPError(code=INVALID_PARAMS, message=str(error)) from error
            raise
