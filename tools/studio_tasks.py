"""Poses nine everyday tasks and a walk of four keys as a person would in the studio, and draws them on one page.

Each is dragged through the studio's own session with its defaults, and by plain IK beside it. The page shows two views,
the support (green), what a hand pushes (grey), and where the centre of mass is above the floor (blue inside of the
support, red outside). docs/contributing/tasks.md says how they are judged. With `--motion` each task is a key between
two of the standing body, and the page shows a film strip of each from two sides. Run by `make studio-tasks`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from PIL import Image

from poise.motion.motion import Motion
from poise.pictures import labels
from poise.pictures.mannequin import build_mannequin
from poise.pictures.scene import Figure, Floor, figure, fitted, marker, render, rod
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose
from poise.solvers import bearing
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.models import PLAIN, ModelStore
from poise.studio.session import Session
from poise.studio.touching import face_near
from poise.studio.uploads import Uploads

Point = tuple[float, float, float]

SIZE = (300, 330)
SMALL, STRIP = (170, 190), 7  # pixels of a tile of a film strip, and tiles
MIDDLE = 45  # the frame of a task between two of standing
MOMENTS = 30  # of a drag
VIEWS = (np.radians(-35.0), np.radians(55.0))
GREEN, BLUE, RED, PINK = (0.1, 0.6, 0.2), (0.1, 0.3, 0.9), (0.9, 0.1, 0.1), (0.8, 0.1, 0.4)
GREY = (0.5, 0.5, 0.5)
STRIDE = 0.6  # seconds from one contact of the walk to the next
NUMBERS = count(1)


WALL = said.Prop(id="wall", kind="box", position=(0.0, 0.0, 0.66), size=(1.0, 1.9, 0.08))


@dataclass(frozen=True)
class Task:
    """Handles that are dragged in turn to positions in metres; `leans` if a hand rests on something, as on a prop."""

    drags: Mapping[str, Point]
    leans: bool = False
    props: tuple[said.Prop, ...] = ()


TASKS: Mapping[str, Task] = {
    "shelf": Task({"right_hand": (-0.3, 1.95, 0.35)}),
    "floor": Task({"right_hand": (-0.2, 0.10, 0.45)}, leans=True),
    "sit": Task({"pelvis": (0.0, 0.50, -0.30)}),
    "kick": Task({"right_foot": (-0.15, 0.85, 0.75)}),
    "wave": Task({"right_hand": (-0.55, 1.70, 0.20)}),
    "push": Task(
        {"right_palm": (-0.18, 1.25, 0.62), "left_palm": (0.18, 1.25, 0.62)}, leans=True, props=(WALL,)
    ),
    "throw": Task({"right_hand": (-0.45, 1.65, -0.35), "left_hand": (0.25, 1.35, 0.45)}),
    "walk contact": Task({"right_foot": (-0.09, 0.10, 0.35), "left_foot": (0.09, 0.12, -0.35)}),
    "far reach": Task({"right_hand": (-0.6, 1.20, 1.05)}),
}


@dataclass(eq=False)
class Posed:
    """The result of a task."""

    name: str
    pose: Pose
    targets: Mapping[str, Point] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    words: str = ""
    props: tuple[said.Prop, ...] = ()

    @property
    def centre(self) -> np.ndarray:
        space = PoseSpace(self.pose.skeleton)
        return space.centre_of_mass(space.q_from_pose(self.pose))[0]

    @property
    def overhang(self) -> float:
        faces = {at: face_near(self.props, at) for at in self.targets.values()}
        loads = [(at, normal) for at, normal in faces.items() if normal is not None]
        return bearing.overhang(self.pose, self.centre, held=self.held, loads=loads)


@contextmanager
def opened(models: ModelStore | None = None) -> Iterator[Session]:
    """A session as a new page gets it."""
    if models is None:
        models = ModelStore()
        models.add(UniversalPrior(), "people")
    uploads, autosave = Uploads(), Autosave()
    session = Session(models, uploads, autosave)
    try:
        yield session
    finally:
        session.close()
        autosave.close()
        uploads.close()


def drag(
    session: Session, role: str, to: Point, *, moments: int = MOMENTS, ease: int | None = None
) -> said.SolvedPose:
    """Drag a joint to a position, as a hand would."""
    if role not in [handle.id for handle in session.state.handles]:
        session.answer(said.PutHandle(handle=said.SceneHandle(id=role, joint=role)))
    start = np.array(session.state.handle(role).position)
    for moment in range(1, moments + 1):
        x, y, z = (start + (np.array(to) - start) * moment / moments).tolist()
        answer = session.answer(
            said.Drag(
                seq=next(NUMBERS),
                handle=role,
                position=(x, y, z),
                last=moment == moments,
                ease=ease if moment == moments else None,
            )
        )
    return [each for each in answer if isinstance(each, said.SolvedPose)][-1]


def posed(name: str, task: Task, *, model: str | None = None) -> Posed:
    """A task in its own session, under another model if one is named."""
    with opened() as session:
        if model is not None:
            session.answer(said.ChooseModel(model=model))
        for prop in task.props:
            session.answer(said.PutProp(seq=next(NUMBERS), prop=prop, last=True))
        for role, to in task.drags.items():
            answered = drag(session, role, to)
        held = frozenset(task.drags) - ({"left_hand", "right_hand"} if not task.leans else frozenset())
        missed = [
            f"{left.label} {100 * left.value:.0f} cm off"
            for left in answered.residuals
            if left.hard and not left.met
        ]
        own = f"{name}, {model}" if model is not None else name
        return Posed(own, session.state.pose, task.drags, held, ", ".join(missed), task.props)


def moved(task: Task) -> Motion:
    """From standing to the pose of a task and back, in three seconds, as whole poses on the timeline."""
    with opened() as session:
        session.answer(said.SetHands(hands=said.Hands(), ease=12))
        session.answer(said.CopyPose())
        session.answer(said.SetFrame(frame=MIDDLE))
        for role, to in task.drags.items():
            drag(session, role, to, ease=12)
        session.answer(said.SetFrame(frame=2 * MIDDLE - 1))
        session.answer(said.TakePose(seq=next(NUMBERS), last=True, ease=12))
        while not session.jobs.idle or not session.state.smooth:
            time.sleep(0.05)
        assert session.state.motion is not None
        return session.state.motion


def strip_of(name: str, motion: Motion) -> Image.Image:
    """A few frames side by side, from two sides."""
    frames = np.linspace(0, len(motion) - 1, STRIP).round().astype(int)
    page = Image.new("RGB", (STRIP * SMALL[0], 2 * SMALL[1]), "white")
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations[frames])
    x, _, z = motion.root_positions.mean(axis=0)
    box = [[i, y, k] for i in (-0.7, 0.7) for y in (0.0, 2.0) for k in (-0.7, 0.7)]
    for row, azimuth in enumerate(VIEWS):
        view = fitted(
            np.array(box) + np.array([x, 0.0, z]), azimuth=azimuth, elevation=np.radians(12.0), size=SMALL
        )
        for column, frame in enumerate(frames):
            body = figure(mannequin, positions[frame], matrices[frame])
            tile = Image.fromarray(render([body], view, floor=Floor(0.0, (x, z), 2.5)))
            if not column and not row:
                labels.write_title(tile, name, "")
            page.paste(tile, (column * SMALL[0], row * SMALL[1]))
    return page


def walked() -> list[Posed]:
    """Four contacts of a walk keyed by its feet, and the frames between."""
    with opened() as session:
        session.answer(said.SetTimeline(fps=30.0, frames=round(3 * STRIDE * 30) + 1))
        for role in ("left_foot", "right_foot"):
            session.answer(said.PutHandle(handle=said.SceneHandle(id=role, joint=role)))
        for contact in range(4):
            frame = round(contact * STRIDE * 30)
            ahead, behind = ("right", "left") if contact % 2 == 0 else ("left", "right")
            for side, z, y in ((ahead, 0.35, 0.09), (behind, -0.35, 0.14)):
                x = -0.09 if side == "right" else 0.09
                key = said.Key(handle=f"{side}_foot", frame=frame, position=(x, y, z), rotation=None)
                session.answer(said.PutKey(key=key))
        while not session.jobs.idle or not session.state.smooth:
            time.sleep(0.05)
        motion = session.state.motion
        assert motion is not None
        frames = np.linspace(0, len(motion) - 1, 6).round().astype(int)
        headings = np.array([bearing.heading_of(motion[frame]) for frame in range(len(motion))])
        turned = np.degrees(np.arctan2(headings[:, 0], headings[:, 2]))
        positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
        knees = positions[:, [motion.skeleton.index(f"{side}_shin") for side in ("left", "right")]]
        quickest = np.linalg.norm(np.diff(knees, axis=0), axis=-1).max()
        print(
            f"walk: hips face {turned.min():.0f} to {turned.max():.0f} degrees; "
            f"knees go up to {100 * quickest:.1f} cm a frame"
        )
        return [Posed(f"walk, frame {frame}", motion[int(frame)]) for frame in frames]


def drawn(one: Posed, azimuth: float) -> Image.Image:
    """A pose from one side, with its support and centre of mass."""
    pose, inside = one.pose, one.overhang <= 0.0
    positions, matrices = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    body = figure(build_mannequin(pose.skeleton, rotations=pose.rotations[None]), positions, matrices)
    corners = bearing.support(bearing.places_of(pose), pose.skeleton, held=one.held, margin=0.0)
    assert corners is not None
    ground = [np.array([x, 0.005, z]) for x, z in corners]
    edges = [
        rod(a, b, radius=0.008, colour=GREEN) for a, b in zip(ground, ground[1:] + ground[:1], strict=True)
    ]
    x, _, z = one.centre
    foot = np.array([x, 0.005, z])
    mass = [
        marker(one.centre, radius=0.03, colour=BLUE),
        marker(foot, radius=0.03, colour=BLUE if inside else RED),
    ]
    plumb = rod(one.centre, foot, radius=0.004, colour=BLUE)
    targets = [marker(np.array(at), radius=0.03, colour=PINK) for at in one.targets.values()]
    edges += [edge for prop in one.props for edge in _outline(prop)]
    view = fitted(
        np.array([[i, y, k] for i in (-0.5, 0.5) for y in (0.0, 2.0) for k in (-0.5, 0.5)]) + np.array([x, 0.0, z]),
        azimuth=azimuth, elevation=np.radians(12.0), size=SIZE,
    )  # fmt: skip
    picture = Image.fromarray(
        render([body, *edges], view, floor=Floor(0.0, (x, z), 2.5), over=[plumb, *mass, *targets])
    )
    labels.write_title(picture, one.name, f"{one.words or f'{100 * one.overhang:+.0f} cm over the edge'}")
    return picture


def _outline(prop: said.Prop) -> list[Figure]:
    """The edges of the side of a box that faces the body."""
    (x, y, z), (w, h, d) = prop.position, prop.size
    corners = [np.array([x + i * w / 2, y + j * h, z - d / 2]) for i, j in ((-1, 0), (1, 0), (1, 1), (-1, 1))]
    return [
        rod(a, b, radius=0.01, colour=GREY) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
    ]


def page_of(poses: list[Posed]) -> Image.Image:
    """All poses, each from two sides."""
    columns, rows = 8, -(-2 * len(poses) // 8)
    page = Image.new("RGB", (columns * SIZE[0], rows * SIZE[1]), "white")
    tiles = [drawn(one, azimuth) for one in poses for azimuth in VIEWS]
    for number, tile in enumerate(tiles):
        page.paste(tile, (number % columns * SIZE[0], number // columns * SIZE[1]))
    return page


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("out/studio-tasks.png"))
    parser.add_argument("--only", nargs="*", default=[*TASKS, "walk"])
    parser.add_argument("--motion", action="store_true")
    given = parser.parse_args()
    if given.motion:
        strips = [strip_of(name, moved(task)) for name, task in TASKS.items() if name in given.only]
        page = Image.new("RGB", (strips[0].width, sum(strip.height for strip in strips)), "white")
        for number, strip in enumerate(strips):
            page.paste(strip, (0, number * strip.height))
        given.output.parent.mkdir(parents=True, exist_ok=True)
        page.save(given.output)
        print(given.output)
        return
    chosen = {name: task for name, task in TASKS.items() if name in given.only}
    poses = [posed(name, task, model=model) for name, task in chosen.items() for model in (None, PLAIN)]
    for one in poses[::2]:
        carried = "inside" if one.overhang <= 0.0 else "on a hand" if TASKS[one.name].leans else "OUTSIDE"
        print(f"{one.name}: centre of mass {100 * one.overhang:+.1f} cm over the edge, {carried} {one.words}")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    page_of(poses + (walked() if "walk" in given.only else [])).save(given.output)
    print(given.output)


if __name__ == "__main__":
    main()
