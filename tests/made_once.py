"""What many tests need and few are about, made once: the performer's motions and learned models.

A motion is kept by the process. A model is kept on disk, so that the processes of a run and the next run share it,
under a hash of the whole source and one of the clips and options, so that no change leaves an old model in use.
"""

import hashlib
import os
import pickle
import shutil
from functools import cache, wraps
from pathlib import Path
from typing import Any

from poise.motion import Motion
from poise.performer import acting
from poise.priors.model_file import load, save
from poise.priors.registry import Storable
from source_trees import source_files

KEPT = Path(__file__).parents[1] / ".pytest_cache" / "models"


def remember_motions() -> None:
    """Let `act` give the same, unchangeable, motion for the same words; tests/performer makes each one again."""
    make, known = acting.acted, {}

    @wraps(make)
    def perform(*words: Any, **more: Any) -> acting.ActedMotion:
        key = pickle.dumps((words, sorted(more.items())))
        if key not in known:
            known[key] = make(*words, **more)
        return known[key]

    acting.acted = perform


def learned(kind: Any, motions: list[Motion], **options: Any) -> Any:
    """`kind.learn(motions, **options)`, for tests of what a model does, not of how it is learned."""
    path = KEPT / _source() / f"{_name(kind, motions, options)}.poise"
    if not path.exists():
        _keep(kind.learn(motions, **options), path)
    return load(path)


def _name(kind: type, motions: list[Motion], options: dict[str, Any]) -> str:
    digest = hashlib.sha256(repr((kind.__name__, sorted(options.items()))).encode())
    for motion in motions:
        digest.update(repr((motion.name, motion.fps, motion.skeleton.names)).encode())
        for array in (motion.skeleton.offsets, motion.root_positions, motion.rotations):
            digest.update(array.tobytes())
    return digest.hexdigest()


@cache
def _source() -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in source_files())).hexdigest()


def _keep(model: Storable, path: Path) -> None:
    """Two processes may learn the same model at once; the file appears whole. Models of another source go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in set(KEPT.iterdir()) - {path.parent}:
        shutil.rmtree(other, ignore_errors=True)
    unfinished = path.with_name(f"{os.getpid()}.poise")
    save(model, unfinished)
    unfinished.replace(path)
