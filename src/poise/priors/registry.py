"""Kinds of priors by name, for `learn`, model files, evaluation and the studio; other packages can add theirs.

A kind is a class with a name (`kind`), a line of help (`about`), a dataclass of `Options`, a `schema` of its file, a
class method `learn` that takes clips and the options' arguments, and the methods of a prior and of a model file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

from poise.errors import InvalidValueError
from poise.formats.tables import checked
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.registry import Registry
from poise.schema import Schema
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import JointLimits
from poise.types import Array, ShareProgress


@dataclass(frozen=True)
class PriorOptions:
    """Options of learning a kind of prior; None leaves the choice to the kind."""

    def arguments(self, motions: Sequence[Motion]) -> dict[str, Any]:  # noqa: ARG002
        """The keyword arguments of its `learn` for these clips."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Stored:
    """The contents of a model file: the body, and the results of the prior's `arrays()` and `header()`."""

    space: PoseSpace
    limits: JointLimits | None
    arrays: Mapping[str, Array]
    header: Mapping[str, Any]
    parts: tuple[Prior, ...] = ()  # the models that it is made of, if its schema has parts


@runtime_checkable
class Storable(Prior, Protocol):
    """The interface of a prior that can be stored in a file."""

    kind: str
    schema: Schema

    @property
    def summary(self) -> str:
        """A short description of the learned model."""

    def arrays(self) -> dict[str, Array]:
        """The learned arrays, by name."""

    def header(self) -> dict[str, Any]:
        """Its other settings, as JSON."""

    @classmethod
    def restored(cls, stored: Stored) -> Storable:
        """Create the prior from the contents of a file."""


@runtime_checkable
class PriorKind(Protocol):
    """A class of priors that can be learned and stored in a file."""

    kind: str
    about: str
    Options: type[PriorOptions]
    schema: Schema

    def learn(self, motions: Sequence[Motion], *, progress: ShareProgress = ..., **options: Any) -> Storable:
        """Learn a prior of this kind from clips of one topology."""

    def restored(self, stored: Stored) -> Storable:
        """Create the prior from the contents of `arrays` and `header`."""


PRIORS: Registry[PriorKind] = Registry(
    "kind of model",
    {
        "gaussian": "poise.priors.gaussian:GaussianPrior",
        "style": "poise.priors.style.prior:StylePrior",
        "local": "poise.priors.local.prior:LocalPrior",
        "dynamics": "poise.priors.dynamics.prior:DynamicsPrior",
        "universal": "poise.priors.universal.prior:UniversalPrior",
        "auto": "poise.priors.auto:AutoPrior",
        "blend": "poise.priors.blend:BlendPrior",
    },
)
PUBLISHED_GUIDES: Registry[Callable[..., Any]] = Registry(
    "published method",
    {
        "huang2017": "poise.evaluation.published.huang2017:PublishedGuide",
        "chai2005": "poise.evaluation.published.chai2005:PublishedPoses",
        "chai2005 markers": "poise.evaluation.published.chai2005:PublishedMarkers",
    },
)
"""Guides of models learned as published: they serve comparisons only, and are imported at first use."""
MADE = ("blend",)  # made from other models, not learned from clips
_NEEDED = (
    *("kind", "about", "Options", "schema", "learn", "restored", "arrays", "header", "summary"),
    *("on_body", "guide", "known_poses", "log_likelihood", "percentile"),
)


def register_prior(kind: Any) -> None:
    """Register a kind of prior, for `learn --kind`, model files, `evaluate --methods` and the studio."""
    if missing := [name for name in _NEEDED if not hasattr(kind, name)]:
        name = getattr(kind, "__name__", repr(kind))
        raise InvalidValueError(f"{name} is not a complete kind of prior; it lacks {', '.join(missing)}")
    PRIORS.register(kind.kind, kind)


def learnable() -> dict[str, PriorKind]:
    """The kinds that are learned from clips."""
    return {name: kind for name, kind in PRIORS.items() if name not in MADE}


def options_for(kind: str, given: Mapping[str, Any]) -> PriorOptions:
    """The options of a kind from values by name; None counts as not given."""
    known = {name: value for name, value in given.items() if value is not None}
    return checked(_learned(kind).Options, known, what=f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} model")


def learn(
    motions: Sequence[Motion],
    kind: str,
    options: PriorOptions | None = None,
    *,
    progress: ShareProgress = lambda _: None,
) -> Storable:
    """Learn a prior of a kind from clips of one topology."""
    chosen = _learned(kind)
    return chosen.learn(motions, progress=progress, **(options or chosen.Options()).arguments(motions))


def _learned(kind: str) -> PriorKind:
    if isinstance(kind, str) and kind in MADE:
        raise InvalidValueError(f"a {kind} is made from learned models, not from clips; choose another kind")
    return PRIORS.named(kind)
