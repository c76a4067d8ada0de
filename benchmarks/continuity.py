"""Continuity of dragging in the studio: random drags of five models through its own session.

A drag takes a hand, a foot, the head or the hips from where a standing body has it to a random place nearby, in steps
of about a centimetre, and lets go. Between two steps, what counts is how far the joint that goes farthest goes, over
what the handle itself goes (asked: at most 3); at the release, how far in centimetres (asked: at most 2). Counted apart
are the moments that the page shows on their way over 0.2 s: a foot steps, or the handle cannot be met otherwise.
`DRAGS=20` in the environment measures fewer.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import count

import numpy as np

from benchmarks.table import Row
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import world_transforms
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.defaults import recipes
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.uploads import Uploads

DRAGS = int(os.environ.get("DRAGS", "200"))
MODELS = ("people", "everything", "nearest of everything", "reach", "pitch")
ROLES = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis")
SPREAD = {"hand": 0.5, "foot": 0.25, "head": 0.2, "pelvis": 0.2}  # metres
STEP = 0.012  # metres that a handle moves between two moments
_NUMBERS = count(1)


def run() -> list[Row]:
    """Median, 95th percentile and worst of steps and releases, for each model."""
    os.environ.setdefault("POISE_CACHE", tempfile.mkdtemp())
    models, known = ModelStore(), recipes()
    models.add(UniversalPrior(), "people")
    for name in MODELS[1:]:
        models.add(known[name].cached(), name)
    return [row for name in MODELS for row in _rows(name, models)]


def _rows(name: str, models: ModelStore) -> Iterator[Row]:
    random = np.random.default_rng(7)
    found = [_dragged(models, name, random) for _ in range(DRAGS)]
    steps = np.array([ratio for ratios, _, _ in found for ratio in ratios])
    releases = 100.0 * np.array([release for _, release, _ in found if release is not None])
    eased = [far for *_, jumps in found for far in jumps]
    yield Row(f"{name}: step over the handle's, median", float(np.median(steps)), "times")
    yield Row(f"{name}: 95th percentile", float(np.percentile(steps, 95)), "times")
    yield Row(f"{name}: worst", float(steps.max()), "times", note=f"at most 3; {len(steps)} steps")
    yield Row(
        f"{name}: eased over 0.2 s",
        len(eased),
        "steps",
        note=f"at most {100 * max(eased, default=0.0):.0f} cm",
    )
    yield Row(f"{name}: release, median", float(np.median(releases)), "cm")
    yield Row(f"{name}: 95th percentile", float(np.percentile(releases, 95)), "cm")
    yield Row(f"{name}: worst", float(releases.max()), "cm", note="at most 2")


def _dragged(
    models: ModelStore, name: str, random: np.random.Generator
) -> tuple[list[float], float | None, list[float]]:
    """One drag: every step over the handle's, how far the release goes if it is not eased, and all that are eased."""
    uploads, autosave = Uploads(), Autosave()
    session = Session(models, uploads, autosave)
    try:
        session.answer(said.ChooseModel(model=name.replace(" ", "-")))
        return _moments(session, random)
    finally:
        session.close()
        autosave.close()
        uploads.close()


def _moments(session: Session, random: np.random.Generator) -> tuple[list[float], float | None, list[float]]:
    role = ROLES[random.integers(len(ROLES))]
    session.answer(said.PutHandle(handle=said.SceneHandle(id=role, joint=role)))
    start = np.array(session.state.handle(role).position)
    way = random.normal(size=3) * SPREAD[role.split("_")[-1]]
    moments, ratios, eased = max(int(np.linalg.norm(way) / STEP), 2), [], []
    for moment in range(1, moments + 1):
        went, jumps = _moved(session, role, start + way * moment / moments)
        if jumps:
            eased.append(went)
        else:
            ratios.append(went / (float(np.linalg.norm(way)) / moments))
    release, jumps = _moved(session, role, start + way, last=True)
    if not jumps:
        return ratios, release, eased
    return ratios, None, [*eased, release]


def _moved(session: Session, role: str, to: np.ndarray, *, last: bool = False) -> tuple[float, bool]:
    before, (x, y, z) = _joints(session), to.tolist()
    pose = session.answer(said.Drag(seq=next(_NUMBERS), handle=role, position=(x, y, z), last=last))[-1]
    assert isinstance(pose, said.SolvedPose)
    return float(np.linalg.norm(_joints(session) - before, axis=-1).max()), pose.jumps


def _joints(session: Session) -> np.ndarray:
    pose = session.state.pose
    return np.asarray(world_transforms(pose.skeleton, pose.root_position, pose.rotations)[0])
