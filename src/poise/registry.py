"""Open tables: priors, constraints, formats and protocols by name, Poise's own and those of other packages.

Poise names its own by module and imports them at first use. Another package registers its entries when it is imported.
It is imported by hand or through a Python entry point of the group `poise.plugins`, which Poise loads when it looks up
a name that it does not know, or lists all names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar, cast

from poise.errors import InvalidValueError, UnknownNameError

GROUP = "poise.plugins"
Entry = TypeVar("Entry")
_loaded: list[str] = []


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries of one kind by name; an entry may be given as "module:attribute", to be imported at first use."""

    def __init__(self, kind: str, entries: Mapping[str, Entry | str]) -> None:
        self.kind, self._entries = kind, dict(entries)

    def register(self, name: str, entry: Entry) -> None:
        """Adds an entry; a name that is taken is refused."""
        if not name:
            raise InvalidValueError(f"a {self.kind} needs a name")
        if name in self._entries and self._entries[name] is not entry:
            raise InvalidValueError(f"there is already a {self.kind} {name!r}; choose another name")
        self._entries[name] = entry

    def named(self, name: str) -> Entry:
        """The entry of this name, or an error that lists close ones."""
        if name not in self:
            raise UnknownNameError(self.kind, name, self)
        return self[name]

    def first(self, holds: Callable[[Entry], bool]) -> Entry | None:
        """The first entry for which something holds; plugins are loaded only if none of those known does."""
        known = list(self._entries)
        found = next((self[name] for name in known if holds(self[name])), None)
        if found is None and len(self) > len(known):
            return next((self[name] for name in [*self][len(known) :] if holds(self[name])), None)
        return found

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            load_plugins()
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = cast(Entry, getattr(import_module(module), attribute))
            self._entries[name] = entry
        return entry

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(self._entries)

    def __len__(self) -> int:
        load_plugins()
        return len(self._entries)


def load_plugins() -> None:
    """Imports what other packages offer, once; one that fails is left out with a warning."""
    if _loaded:
        return
    _loaded.append(GROUP)
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"the plugin {point.value} is left out: {error!r}", stacklevel=2)
