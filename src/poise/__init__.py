"""Poise: a few handles in, a natural whole-body pose or motion out.

The public names below are imported when first used, so that `import poise` is quick and brings in nothing compiled.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poise import performer
    from poise.errors import PoiseError
    from poise.formats import Format, read, register_format, write
    from poise.motion import Motion
    from poise.motion.markers import Markers
    from poise.priors.registry import register_prior
    from poise.skeleton import JointLimits, Pose, Skeleton

    __version__: str

__all__ = [
    "Format",
    "JointLimits",
    "Markers",
    "Motion",
    "PoiseError",
    "Pose",
    "Skeleton",
    "__version__",
    "performer",
    "read",
    "register_format",
    "register_prior",
    "write",
]

_HOME_OF = {
    "Format": "poise.formats",
    "JointLimits": "poise.skeleton",
    "Markers": "poise.motion.markers",
    "Motion": "poise.motion",
    "PoiseError": "poise.errors",
    "Pose": "poise.skeleton",
    "Skeleton": "poise.skeleton",
    "read": "poise.formats",
    "register_format": "poise.formats",
    "register_prior": "poise.priors.registry",
    "write": "poise.formats",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _installed_version()
    if name == "performer":
        return import_module("poise.performer")
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'poise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _installed_version() -> str:
    from importlib.metadata import version

    return version("poise")
