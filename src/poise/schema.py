"""Declared contents of array files (models, libraries), checked before they are used.

A schema lists the header fields, each with a check, and the arrays, each with named axes. An axis has the same
length in all arrays of a file. Numbers are finite and in range, indices are below the length of the axis that they
index, and matrices that are Cholesky-factored are symmetric and positive definite. Compiled code does not check
bounds: a wrong index would read or write arbitrary memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poise.errors import InvalidValueError
from poise.types import Array

Check = Callable[[Any, str], None]
Header = Mapping[str, Any]

LARGEST = 1e6  # largest magnitude of a number in a model, unless its kind sets another
LONGEST = 10_000_000  # largest length of an axis
_SYMMETRIC = 1e-6  # largest asymmetry of a matrix, relative to its largest element


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """An array of numbers. `axes` gives each axis by a name or by its length: "clusters maps 3"."""

    axes: str
    least: float = -LARGEST
    most: float = LARGEST
    infinite: bool = False  # whether infinity is valid
    ascending: bool = False
    definite: bool = False  # whether the last two axes form positive definite matrices
    empty: bool = False  # whether an axis may have length 0

    def checked(self, array: Array, name: str) -> Array:
        """Return the array as float64 after checking every number."""
        if array.dtype.kind != "f":
            raise InvalidValueError(f"{name} must be floating-point numbers; got {array.dtype}")
        with np.errstate(invalid="ignore"):  # a NaN, refused below, may signal when widened
            found: Array = np.asarray(array, dtype=np.float64, order="C")
        inside = (found >= self.least) & (found <= self.most)
        if not np.all(inside | np.isinf(found) if self.infinite else inside):
            wanted = "numbers" if self.infinite else "finite numbers"
            raise InvalidValueError(f"{name} must be {wanted} between {self.least:g} and {self.most:g}")
        if self.ascending and np.any(found[1:] < found[:-1]):
            raise InvalidValueError(f"{name} must be in ascending order")
        if self.definite:
            unlike = np.abs(found - found.swapaxes(-1, -2)).max(initial=0.0)
            if unlike > _SYMMETRIC * np.abs(found).max(initial=0.0):
                raise InvalidValueError(f"{name} must be symmetric")
            try:
                np.linalg.cholesky(found)
            except np.linalg.LinAlgError:
                raise InvalidValueError(f"{name} must be positive definite") from None
        return found


@dataclass(frozen=True, kw_only=True)
class Indices:
    """An array of non-negative integers, below the length of the axis `below` if given."""

    axes: str
    below: str = ""
    least: int = 0
    distinct: bool = False
    empty: bool = False

    def checked(self, array: Array, name: str, lengths: Mapping[str, int]) -> Array:
        """Return the array as integers after checking every index."""
        if array.dtype.kind != "i":
            raise InvalidValueError(f"{name} must be whole numbers; got {array.dtype}")
        found, most = np.asarray(array, dtype=np.int64, order="C"), lengths.get(self.below, LONGEST) - 1
        if np.any((found < self.least) | (found > most)):
            raise InvalidValueError(f"{name} must be between {self.least} and {most}")
        if self.distinct and len(np.unique(found)) != len(found):
            raise InvalidValueError(f"{name} must not contain an index twice")
        return found


Declared = Mapping[str, Numbers | Indices]


@dataclass(frozen=True)
class Schema:
    """The header of one kind of prior, and the arrays that it implies; `longest` limits the lengths of named axes."""

    header: Mapping[str, Check]
    arrays: Callable[[Header, Mapping[str, int]], Declared] = lambda _header, _lengths: {}
    longest: Mapping[str, int] = field(default_factory=dict)
    parts: str = ""  # the header field that lists sub-models, each with its arrays under its index
    later: Mapping[str, tuple[Check, Any]] = field(default_factory=dict)
    """Header fields that files of earlier versions lack, with the values assumed for them."""

    def checked_header(self, header: Header, place: str = "the header") -> Header:
        """Return the declared header fields after checking each."""
        checks = {**self.header, **{name: check for name, (check, _) in self.later.items()}}
        whole_header = {**{name: meant for name, (_, meant) in self.later.items()}, **header}
        record(checks)(whole_header, place)
        return {name: whole_header[name] for name in checks}

    def checked_arrays(
        self, arrays: Mapping[str, Array], header: Header, lengths: Mapping[str, int]
    ) -> dict[str, Array]:
        """Return the declared arrays of a model with a checked header; `lengths` holds axis lengths known already."""
        known = dict(lengths)
        declared = self.arrays(header, known)
        for name, numbers in declared.items():
            if name not in arrays:
                raise InvalidValueError(f"{name!r} is missing")
            self._bind(arrays[name].shape, numbers, name, known)
        return {
            name: numbers.checked(arrays[name], name, known)
            if isinstance(numbers, Indices)
            else numbers.checked(arrays[name], name)
            for name, numbers in declared.items()
        }

    def _bind(
        self, shape: tuple[int, ...], declared: Numbers | Indices, name: str, known: dict[str, int]
    ) -> None:
        """Compare a shape with the declared axes; an axis name seen for the first time takes its length from it."""
        axes = declared.axes.split()
        if len(shape) != len(axes):
            raise InvalidValueError(f"{name} must have the axes ({declared.axes}); got the shape {shape}")
        for axis, length in zip(axes, shape, strict=True):
            expected = int(axis) if axis.isdigit() else known.setdefault(axis, length)
            if length != expected:
                raise InvalidValueError(
                    f"{name} must have the axes ({declared.axes}) with {axis} = {expected}; got the shape {shape}"
                )
            if not (length > 0 or declared.empty) or length > self.longest.get(axis, LONGEST):
                raise InvalidValueError(
                    f"{name}: {axis} must be between 1 and {self.longest.get(axis, LONGEST):,}; got {length:,}"
                )


# --- checks of header fields -----------------------------------------------------------------------------------------


def _that(holds: Callable[[Any], bool], wanted: str) -> Check:
    def check(value: Any, place: str) -> None:
        if not holds(value):
            raise _wrong(place, wanted, value)

    return check


flag = _that(lambda value: isinstance(value, bool), "true or false")
"""Check for true or false."""


def text(most: int = 1000) -> Check:
    """Check for text of at most `most` characters."""
    return _that(
        lambda value: isinstance(value, str) and len(value) <= most, f"text of at most {most} characters"
    )


def whole(least: int, most: int) -> Check:
    """Check for an integer between `least` and `most`."""
    return _that(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
        f"a whole number between {least} and {most}",
    )


def real(least: float, most: float) -> Check:
    """Check for a number between `least` and `most`."""
    return _that(
        lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        ),
        f"a number between {least:g} and {most:g}",
    )


def choice(*valid: str) -> Check:
    """Check for one of the `valid` words."""
    return _that(lambda value: isinstance(value, str) and value in valid, f"one of {', '.join(valid)}")


def several(each: Check, *, least: int = 0, most: int = 100_000) -> Check:
    """Check for a list of `least` to `most` members, each of which passes `each`."""

    def check(value: Any, place: str) -> None:
        if not (isinstance(value, list | tuple) and least <= len(value) <= most):
            raise _wrong(place, f"a list of {least} to {most} members", value)
        for position, member in enumerate(value):
            each(member, f"{place}[{position}]")

    return check


def row(*each: Check) -> Check:
    """Check for a list with one check per member."""
    counted = several(lambda _value, _place: None, least=len(each), most=len(each))

    def check(value: Any, place: str) -> None:
        counted(value, place)
        for position, (own, member) in enumerate(zip(each, value, strict=True)):
            own(member, f"{place}[{position}]")

    return check


def record(fields: Mapping[str, Check]) -> Check:
    """Check for an object with these fields, each passing its check; other fields are ignored."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(place, "an object", value)
        for name, own in fields.items():
            if name not in value:
                raise InvalidValueError(f"{place}: {name!r} is missing")
            own(value[name], f"{place}.{name}")

    return check


def mapping(each: Check, *, most: int = 1000) -> Check:
    """Check for an object of at most `most` fields, each of which passes `each`."""

    def check(value: Any, place: str) -> None:
        if not (isinstance(value, Mapping) and len(value) <= most):
            raise _wrong(place, f"an object of at most {most} fields", value)
        for name, member in value.items():
            each(member, f"{place}.{name}")

    return check


def _wrong(place: str, wanted: str, value: Any) -> InvalidValueError:
    """The error, with a short description of the value, however large or deep it is."""
    if isinstance(value, Sequence | Mapping) and not isinstance(value, str):
        got = f"{'an object' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    else:
        got = repr(value)[:60] if not isinstance(value, int) or abs(value) < 1e15 else "a huge number"
    return InvalidValueError(f"{place} must be {wanted}; got {got}")


CLIPS = several(row(text(), text()))
"""The clips that a model was learned from: names and fingerprints."""
QUANTILES = Numbers(axes="101", infinite=True, ascending=True, least=-1e12, most=1e12)
"""The log-likelihoods of the training poses at each percentile from 0 to 100."""
