"""The machine of a measurement, and the versions of the packages involved."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

MEASURED = ("poise", "numpy", "scipy", "numba")
PEERS = ("pybvh", "pin", "placo", "mink", "mujoco", "pin-pink", "daqp", "gpy", "torch", "gpytorch")


def machine() -> str:
    """The processor, the number of cores, and the Python version."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    """The installed versions of the packages in a measurement."""
    found = {}
    for package in (*MEASURED, *PEERS):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
