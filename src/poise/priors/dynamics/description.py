"""Parse a short description of a latent space.

`cylinder(phase) by back-constraints + smooth style axis by local linearity`, for example. In full:

    description  a model's name (gpdm, hybrid, ...), or parts joined by +
    part         WHAT [by back-constraints | by local linearity]
    WHAT         circle(PHASE) | cylinder(PHASE) | torus(PHASE, PHASE) | [N] [smooth | free] [NAME] axis
                 | [added | multiplied] transitions | learned phase | first order | second order | no dynamics
"""

from __future__ import annotations

import re
from dataclasses import replace

from poise.errors import InvalidValueError
from poise.priors.dynamics.structure import (
    ADDED,
    BACK,
    FREE,
    LOCAL,
    MODELS,
    MULTIPLIED,
    Dimension,
    Joined,
    Means,
    Structure,
    circle,
)

_SHAPES = {"circle": 1, "cylinder": 1, "torus": 2}
_EXAMPLE = "cylinder(phase) by back-constraints + smooth style axis by local linearity"
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4}
_TRANSITIONS: dict[str, Joined | None] = {
    "transitions": None,
    "added transitions": ADDED,
    "multiplied transitions": MULTIPLIED,
}


def structure_from_text(text: str) -> Structure:
    """Return the structure that a description asks for; an error names the part that is not understood."""
    wanted = " ".join(text.split()).lower()
    if wanted in MODELS:
        return MODELS[wanted]
    if not wanted:
        raise InvalidValueError(f"the description is empty; write for example: {_EXAMPLE}")
    structure = Structure((Dimension(),))
    dimensions: list[Dimension] = []
    transitions, learned_phase, open_axis = "", False, False
    for part in (one.strip() for one in wanted.split("+")):
        what, means = _split(part)
        if what in _TRANSITIONS:
            transitions = what
        elif what == "learned phase":
            learned_phase = True
        elif what in ("first order", "second order"):
            structure = replace(structure, order=1 if what.startswith("first") else 2)
        elif what == "no dynamics":
            structure = replace(structure, dynamics=False)
        elif what in _SHAPES:
            dimensions += _shape(
                what, ", ".join(("phase", "frequency")[: _SHAPES[what]]), means or BACK, part
            )
            open_axis = open_axis or what == "cylinder"
        elif found := re.fullmatch(r"(\w+)\(([^()]*)\)", what):
            dimensions += _shape(found[1], found[2], means or BACK, part)
            open_axis = open_axis or found[1] == "cylinder"
        else:
            dimensions += _axes(what, means, part)
            open_axis = False
    if open_axis:  # a cylinder has an axis even if the description has none
        dimensions.append(Dimension(BACK, name="axis"))
    if not dimensions:
        raise InvalidValueError(f"{text!r} has no dimensions; write for example: {_EXAMPLE}")
    structure = replace(structure, dimensions=tuple(dimensions), learned_phase=learned_phase)
    return structure.with_transitions(_TRANSITIONS[transitions]) if transitions else structure


def _split(part: str) -> tuple[str, Means | None]:
    what, by, means = part.partition(" by ")
    if not by:
        return what.strip(), None
    names: dict[str, Means] = {
        "back-constraints": BACK,
        "back-constraint": BACK,
        "back constraints": BACK,
        "local linearity": LOCAL,
        "local linearities": LOCAL,
    }
    if means.strip() not in names:
        raise InvalidValueError(
            f"{part!r}: {means.strip()!r} is unknown; expected 'by back-constraints' or 'by local linearity'"
        )
    return what.strip(), names[means.strip()]


def _shape(shape: str, sources: str, means: Means, part: str) -> list[Dimension]:
    if shape not in _SHAPES:
        raise InvalidValueError(f"{part!r}: {shape!r} is not a shape; shapes are {', '.join(_SHAPES)}")
    names = [name.strip() for name in sources.split(",") if name.strip()]
    if len(names) != _SHAPES[shape]:
        raise InvalidValueError(
            f"{part!r}: a {shape} needs {_SHAPES[shape]} phase{'s' * (_SHAPES[shape] > 1)}, "
            f"such as {shape}({', '.join(['phase', 'frequency'][: _SHAPES[shape]])}); got {len(names)}"
        )
    return [dimension for name in names for dimension in circle(name, means)]


def _axes(what: str, means: Means | None, part: str) -> list[Dimension]:
    words = what.split()
    if not words or words[-1] not in ("axis", "axes"):
        raise InvalidValueError(
            f"{part!r} is not understood; parts are circle(phase), cylinder(phase), torus(phase, frequency), "
            f"a smooth axis, a free axis, transitions, learned phase, second order. For example: {_EXAMPLE}"
        )
    words, count = words[:-1], 1
    if words and (words[0] in _COUNTS or words[0].isdigit()):
        count = _COUNTS.get(words[0], 0) or int(words[0])
        words = words[1:]
    if words and words[0] in ("a", "an"):
        words = words[1:]
    kind = words.pop(0) if words and words[0] in ("smooth", "free") else ("smooth" if means else "free")
    if kind == "free" and means is not None:
        raise InvalidValueError(f"{part!r}: an axis is either free or constrained by {means}, not both")
    if len(words) > 1 or count < 1:
        raise InvalidValueError(f"{part!r}: an axis has a name of one word and a count of at least 1")
    chosen: Means = FREE if kind == "free" else (means or LOCAL)
    return [Dimension(chosen, name=words[0] if words else "")] * count
