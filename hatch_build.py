"""The build hook: wheels and source archives carry the studio's page, built here if it is not there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "POISE_WITHOUT_PAGE"  # set it to build without the page, where neither Node nor a network is


class PageHook(BuildHookInterface):
    """Builds the page with tools/page.py; an editable installation leaves that to `make page`."""

    def dependencies(self) -> list[str]:
        """Node from PyPI, if the page must be built and this machine has no Node."""
        page = _page(self.root)
        needed = self._is_wanted() and not page.is_current() and not page.has_node()
        return [_locked(Path(self.root))] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as hatchling calls it
        """Build the page before the files are packed."""
        page = _page(self.root)
        if version == "editable" or not self._is_wanted() or page.is_current():
            return
        try:
            page.build([])
        except page.PageError as error:
            sys.exit(
                f"\nPoise cannot be built: its studio's page is missing, and {error}.\n"
                f"Install Node {page.NODE[0]} or newer, or set {WITHOUT}=1 to do without the studio.\n"
            )

    def _is_wanted(self) -> bool:
        return not os.environ.get(WITHOUT)


def _page(root: str) -> Any:
    tools = str(Path(root) / "tools")
    if tools not in sys.path:
        sys.path.insert(0, tools)
    import page

    return page


def _locked(root: Path) -> str:
    """The version of Node that `make page` uses."""
    return (root / "requirements" / "node.txt").read_text(encoding="utf-8").split()[0]
