"""The layout of a latent space: the meaning of each dimension, and its description in words (section 4).

A dimension is free, a function of its source (back-constraints), or locally linear in it. The source is the pose, or
the cosine or sine of a phase: a circle is two dimensions, a cylinder a circle and an axis, a torus two circles.

A description is `cylinder(phase) by back-constraints + smooth style axis by local linearity`, for example. In full:

    description  a model's name (gpdm, hybrid, ...), or parts joined by +
    part         WHAT [by back-constraints | by local linearity]
    WHAT         circle(PHASE) | cylinder(PHASE) | torus(PHASE, PHASE) | [N] [smooth | free] [NAME] axis | MODEL
                 | [added | multiplied] transitions | learned phase | first order | second order | no dynamics
                 | [no] steps beside
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal

from poise.errors import InvalidValueError
from poise.schema import choice, flag, record, row, several, text, whole

Means = Literal["free", "back-constraints", "local linearity"]
FREE: Means = "free"
BACK: Means = "back-constraints"
LOCAL: Means = "local linearity"

Joined = Literal["", "added", "multiplied"]
ADDED: Joined = "added"
MULTIPLIED: Joined = "multiplied"


_DIMENSION = row(
    choice(FREE, BACK, LOCAL), text(), choice("", "cos", "sin"), choice("", ADDED, MULTIPLIED), text()
)
HEADER = record({"dimensions": several(_DIMENSION, least=1, most=64), "dynamics": flag, "order": whole(1, 2)})


@dataclass(frozen=True)
class Dimension:
    """One latent dimension: the means that constrain it, and its source ("pose", or a phase's cosine or sine)."""

    means: Means = FREE
    source: str = "pose"
    part: Literal["", "cos", "sin"] = ""
    transitions: Joined = ""  # how transitions enter its source (4.3), if they do
    name: str = ""

    @property
    def label(self) -> str:
        """The axis label in pictures."""
        if self.part:
            return f"{self.part} {self.source}"
        return self.name or {FREE: "free", BACK: "pose", LOCAL: "smooth"}[self.means]


@dataclass(frozen=True)
class Structure:
    """The dimensions of a latent space, and whether it has learned dynamics."""

    dimensions: tuple[Dimension, ...]
    dynamics: bool = True
    order: int = 1
    learned_phase: bool = False  # whether phases are learned too, starting from those detected or given
    published: bool = False  # as in Urtasun et al. 2008: see `as_published`
    beside: bool | None = (
        None  # whether dynamics know steps beside the recorded ones; by default with limit cycles
    )

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise InvalidValueError("a latent space needs at least one dimension")
        if self.order not in (1, 2):
            raise InvalidValueError(f"the order of the dynamics must be 1 or 2; got {self.order}")
        circles = [each for each in self.dimensions if each.part]
        multiplied = any(each.means == BACK and each.transitions == MULTIPLIED for each in self.dimensions)
        if multiplied and not circles:
            raise InvalidValueError(
                "multiplied transitions need a circle, which separates them: "
                "describe a circle or a cylinder, or write 'added transitions'"
            )
        if self.learned_phase and (not circles or any(each.means != BACK for each in circles)):
            raise InvalidValueError(
                "a learned phase needs back-constraints: describe a circle or a cylinder by back-constraints, "
                "or use the detected phase"
            )

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases it needs, each once."""
        return tuple(dict.fromkeys(each.source for each in self.dimensions if each.part))

    def places_of(self, source: str) -> list[int]:
        """The dimensions of the cosine and the sine of a phase."""
        return [number for number, each in enumerate(self.dimensions) if each.part and each.source == source]

    @property
    def uses_transitions(self) -> bool:
        """Whether any dimension uses transitions."""
        return any(each.transitions for each in self.dimensions)

    def with_transitions(self, joined: Joined | None = None) -> Structure:
        """The same with transitions in all constrained dimensions; those constrained by phase have them already.

        By default, back-constraints are multiplied by them if a circle separates different transitions, else added.
        """

        def of(each: Dimension) -> Joined:
            if each.means == FREE or (each.part and each.means == BACK):
                return ""
            return joined or (ADDED if each.means == BACK and not self.phases else MULTIPLIED)

        return replace(
            self, dimensions=tuple(replace(each, transitions=of(each)) for each in self.dimensions)
        )

    def as_published(self) -> Structure:
        """The model as in the paper.

        Transitions are added (Eq. 9), local linearity is weighted as in Eq. 5 and takes neighbours from everywhere,
        the dynamics have no mean function (Eq. 2), and simulations use the dynamics alone.
        """
        means = self.with_transitions(ADDED) if self.uses_transitions else self
        return replace(means, published=True, learned_phase=False)

    def with_another_axis(self) -> Structure:
        """The same with one more dimension, of the last one's kind."""
        return replace(self, dimensions=(*self.dimensions, self.dimensions[-1]))

    def without_transitions(self) -> Structure:
        """The same without transitions in any dimension."""
        return replace(self, dimensions=tuple(replace(each, transitions="") for each in self.dimensions))

    def header(self) -> dict[str, Any]:
        """The structure as JSON."""
        return {**vars(self), "dimensions": [list(astuple(each)) for each in self.dimensions]}

    @classmethod
    def restored(cls, header: Mapping[str, Any]) -> Structure:
        """Create the structure from JSON."""
        return cls(
            tuple(Dimension(*each) for each in header["dimensions"]),
            dynamics=bool(header["dynamics"]),
            order=int(header["order"]),
            learned_phase=bool(header.get("learned_phase", False)),
            published=bool(header.get("published", False)),
            beside=header.get("beside"),
        )


def circle(source: str, means: Means) -> tuple[Dimension, Dimension]:
    """The cosine and the sine of a phase."""
    return Dimension(means, source, "cos"), Dimension(means, source, "sin")


_CYLINDER = Structure((*circle("phase", BACK), Dimension(BACK, name="style")))
MODELS: Mapping[str, Structure] = {
    "gplvm": Structure((Dimension(FREE),) * 3, dynamics=False),
    "gpdm": Structure((Dimension(FREE),) * 3),
    "back-constrained": Structure((Dimension(BACK),) * 3),
    "locally-linear": Structure((Dimension(LOCAL),) * 3),
    "topology": _CYLINDER,
    "transitions": _CYLINDER.with_transitions(),
    "hybrid": Structure(
        (*circle("phase", BACK), Dimension(LOCAL, transitions=MULTIPLIED, name="style")), learned_phase=True
    ),
}
"""The paper's models by name, all of three dimensions: Figs. 1 and 2; with transitions multiplied instead of added."""


# --- descriptions in words --------------------------------------------------------------------------------------------


_SHAPES = {"circle": ("phase",), "cylinder": ("phase",), "torus": ("phase", "frequency")}
_EXAMPLE = "cylinder(phase) by back-constraints + smooth style axis by local linearity"
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4}
_TRANSITIONS: dict[str, Joined | None] = {
    "transitions": None,
    "added transitions": ADDED,
    "multiplied transitions": MULTIPLIED,
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "learned phase": {"learned_phase": True},
    "first order": {"order": 1},
    "second order": {"order": 2},
    "no dynamics": {"dynamics": False},
    "steps beside": {"beside": True},
    "no steps beside": {"beside": False},
}
_MEANS: dict[str, Means] = {
    **dict.fromkeys(("back-constraints", "back-constraint", "back constraints"), BACK),
    **dict.fromkeys(("local linearity", "local linearities"), LOCAL),
}


