"""Feed damaged files to Poise's readers: python fuzz/fuzz_formats.py --count 20000 --seed 0"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from mutations import Mutator
from running import Case, parser, run
from seeds import Files, make_c3d_seeds, make_seeds

import poise
from poise.formats.gltf.meshes import read_mesh


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    options = parser(__doc__, count=20_000).parse_args()
    with tempfile.TemporaryDirectory() as name:
        seeds = make_seeds(Path(name)) | {"c3d": make_c3d_seeds(Path(name))}
        warm_up(seeds, Path(name))
    return 1 if run(cases_of(seeds), options) else 0


def cases_of(seeds: dict[str, list[Files]]) -> dict[str, Case]:
    """A case for each format: one of its seeds, damaged, is read."""
    contents = tuple(content for files in seeds.values() for seed in files for content in seed.values())
    return {kind: partial(_case, kind, files, contents) for kind, files in seeds.items()}


def _case(
    kind: str, files: list[Files], contents: tuple[bytes, ...], generator: np.random.Generator, folder: Path
) -> None:
    seed = files[int(generator.integers(0, len(files)))]
    _read(_write_damaged(seed, Mutator(generator, contents), folder), kind)


def _read(path: Path, kind: str) -> None:
    if kind == "mesh":
        mesh = read_mesh(path)
        joints = int(mesh.slot_joints.max()) + 1
        placed, _ = mesh.posed(np.zeros((joints, 3)), np.tile(np.eye(3), (joints, 1, 1)))
        assert np.isfinite(placed).all(), "a mesh that is not finite"
    else:
        poise.read(path, format=kind)


def _write_damaged(seed: Files, mutator: Mutator, folder: Path) -> Path:
    """Writes a damaged copy of a seed; of a pair, one or both files are damaged. Returns the file to read."""
    extensions = list(seed)
    damaged = {extensions[int(mutator.generator.integers(0, len(extensions)))]}
    damaged |= {extension for extension in extensions if mutator.generator.random() < 0.2}
    for extension, content in seed.items():
        (folder / f"input{extension}").write_bytes(mutator(content) if extension in damaged else content)
    return folder / f"input{'.amc' if '.amc' in seed else extensions[0]}"


def warm_up(seeds: dict[str, list[Files]], folder: Path) -> None:
    """Read every seed: they must be valid, and compilation at first use must not count as slow."""
    for kind, files in seeds.items():
        for seed in files:
            for extension, content in seed.items():
                (folder / f"input{extension}").write_bytes(content)
            _read(folder / f"input{'.amc' if '.amc' in seed else next(iter(seed))}", kind)


if __name__ == "__main__":
    sys.exit(main())
