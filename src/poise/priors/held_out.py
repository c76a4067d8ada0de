"""Calibration of a model: joint errors on held-out frames, relative to the standard deviations it predicted.

The predicted standard deviation follows from the model's own Gaussian. The distance of the handles from their expected
positions (the *novelty*, a mean of squares in units of the model's deviations) determines how much it must be widened:
the ratio of error to prediction grows with a power of it. `solvers.calibration` fits this when a model is learned.
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
STEEPEST = 0.5  # errors grow no faster than the distance from the expected positions
SMALLEST = 1e-4  # lower bound of ratios and novelties in logarithms
BELIEF = 3.0  # pseudo-count: rows of typical novelty added to the observed ones


class HeldOut(NamedTuple):
    """The calibration of a model's predicted deviations from held-out frames."""

    slope: float  # power of the relative novelty by which deviations are widened
    typical: float
    factor: float  # factor on all deviations
    multiples: tuple[float, ...]  # in widened deviations: radii that contain `SHARES` of all joints

    @classmethod
    def of(
        cls,
        errors: Float[Array, "frames joints"],
        claims: Float[Array, "frames joints"],
        squares: Float[Array, "frames"],
        rows: Float[Array, "frames"],
    ) -> HeldOut:
        """Fit to joint errors, predicted deviations (NaN if determined), and the sums and counts of the novelty."""
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
        """The widening factor for this many rows of handles and their sum of squared distances."""
        return float(self.factor * _novelty(squares, rows, self.typical) ** self.slope)

    def multiple(self, share: float) -> float:
        """The radius, in standard deviations, that contains this share of all joints."""
        if not 0.0 < share <= SHARES[-1]:
            raise InvalidValueError(f"the share must be between 0 and {SHARES[-1]:g}; got {share:g}")
        return float(np.interp(share, (0.0, *SHARES), (0.0, *self.multiples)))

    @classmethod
    def checked(cls, fields: Any) -> HeldOut:
        """Create it from the fields of a file, after a check."""
        _FIELDS(fields, "held_out")
        slope, typical, factor = (float(fields[name]) for name in ("slope", "typical", "factor"))
        return cls(slope, typical, factor, tuple(map(float, fields["multiples"])))


def _novelty(squares: Any, rows: Any, typical: float) -> Any:
    """Novelty relative to the typical one, shrunk towards one for few rows."""
    return (squares / typical + BELIEF) / (rows + BELIEF)


_POSITIVE = real(1e-9, 1e6)
_FIELDS = record(
    {
        "slope": real(0.0, STEEPEST), "typical": _POSITIVE, "factor": _POSITIVE,
        "multiples": row(*(_POSITIVE for _ in SHARES)),
    }
)  # fmt: skip
OF_OTHERS = HeldOut(0.419, 0.627, 1.8, (0.556, 0.985, 1.68, 2.62, 3.52, 5.69))
"""From three kinds of models on the splits `sport` and `other-gaits`, by tools/calibrate.py."""


def held_out_of(prior: object) -> HeldOut:
    """A prior's own calibration, or the default from other models of a few clips."""
    return getattr(prior, "held_out", None) or OF_OTHERS


def kept(prior: Kept, **known: object) -> Kept:
    """Attach data about its clips to a prior: `held_out`, and its training frames (`known_frames`)."""
    for name, value in known.items():
        setattr(prior, name, value)
    return prior


def kept_from(other: object, prior: Kept) -> Kept:
    """Copy the data about its clips from another prior, which this one was made from."""
    return kept(prior, **{name: vars(other)[name] for name in KEPT if name in vars(other)})
