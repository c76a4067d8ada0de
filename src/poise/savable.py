"""The public verbs `save`, `show` and `view` as methods of what they take: `motion.save("clip.glb")`, `pose.show()`.

What they do needs formats and pictures, which stand above poses and motions. They are asked for by the package's public
names when they are called, and not imported before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Savable:
    """Whatever can be written to a file that its extension describes, and looked at. A notebook shows its picture."""

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary})"

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Writes it as the extension says: .png, .gif or .mp4 is a picture, .bvh, .glb and others a motion file.

        Options are those of `poise.pictures.save`, or of the format's writer.
        """
        import poise

        return poise.save(self, path, **options)

    def show(self, **options: Any) -> None:
        """Opens a picture of it in the system's viewer; options are those of `poise.pictures.save`."""
        import poise

        poise.show(self, **options)

    def view(self, **options: Any) -> Any:
        """An interactive view in a notebook; options are those of `poise.view`."""
        import poise

        return poise.view(self, **options)

    def _repr_png_(self) -> bytes:
        """What Jupyter shows of it."""
        from io import BytesIO

        import poise

        file = BytesIO()
        shown: Any = getattr(self, "pose", self)
        poise.pictures.picture(shown).save(file, format="PNG")
        return file.getvalue()
