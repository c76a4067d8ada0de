"""OpenCV, imported when it is first needed: start-up stays quick, and a missing extra is told in words."""

from __future__ import annotations

from functools import cache
from typing import Any

from poise.errors import MissingExtraError


@cache
def cv2() -> Any:
    """The module, on one thread: several cameras are several calls, not one call on all cores."""
    try:
        import cv2 as module
    except ImportError as error:
        raise MissingExtraError(
            "opencv-python-headless", extra="video", purpose="work with cameras"
        ) from error
    module.setNumThreads(1)
    return module
