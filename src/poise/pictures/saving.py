"""Save a picture of any object, in the format of the file's extension."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from poise.errors import UnknownNameError
from poise.formats.files import replacing
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.pictures.animation import ANIMATIONS, animate
from poise.pictures.posing import draw_model, draw_pose
from poise.pictures.sheet import contact_sheet
from poise.priors.prior import Prior
from poise.skeleton.skeleton import Pose

STILLS = (".png",)


Shown = Motion | Markers | Pose | Prior | Image.Image


def save(shown: Shown, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write a picture: .png is a contact sheet (or the single pose, or the given image), .gif and .mp4 an animation.

    Options are those of `contact_sheet`, `draw_pose` or `animate`.
    """
    target = Path(path)
    extension = target.suffix.lower()
    if isinstance(shown, (Motion, Markers)) and extension in ANIMATIONS:
        _check(animate, options)
        return animate(shown, target, **options)
    if extension not in STILLS:
        valid = (*STILLS, *ANIMATIONS) if isinstance(shown, (Motion, Markers)) else STILLS
        raise UnknownNameError("picture format for the extension", extension, valid)
    with replacing(target, "wb") as file:
        picture(shown, **options).save(file, format="PNG", optimize=True)
    return target


def picture(shown: Shown, **options: Any) -> Image.Image:
    """The image that `save` writes as .png: a contact sheet, the single pose, a model's known poses, or the image."""
    if isinstance(shown, Image.Image):
        return shown
    draw: Callable[..., Image.Image] = draw_model
    if isinstance(shown, (Motion, Markers)):
        draw = contact_sheet
    elif isinstance(shown, Pose):
        draw = draw_pose
    _check(draw, options)
    return draw(shown, **options)


def _check(function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise on an option that the function does not have."""
    parameters = inspect.signature(function).parameters.values()
    valid = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in valid:
            raise UnknownNameError(f"option of {function.__name__},", name, valid)
