"""Makes the page of twelve everyday tasks, each posed by every prior: `python docs/make_task_pictures.py`.

The handles of each task, as shares of stature, are all that is given; the root is free. Priors that learn do so from
recordings where there are any (POISE_MOCAP), else from the performer. Writes docs/images/tasks.webp; and, posed by the
universal prior as `poise.pose` does it, docs/images/tasks-posed.webp.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from poise import performer, pose, read
from poise.evaluation.methods import learner_named
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.pictures import draw_panels
from poise.priors.prior import Prior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.measure import standing_height
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import Against, Constraint, LookAt, Position
from poise.solvers.solve import solve

FILE = Path(__file__).parent / "images" / "tasks.webp"
POSED, FRONT = FILE.with_name("tasks-posed.webp"), FILE.with_name("before-and-after.webp")
SHOWN = ("lift", "sit", "kick", "wave", "climb")  # on the first page
PRIORS = ("dls", "gaussian-100", "style", "local", "auto", "universal")
CLIPS = ("02_01", "07_01", "14_02", "63_03", "124_01", "124_07", "06_14", "13_11", "02_07", "131_01")
PANEL = (190, 230)
Place = tuple[float, float, float]
FEET: dict[str, Place] = {"left_foot": (0.06, 0.045, 0.0), "right_foot": (-0.06, 0.045, 0.0)}
TASKS: dict[str, dict[str, Place]] = {  # to the left, up and forward, of stature
    "shelf": {**FEET, "right_hand": (-0.1, 1.1, 0.22)},
    "lift": {**FEET, "left_hand": (0.1, 0.14, 0.22), "right_hand": (-0.1, 0.14, 0.22)},
    "sit": {"pelvis": (0.0, 0.27, -0.12), "left_foot": (0.08, 0.045, 0.14), "right_foot": (-0.08, 0.045, 0.14)},
    "kneel": {"left_shin": (0.07, 0.035, 0.02), "right_foot": (-0.08, 0.045, 0.2), "head": (0.0, 0.64, 0.02)},
    "kick": {"left_foot": (0.05, 0.045, 0.0), "right_foot": (-0.05, 0.45, 0.4)},
    "wave": {**FEET, "right_hand": (-0.26, 0.95, 0.08)},
    "push": {"left_palm": (0.1, 0.74, 0.38), "right_palm": (-0.1, 0.74, 0.38)},  # against a wall
    "pull": {"left_foot": (0.07, 0.045, 0.14), "right_foot": (-0.07, 0.045, 0.0), "pelvis": (0.0, 0.48, -0.14),
             "left_hand": (0.07, 0.6, 0.26), "right_hand": (-0.07, 0.6, 0.26)},
    "throw": {"left_foot": (0.07, 0.045, 0.24), "right_foot": (-0.08, 0.045, -0.16),
              "left_hand": (0.18, 0.76, 0.28), "right_hand": (-0.24, 0.95, -0.16)},
    "climb": {"left_foot": (0.07, 0.3, 0.18), "right_foot": (-0.07, 0.045, 0.0),
              "left_hand": (0.1, 0.8, 0.26), "right_hand": (-0.1, 1.05, 0.22)},
    "look behind": FEET,
    "guard": {"left_foot": (0.1, 0.045, 0.1), "right_foot": (-0.1, 0.045, -0.1),
              "left_hand": (0.06, 0.82, 0.18), "right_hand": (-0.07, 0.8, 0.12)},
}  # fmt: skip
WALL: Place = (0.0, 0.0, -1.0)  # the way that the wall of the push faces
BEHIND: Place = (-0.8, 0.85, -1.0)  # what is looked at over the shoulder


def main() -> None:
    posed_by_default().save(POSED, quality=80)
    page = compared()
    page.save(FILE, quality=80)
    before_and_after(page).save(FRONT, quality=85)


def posed_by_default() -> Image.Image:
    """The tasks as `poise.pose` poses them: on the floor, in balance, with idle arms hanging."""
    people = UniversalPrior.of_people()
    height = standing_height(people.space.skeleton)
    poses = {task: pose(_wanted(task, height), people).pose for task in TASKS}
    return draw_panels(poses, size=PANEL, columns=6, floor=0.0)


def compared() -> Image.Image:
    """The tasks by every prior, under the handles alone."""
    clips = _clips()
    skeleton = clips[0].skeleton
    priors = {
        name: None if name == "dls" else learner_named(name)(clips).on_body(skeleton) for name in PRIORS
    }
    rows = [_row(task, priors, standing_height(skeleton)) for task in TASKS]
    page = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)), "white")
    for number, row in enumerate(rows):
        page.paste(row, (0, sum(above.height for above in rows[:number])))
    return page


def before_and_after(page: Image.Image) -> Image.Image:
    """Of this page, some tasks without a prior, and below them with the universal one."""
    width, height = page.width // len(PRIORS), page.height // len(TASKS)
    front = Image.new("RGB", (width * len(SHOWN), 2 * height), "white")
    for column, task in enumerate(SHOWN):
        for row, prior in enumerate(("dls", "universal")):
            left, top = width * PRIORS.index(prior), height * list(TASKS).index(task)
            front.paste(page.crop((left, top, left + width, top + height)), (width * column, height * row))
    return front


def _clips() -> list[Motion]:
    folder = find_recordings()
    if folder is None:
        return [performer.act(action, fps=30, seed=0) for action in ("walk", "box", "throw", "reach")]
    return [read(folder / "cmu" / f"{name}.bvh")[::12] for name in CLIPS]


def _row(task: str, priors: Mapping[str, Prior | None], height: float) -> Image.Image:
    wanted, places = (
        _wanted(task, height),
        {role: height * np.array(place) for role, place in TASKS[task].items()},
    )
    poses = {f"{task}: {name}": _posed(prior, priors["universal"], wanted) for name, prior in priors.items()}
    return draw_panels(poses, handles=places, size=PANEL, columns=len(poses), floor=0.0)


def _wanted(task: str, height: float) -> list[Constraint]:
    """The handles of a task for a body of some height, and what its head looks at."""
    found: list[Constraint] = [
        Against(role, tuple(height * np.array(place)), WALL) if "palm" in role
        else Position(role, tuple(height * np.array(place)))
        for role, place in TASKS[task].items()
    ]  # fmt: skip
    return [*found, LookAt("head", tuple(height * np.array(BEHIND)))] if task == "look behind" else found


def _posed(prior: Prior | None, people: Prior | None, wanted: list[Constraint]) -> Pose:
    """By a prior, or without one from where the universal one would stand."""
    assert isinstance(people, UniversalPrior)
    model = people.space if prior is None else prior
    start = people.space.standing(people.mean) if prior is None else None
    solution = solve(model, wanted, start=start, method="dls" if prior is None else "map")
    return model.pose_from_q(solution.q) if prior is None else prior.space.pose_from_q(solution.q)


if __name__ == "__main__":
    main()
