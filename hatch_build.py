"""The build hook: wheels and source archives carry the studio's page, built here if it is not there.

A wheel made with `POISE_KERNELS=FOLDER` (by tools/wheels.sh) also carries the compiled kernels of the installation in
that folder, for its version of Python and its kind of machine. With `POISE_PEOPLE_APART=1` the networks that find
people are left to the wheel of `people/`, and the extra `video` asks for it.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "POISE_KERNELS"
WITHOUT = "POISE_WITHOUT_PAGE"  # set it to build without the page, where neither Node nor a network is
PEOPLE, APART = "src/poise/vision/people/models", "POISE_PEOPLE_APART"


class PageHook(BuildHookInterface):
    """Builds the page with tools/page.py; an editable installation leaves that to `make page`."""

    def dependencies(self) -> list[str]:
        """Node from PyPI, if the page must be built and this machine has no Node."""
        page = _page(self.root)
        needed = self._is_wanted() and not page.is_current() and not page.has_node()
        return [_locked(Path(self.root))] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page before the files are packed, and add ready kernels."""
        if self.target_name == "wheel" and (installed := os.environ.get(KERNELS)):
            kernels = sorted(Path(installed).glob("poise/**/__pycache__/*.nb[ic]"))
            if not kernels:
                sys.exit(f"\nPoise cannot be built with kernels: there are none below {installed}/poise.\n")
            build_data["force_include"] |= {str(one): str(one.relative_to(installed)) for one in kernels}
            build_data["pure_python"], build_data["tag"] = False, _tag()
        if os.environ.get(APART):
            build_data["dependencies"].append(f"poise-people=={self.metadata.version}; extra == 'video'")
        else:
            build_data["artifacts"].append(PEOPLE)
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


def _tag() -> str:
    """The version of Python and the kind of machine that kernels serve: they call no library of the system."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{machine.replace('linux_', 'manylinux_2_17_', 1)}"


def _locked(root: Path) -> str:
    """The version of Node that `make page` uses."""
    return (root / "requirements" / "node.txt").read_text(encoding="utf-8").split()[0]
