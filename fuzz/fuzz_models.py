"""Feeds damaged model files to Poise and poses bodies by those that it takes: python fuzz/fuzz_models.py --count 5000

A model that is taken must work: poses are solved, likelihoods asked for, motions simulated. An answer that is called
good must be finite, inside the model's limits, and where it says it is.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mutations import Mutator, changed_json
from running import Case, parser, run

from poise import performer
from poise.apps.simulating import simulate
from poise.priors.blend import BlendPrior
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import load, save
from poise.priors.prior import Prior
from poise.priors.registry import Storable
from poise.priors.style.prior import StylePrior
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.constraints import Orientation, Position
from poise.solvers.solution import Status
from poise.solvers.solve import Model, solve

Array = np.ndarray
Arrays = dict[str, tuple[str, list[int], bytes]]  # type, shape and bytes of every array

TYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "F16": np.float16,
    "U8": np.uint8,
}
STRANGE = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e-320, 1e-12, 1e6, 1e9, 1e30, 1e155, 1e308, -1e308)
STRANGE_INDICES = (-1, -(2**40), 0, 1, 4, 30, 31, 70, 10**6, 2**31, 2**40, -(2**63), 2**63 - 1)
WORDS = ("blend", "style", "linear", "rbf+linear", "periodic", "universal")
HANDLES = ("left_hand", "right_foot", "head")


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    options = parser(__doc__, count=5_000).parse_args()
    with tempfile.TemporaryDirectory() as name:
        seeds = make_models(Path(name))
        for kind in seeds:
            use(load(Path(name) / f"{kind}.poise"), np.random.default_rng(0))
    return 1 if run(cases_of(seeds), options) else 0


def make_models(folder: Path) -> dict[str, bytes]:
    """A small valid model of every kind."""
    walk, jog = (performer.act(action, seconds=1.5, fps=30) for action in ("walk", "run"))
    style, few = StylePrior.learn([walk]), GaussianPrior.learn([walk], clusters=5)
    models: dict[str, Storable] = {
        "gaussian": few,
        "rank": GaussianPrior.learn([walk], clusters=5, rank=3),
        "style": style,
        "local": LocalPrior.learn([walk]),
        "dynamics": DynamicsPrior.learn([walk, jog]),
        "blend": BlendPrior([style, few], [0.5, 0.5]),
        "universal": UniversalPrior.learn([walk]),
    }
    for kind, model in models.items():
        save(model, folder / f"{kind}.poise")
    return {kind: (folder / f"{kind}.poise").read_bytes() for kind in models}


def cases_of(seeds: dict[str, bytes]) -> dict[str, Case]:
    """A case for each kind: its model is damaged, loaded, and used if it loads."""
    return {kind: partial(_case, content) for kind, content in seeds.items()}


def _case(content: bytes, generator: np.random.Generator, folder: Path) -> None:
    path = folder / "model.poise"
    path.write_bytes(damaged(content, generator))
    use(load(path), generator)


# --- damage --------------------------------------------------------------------------------------------------------


def damaged(content: bytes, generator: np.random.Generator) -> bytes:
    """The model with a change or two: of bytes, of the header's values, or of the arrays."""
    if generator.random() < 0.1:
        return Mutator(generator, (content,))(content)
    header, arrays = _parts(content)
    for _ in range(int(generator.integers(1, 3))):
        if generator.random() < 0.3:
            header = changed_json(header, generator, words=WORDS)
        else:
            _change_arrays(arrays, generator)
    return _joined(header, arrays)


def _parts(content: bytes) -> tuple[str, Arrays]:
    length = struct.unpack("<Q", content[:8])[0]
    fields, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    header = fields.pop("__metadata__")["poise"]
    return header, {
        name: (each["dtype"], each["shape"], data[slice(*each["data_offsets"])])
        for name, each in fields.items()
    }


def _joined(header: str, arrays: Arrays) -> bytes:
    fields, data = {"__metadata__": {"poise": header}}, b""
    for name, (kind, shape, raw) in arrays.items():
        fields[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}  # type: ignore[dict-item]
        data += raw
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def _change_arrays(arrays: Arrays, generator: np.random.Generator) -> None:
    """Replace one array by another: of another length, type or name, or with other numbers."""
    names = list(arrays)
    if not names:
        return
    name = names[int(generator.integers(len(names)))]
    kind, shape, raw = arrays[name]
    change = generator.integers(8)
    if change == 0:
        del arrays[name]
    elif change == 1:
        arrays[name] = arrays[names[int(generator.integers(len(names)))]]
    elif kind in TYPES:
        array = np.frombuffer(raw, TYPES[kind]).reshape(shape)
        changes: tuple[Callable[[Array, np.random.Generator], Array], ...] = (
            _resized,
            _retyped,
            _with_strange,
        )
        changed = changes[min(int(generator.integers(6)), 2)](array, generator)
        back = {np.dtype(value): key for key, value in TYPES.items()}
        arrays[name] = (back[changed.dtype], list(changed.shape), changed.tobytes())


