"""The models shared by all sessions of a studio, by id; each has a skeleton, and plain IK works on any."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from poise.errors import InvalidValueError, UnknownNameError
from poise.priors.abilities import latent_of, standing_pose
from poise.priors.blend import BlendPrior
from poise.priors.prior import Prior
from poise.skeleton.skeleton import Skeleton
from poise.studio import messages
from poise.studio.arrays import body_of, skins_of
from poise.studio.uploads import Upload

if TYPE_CHECKING:
    from poise.studio.latent import LatentView

PLAIN: messages.Kind = "plain"
MOST_MODELS = 64  # models that one page may learn or open


@dataclass(eq=False)
class ModelSource:
    """The source of a model: it is made once, at first use."""

    make: Callable[[], Prior]
    skeleton: Skeleton
    latent: bool
    path: Path | None = None
    _found: Prior | None = None
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, prior: Prior) -> ModelSource:
        """The source of an existing model."""
        return cls(lambda: prior, prior.space.skeleton, latent_of(prior) is not None, _found=prior)

    def get(self) -> Prior:
        """The model."""
        with self._lock:
            self._found = self.make() if self._found is None else self._found
            return self._found

    @property
    def ready(self) -> bool:
        """Whether it is available at once."""
        return self._found is not None

    @property
    def at_hand(self) -> bool:
        """Whether it is available as fast as its file can be read."""
        return self.ready or (self.path is not None and self.path.exists())


@dataclass(frozen=True, eq=False)
class Entry:
    """A model with the name that a person gave it."""

    id: str
    name: str
    source: ModelSource
    kind: messages.Kind
    summary: str
    character: Upload | None = None
    """The file of a character with a mesh of its own."""

    @property
    def prior(self) -> Prior:
        """The model itself, which may have to be learned first."""
        return self.source.get()

    @property
    def skeleton(self) -> Skeleton:
        """Its skeleton."""
        return self.source.skeleton

    @cached_property
    def body(self) -> messages.BodyShown:
        """The mannequin of its skeleton, and the character's own meshes."""
        body = body_of(standing_pose(self.prior))
        if self.character is None:
            return body
        skins = skins_of(self.character.path)
        return body.with_(character=self.character.address, skins=skins)

    @cached_property
    def view(self) -> LatentView | None:
        """Its latent space, if it has one."""
        from poise.studio.latent import view_of  # imports a plotting library

        latent = None if self.is_plain else latent_of(self.prior)
        return None if latent is None else view_of(latent)

    @property
    def is_plain(self) -> bool:
        """Whether it is plain inverse kinematics: of its prior only the body and the joint limits are used."""
        return self.kind == PLAIN

    def described(self, *, own: bool = False) -> messages.Model:
        """The model as a message for the page."""
        clips = [name for name, _ in getattr(self.prior, "clips", ())] if self.source.ready else []
        return messages.Model(
            id=self.id, name=self.name, kind=self.kind, summary=self.summary,
            latent=self.source.latent and not self.is_plain, clips=clips, own=own,
        )  # fmt: skip


class ModelStore:
    """Models by id, in order, after those of the parent store; plain IK is always included."""

    def __init__(self, base: ModelStore | None = None) -> None:
        self._base = base
        self._own: dict[str, Entry] = {}
        self._plain: dict[str, Entry] = {}
        self._lock = Lock()

    def add(self, prior: Prior, name: str, *, character: Upload | None = None) -> Entry:
        """Add a model under an unused id; for a character with a mesh, with its file."""
        kind, summary = getattr(prior, "kind", ""), getattr(prior, "summary", "")
        return self.add_later(ModelSource.of(prior), name, kind=kind, summary=summary, character=character)

    def add_later(
        self, source: ModelSource, name: str, *, kind: str, summary: str, character: Upload | None = None
    ) -> Entry:
        """Add a model that is made at first use."""
        with self._lock:
            if self._base is not None and len(self._own) >= MOST_MODELS:
                raise InvalidValueError(
                    f"this page has {MOST_MODELS} models of its own, the most that it can have; open another page"
                )
            entry = Entry(self._free_id(name), name, source, kind, summary, character)
            self._own[entry.id] = entry
        return entry

    def __getitem__(self, model: str) -> Entry:
        if model == PLAIN:
            return self.plain(self.first.skeleton)
        found = {entry.id: entry for entry in self.learned}
        if model not in found:
            raise UnknownNameError("model", model, [*found, PLAIN])
        return found[model]

    @property
    def learned(self) -> list[Entry]:
        """All models but plain IK."""
        return [*(self._base.learned if self._base else ()), *self._own.values()]

    @property
    def own(self) -> list[Entry]:
        """Those added here."""
        return list(self._own.values())

    def rename(self, model: str, name: str) -> None:
        """Rename a model that was added here; its id is kept."""
        with self._lock:
            if model not in self._own:
                raise InvalidValueError("only models that came into this page can be renamed")
            self._own[model] = replace(self._own[model], name=name)

    @property
    def first(self) -> Entry:
        """The default model of a new session."""
        if not self.learned:
            raise InvalidValueError("there is no model yet")
        return self.learned[0]

    def plain(self, skeleton: Skeleton) -> Entry:
        """Plain IK on a skeleton, with the joint limits of an available model of it, preferably a gaussian."""
        known = [entry for entry in self.learned if entry.skeleton.same_topology(skeleton)]
        alike = [entry for entry in known if entry.source.ready] or known
        if not alike:
            raise InvalidValueError("there is no model of this skeleton")
        widest = next((entry for entry in alike if entry.kind == "gaussian"), alike[0])
        if self._base is not None and widest.id not in self._own:
            return self._base.plain(skeleton)
        if widest.id not in self._plain:
            words = "no prior: the least change of the pose that meets the handles"
            self._plain[widest.id] = Entry(PLAIN, "plain IK", widest.source, PLAIN, words, widest.character)
        return self._plain[widest.id]

    def described(self) -> list[messages.Model]:
        """All models, plain IK last."""
        return [entry.described(own=entry.id in self._own) for entry in (*self.learned, self[PLAIN])]

    def blend(self, weights: Iterable[messages.Weight]) -> Prior:
        """The blend of models by weights that need not sum to one; a single one is returned unchanged."""
        given = [(self[weight.model], weight.weight) for weight in weights if weight.weight > 0.0]
        if not given or any(entry.is_plain for entry, _ in given):
            raise InvalidValueError(
                "a blend needs a learned model with some weight; plain IK cannot be blended"
            )
        if len(given) == 1:
            return given[0][0].prior
        total = sum(weight for _, weight in given)
        return BlendPrior([entry.prior for entry, _ in given], [weight / total for _, weight in given])

    def _free_id(self, name: str) -> str:
        base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "model"
        taken = {PLAIN, *(entry.id for entry in self.learned)}
        names = chain([base], (f"{base}-{number}" for number in count(2)))
        return next(name for name in names if name not in taken)
