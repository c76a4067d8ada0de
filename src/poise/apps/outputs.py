"""Write any object in the format of its file name: a model, a motion file, a picture or an animation."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from poise.errors import InvalidValueError, PoiseError, UnknownNameError
from poise.formats import extensions, read, write
from poise.formats.files import make_folder, replacing
from poise.formats.registry import unknown_extension, writer_takes
from poise.motion.keys import KeyedMotion
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.savable import Savable
from poise.skeleton.skeleton import Pose
from poise.types import Array, Progress

if TYPE_CHECKING:
    from PIL import Image

    from poise.priors.registry import Storable


STILLS = (".png",)
ANIMATIONS = (".gif", ".mp4")


def save(
    value: Savable | Storable | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    onto: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Write a model, a motion, markers, a pose, a solution or a motion file in the format of the extension.

    `onto` is a character that a motion, a pose or a solution is transferred to first (`poise.retarget`); as GLB or VRM
    it is written into the character's own file. For .mot it is an OpenSim model (.osim), scaled to the body. Folders
    are created if needed. Options are those of the format's writer, or of `pictures.save`.
    """
    target, shown = Path(path), _shown(value)
    extension, pictures = target.suffix.lower(), (*STILLS, *ANIMATIONS)
    if onto is not None and writer_takes(target, "onto"):
        options["onto"] = onto
    elif onto is not None:
        from poise.apps.retargeting import retarget  # compiled code, which writing a motion does not need

        shown = Motion.of_poses([shown], name=target.stem) if isinstance(shown, Pose) else shown
        if not isinstance(shown, Motion):
            kind = type(shown).__name__.lower()
            raise InvalidValueError(f"only a motion or a pose can be transferred to a character; got {kind}")
        shown = retarget(shown, onto)
    if isinstance(shown, Pose):
        if extension in STILLS:
            return draw(shown, target, **options)
        shown = Motion.of_poses([shown], name=target.stem)
    if isinstance(shown, Motion) and (credits := getattr(value, "credits", ())):
        named = tuple(dict.fromkeys((*shown.origin.credits, *credits)))
        shown = replace(shown, origin=replace(shown.origin, credits=named))
    if not isinstance(shown, Motion | Markers):
        from poise.priors import model_file, registry  # compiled, like the models

        if not isinstance(value, registry.Storable):
            kind = type(value).__name__
            raise InvalidValueError(
                f"expected a model, a motion, markers, a pose or a solution to save; got {kind}"
            )
        make_folder(check_model_name(target).parent)
        model_file.save(value, target)
        return target
    if extension in pictures:
        return draw(shown, target, progress=progress, **options)
    if isinstance(value, KeyedMotion) and onto is None and writer_takes(target, "keyed"):
        options["keyed"] = value
    if extension not in (motions := extensions(written=True)):
        raise unknown_extension(target, (*motions, *pictures))
    make_folder(target.parent)
    return write(shown, target, **options)


def save_deviations(path: Path, motion: Motion, deviation: Float[Array, "frames joints"]) -> Path:
    """Write, beside a motion's file, the uncertainty of each joint's position per frame: metres per axis, by joint."""
    columns = zip(motion.skeleton.names, deviation.T.round(5).tolist(), strict=True)
    return save_claims(path, {"fps": motion.fps, "deviation_m": dict(columns)})


def save_claims(path: Path, claims: dict[str, Any]) -> Path:
    """Write a file of claims beside an export."""
    beside = make_folder(path.parent) / f"{path.stem}.uncertainty.json"
    with replacing(beside) as file:
        json.dump(claims, file, indent=None if "fps" in claims else 2)
    return beside


def save_picture(image: Image.Image, path: Path) -> Path:
    """Write a picture as PNG, creating its folder if needed."""
    from poise import pictures

    make_folder(path.parent)
    return pictures.save(image, path)


def draw(
    value: Motion | Markers | Pose, path: Path, *, progress: Progress | None = None, **options: Any
) -> Path:
    """Draw a picture (.png) or an animation (.gif, .mp4); options are those of `poise.pictures`."""
    extension = path.suffix.lower()
    if extension not in (*STILLS, *ANIMATIONS):
        raise UnknownNameError("picture format for the extension", extension, (*STILLS, *ANIMATIONS))
    from poise import pictures  # not needed for motion files

    make_folder(path.parent)
    if extension in ANIMATIONS:
        options["progress"] = progress
    return pictures.save(value, path, **options)


def show(value: Savable | str | os.PathLike[str], **options: Any) -> None:
    """Open a picture in the system's viewer: of a pose or a solution, or a contact sheet of a motion or markers.

    A motion file can be shown, too.
    """
    from PIL import ImageShow

    from poise import pictures

    if not ImageShow.show(pictures.picture(_shown(value), **options)):
        raise PoiseError(
            'there is no picture viewer on this machine; write a file instead: save("picture.png")'
        )


def _shown(value: Any) -> Any:
    """The pose or the motion of a solution, the content of a file; anything else unchanged."""
    if isinstance(value, str | os.PathLike):
        return read(value)
    return getattr(value, "pose", getattr(value, "motion", value))


def check_model_name(path: Path) -> Path:
    """Return the path for a model; raise if its extension is that of a motion or a picture."""
    if path.suffix.lower() in (*extensions(written=True), *STILLS, *ANIMATIONS):
        raise InvalidValueError(f"{path.name} is not a name for a model file; call it {path.stem}.poise")
    return path