def _resized(array: Array, generator: np.random.Generator) -> Array:
    if array.ndim == 0 or generator.random() < 0.1:
        return array.reshape(-1) if generator.random() < 0.5 else array[None]
    axis, length = int(generator.integers(array.ndim)), array.shape[0]
    length = array.shape[axis]
    wanted = int(generator.choice([0, 1, max(length - 1, 0), length + 1, length + 3, 2 * length]))
    return (
        np.resize(array.swapaxes(0, axis), (wanted, *array.swapaxes(0, axis).shape[1:]))
        .swapaxes(0, axis)
        .copy()
    )


def _retyped(array: Array, generator: np.random.Generator) -> Array:
    kinds = list(TYPES.values())
    with np.errstate(all="ignore"):
        return array.astype(kinds[int(generator.integers(len(kinds)))])


def _with_strange(array: Array, generator: np.random.Generator) -> Array:
    """Replace some or all numbers by strange ones, or permute them."""
    changed = array.copy()
    flat = changed.reshape(-1)
    if flat.size == 0:
        return changed
    if generator.random() < 0.15:
        generator.shuffle(flat)
        return changed
    if changed.dtype.kind == "f" and generator.random() < 0.3:  # plausible, but not what was learned
        with np.errstate(all="ignore"):
            return changed + (
                generator.normal(size=changed.shape) * 10.0 ** generator.integers(-6, 3)
            ).astype(changed.dtype)
    whole = changed.dtype.kind in "iu"
    values = STRANGE_INDICES if whole else STRANGE
    where = (
        slice(None)
        if generator.random() < 0.25
        else generator.integers(0, flat.size, generator.integers(1, 5))
    )
    value: Any = values[int(generator.integers(len(values)))]
    with np.errstate(all="ignore"):
        scaled = flat[where] * generator.choice([-1.0, 1e-3, 2.0, 1e3, 1e6])
        chosen = scaled if not whole and generator.random() < 0.3 else np.array(value).astype(changed.dtype)
        flat[where] = chosen
    return changed


# --- use -----------------------------------------------------------------------------------------------------------


def use(prior: Prior, generator: np.random.Generator) -> None:
    """Typical uses of a model: pose by handles, compute the likelihood, simulate."""
    names = [name for name in HANDLES if name in prior.space.skeleton.roles] or [
        prior.space.skeleton.names[0]
    ]
    count = int(generator.integers(1, len(names) + 1))
    constraints = [Position(name, generator.normal((0.0, 1.0, 0.0), 0.5)) for name in names[:count]]
    check(prior, constraints)
    check(prior, [*constraints, Orientation(names[0], generator.normal(size=4), tolerance=0.3)])
    if isinstance(prior, DynamicsPrior) and generator.random() < 0.5:
        simulate(prior, seconds=0.2)


def check(model: Model, constraints: list[Any], **options: Any) -> None:
    """Solve, and check the solution against its own claims."""
    solution = solve(model, constraints, **options)
    if solution.status is Status.BROKEN:
        return
    assert np.all(np.isfinite(solution.q)), "a pose that is not finite"
    assert abs(np.linalg.norm(solution.q[3:7]) - 1.0) < 1e-6, "a root that is not turned by a unit quaternion"
    for residual in solution.residuals:
        assert np.isfinite(residual.value), "a residual that is not finite"
        assert residual.met or not residual.hard or not solution.reached, "reached, but not met"
    for constraint, residual in zip(_kept(constraints), solution.residuals, strict=True):
        handle = constraint.handle if isinstance(constraint, Position) else ""
        if isinstance(handle, str) and handle:
            off = np.linalg.norm(solution.positions[handle] - constraint.target)
            assert abs(off - residual.value) < 1e-6 * max(1.0, off), "a residual that is not the distance"
    prior = solution.prior
    if prior is not None and prior.limits is not None:
        moving = prior.space.moving
        maps = solution.q[7:].reshape(-1, 3)
        lower, upper = prior.limits.lower[moving], prior.limits.upper[moving]
        assert np.all((maps >= lower - 1e-9) & (maps <= upper + 1e-9)), "outside the limits"
    assert not np.isnan(solution.percentile or 0.0), "a percentile that is not a number"


def _kept(constraints: list[Any]) -> list[Any]:
    """The constraints that a solver does not ignore."""
    return [constraint for constraint in constraints if constraint.weight != 0.0]


if __name__ == "__main__":
    sys.exit(main())
