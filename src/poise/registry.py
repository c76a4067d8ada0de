"""Registries of priors, constraints, formats and protocols by name, both Poise's own and those of plugins.

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
    """Entries of one kind by name; an entry given as "module:attribute" is imported at first use."""

    def __init__(self, kind: str, entries: Mapping[str, Entry | str]) -> None:
        self.kind, self._entries = kind, dict(entries)

    def register(self, name: str, entry: Entry) -> None:
        """Add an entry; raise if the name is taken."""
        if not name:
            raise InvalidValueError(f"a {self.kind} needs a name")
        if name in self._entries and self._entries[name] is not entry:
            raise InvalidValueError(f"the {self.kind} {name!r} already exists; choose another name")
        self._entries[name] = entry

    def named(self, name: str) -> Entry:
        """Return the entry with this name; raise an error that lists close matches if there is none."""
        if not isinstance(name, str) or name not in self:
            raise UnknownNameError(self.kind, str(name)[:60], self)
        return self[name]

    def first(self, holds: Callable[[Entry], bool]) -> Entry | None:
        """Return the first entry that satisfies `holds`; plugins are loaded only if no known entry does."""
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
    """Import the registered plugins, once; a plugin that fails is skipped with a warning."""
    if _loaded:
        return
    _loaded.append(GROUP)
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"the plugin {point.value} was skipped: {error!r}", stacklevel=2)
