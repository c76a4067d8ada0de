"""The folder for downloaded and unpacked files."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder POISE_CACHE if set, else Poise's own in this platform's cache folder."""
    chosen = os.environ.get("POISE_CACHE")
    return Path(chosen).expanduser() if chosen else _platform_cache() / "poise"


def _platform_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