def structure_from_text(text: str) -> Structure:
    """Return the structure that a description asks for; an error names the part that is not understood."""
    wanted = " ".join(text.split()).lower()
    if wanted in MODELS:
        return MODELS[wanted]
    if not wanted:
        raise InvalidValueError(f"the description is empty; write for example: {_EXAMPLE}")
    dimensions: list[Dimension] = []
    settings: dict[str, Any] = {}
    transitions, open_axis = "", False
    for part in (one.strip() for one in wanted.split("+")):
        what, by, named = (word.strip() for word in part.partition(" by "))
        if by and named not in _MEANS:
            raise InvalidValueError(
                f"{part!r}: {named!r} is unknown; expected 'by back-constraints' or 'by local linearity'"
            )
        means = _MEANS.get(named)
        shape = re.fullmatch(r"(\w+)(\(([^()]*)\))?", what)
        if what in _TRANSITIONS:
            transitions = what
        elif what in _SETTINGS:
            settings |= _SETTINGS[what]
        elif what in MODELS and not by:
            model = vars(MODELS[what])
            dimensions += model["dimensions"]
            settings |= {name: model[name] for name in ("dynamics", "order", "learned_phase")}
        elif shape and (shape[2] or shape[1] in _SHAPES):
            dimensions += _circles(shape[1], shape[3], means or BACK, part)
            open_axis = open_axis or shape[1] == "cylinder"
        else:
            dimensions += _axes(what, means, part)
            open_axis = False
    if open_axis:  # a cylinder has an axis even if the description has none
        dimensions.append(Dimension(BACK, name="axis"))
    if not dimensions:
        raise InvalidValueError(f"{text!r} has no dimensions; write for example: {_EXAMPLE}")
    structure = Structure(tuple(dimensions), **settings)
    return structure.with_transitions(_TRANSITIONS[transitions]) if transitions else structure


def _circles(shape: str, sources: str | None, means: Means, part: str) -> list[Dimension]:
    """The circles of a shape, by its usual phases unless its sources are given."""
    if shape not in _SHAPES:
        raise InvalidValueError(f"{part!r}: {shape!r} is not a shape; shapes are {', '.join(_SHAPES)}")
    usual = _SHAPES[shape]
    names = usual if sources is None else [name.strip() for name in sources.split(",") if name.strip()]
    if len(names) != len(usual):
        raise InvalidValueError(
            f"{part!r}: a {shape} needs {len(usual)} phase{'s' * (len(usual) > 1)}, "
            f"such as {shape}({', '.join(usual)}); got {len(names)}"
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
