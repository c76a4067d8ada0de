"""OpenCV, imported on first use: start-up stays quick, and a missing extra gives a clear message."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from poise.errors import MissingExtraError


@cache
def cv2() -> Any:
    """The module, limited to one thread: several cameras are several calls, not one call on all cores."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # quiet: our own messages report errors
    try:
        import cv2 as module
    except ImportError as error:
        raise MissingExtraError(
            "opencv-python-headless", extra="video", purpose="work with cameras"
        ) from error
    module.setNumThreads(1)
    module.utils.logging.setLogLevel(module.utils.logging.LOG_LEVEL_SILENT)
    return module
