"""The public functions `save`, `show` and `view` as methods: `motion.save("clip.glb")`, `pose.show()`.

They need formats and pictures, which are layers above poses and motions, so they are looked up by the package's
public names when called.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar, cast

Recording = TypeVar("Recording")


class Savable:
    """An object that can be saved to a file, in the format of its extension, and shown. Notebooks show its picture."""

    @property
    def summary(self) -> str:
        """A short description."""
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary})"

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the object in the format of the extension: a picture (.png, .gif, .mp4) or a motion (.bvh, .glb, ...).

        Options are those of `poise.pictures.save`, or of the format's writer.
        """
        import poise

        return poise.save(self, path, **options)

    def show(self, **options: Any) -> None:
        """Open a picture of the object in the system's viewer; options are those of `poise.pictures.save`."""
        import poise

        poise.show(self, **options)

    def view(self, **options: Any) -> Any:
        """An interactive view in a notebook; options are those of `poise.view`."""
        import poise

        return poise.view(self, **options)

    def _repr_png_(self) -> bytes:
        """The picture that Jupyter shows, as PNG bytes."""
        from io import BytesIO

        import poise

        file = BytesIO()
        shown: Any = getattr(self, "pose", getattr(self, "motion", self))
        poise.pictures.picture(shown).save(file, format="PNG")
        return file.getvalue()


class Editable(Savable):
    """A recording that can be edited: the functions of `poise.motion` as methods."""

    def resample(self: Recording, fps: float) -> Recording:
        """The same motion at another frame rate; frames at recorded times are reproduced exactly."""
        import poise

        return cast(Recording, poise.motion.resample(cast(Any, self), fps))

    def mirrored(self: Recording) -> Recording:
        """The motion with left and right exchanged."""
        import poise

        return cast(Recording, poise.motion.mirror(cast(Any, self)))
