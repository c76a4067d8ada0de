"""How far joints were off on frames that a model had not learned, against what it had claimed: its calibration.

A claim is the deviation that follows from the model's own Gaussian. How far the handles are from where the model
expected them (its *novelty*, a mean of squares in its own deviations) says how much wider a claim must be: errors over
claims grow with a power of it. `solvers.calibration` fits this when a model is learned.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.schema import real, record, row
from poise.types import Array

Kept = TypeVar("Kept")

SHARES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
KEPT = ("held_out", "known_frames")
STEEPEST = 0.5  # errors grow no faster than the distance from what was expected
SMALLEST = 1e-4  # of ratios and novelties, for logarithms
BELIEF = 3.0  # rows of handles that are as typical as those of the record, beside the ones at hand


class HeldOut(NamedTuple):
    """What held-out frames say of a model's claims."""

    slope: float  # the power of the novelty, over the typical one, by which claims widen
    typical: float
    factor: float  # of all claims
    multiples: tuple[float, ...]  # within which `SHARES` of all joints were, in widened deviations

    @classmethod
    def of(
        cls,
        errors: Float[Array, "frames joints"],
        claims: Float[Array, "frames joints"],
        squares: Float[Array, "frames"],
        rows: Float[Array, "frames"],
    ) -> HeldOut:
        """From errors of joints, what was claimed of them (NaN where nothing is open), and what novelty is made of."""
        ratios, typical = (
            np.maximum(errors / claims, SMALLEST),
            max(float(np.median(squares / rows)), SMALLEST),
        )
        logs = np.log(_novelty(squares, rows, typical))
        against, off = 0.5 * np.log(np.nanmean(ratios**2, axis=1)), logs - logs.mean()
        slope = min(max(float(off @ against / max(off @ off, 1e-9)), 0.0), STEEPEST)
        left = ratios / np.exp(slope * logs)[:, None]
        factor = float(np.sqrt(np.nanmean(left**2) / 3))
        return cls(slope, typical, factor, tuple(np.nanquantile(left / factor, SHARES).tolist()))

    def widening(self, squares: float, rows: float) -> float:
        """How much wider than claimed, for so many rows of handles and the sum of their squared distances."""
        return float(self.factor * _novelty(squares, rows, self.typical) ** self.slope)

    def multiple(self, share: float) -> float:
        """The deviations within which this share of all joints is."""
        if not 0.0 < share <= SHARES[-1]:
            raise InvalidValueError(f"a share between 0 and {SHARES[-1]:g} is expected; got {share:g}")
        return float(np.interp(share, (0.0, *SHARES), (0.0, *self.multiples)))

    @classmethod
    def checked(cls, fields: Any) -> HeldOut:
        """From what a file keeps."""
        _FIELDS(fields, "held_out")
        slope, typical, factor = (float(fields[name]) for name in ("slope", "typical", "factor"))
        return cls(slope, typical, factor, tuple(map(float, fields["multiples"])))


def _novelty(squares: Any, rows: Any, typical: float) -> Any:
    """Over the typical one; few rows are believed little."""
    return (squares / typical + BELIEF) / (rows + BELIEF)


_POSITIVE = real(1e-9, 1e6)
_FIELDS = record(
    {
        "slope": real(0.0, STEEPEST), "typical": _POSITIVE, "factor": _POSITIVE,
        "multiples": row(*(_POSITIVE for _ in SHARES)),
    }
)  # fmt: skip
OF_OTHERS = HeldOut(0.419, 0.627, 1.8, (0.556, 0.985, 1.68, 2.62, 3.52, 5.69))
"""Of three kinds of models on the splits `sport` and `other-gaits`, by tools/calibrate.py."""


def held_out_of(prior: object) -> HeldOut:
    """A prior's own record, or for one without that of other models of a few clips."""
    return getattr(prior, "held_out", None) or OF_OTHERS


def kept(prior: Kept, **known: object) -> Kept:
    """A prior with what else is known of its clips: `held_out`, and the frames that it knows (`known_frames`)."""
    for name, value in known.items():
        setattr(prior, name, value)
    return prior


def kept_from(other: object, prior: Kept) -> Kept:
    """A prior with what is known of the clips of another, which it was made of."""
    return kept(prior, **{name: vars(other)[name] for name in KEPT if name in vars(other)})
