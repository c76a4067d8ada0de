"""A body in a Jupyter notebook: the studio's stage as a widget (`pip install 'poise[notebook]'`)."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from poise.errors import InvalidValueError, MissingExtraError, PoiseError
from poise.formats import read_motion
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose
from poise.studio.arrays import body_of, world_of
from poise.studio.messages import MotionRange

WIDGET = Path(__file__).parent / "web" / "dist" / "notebook.js"


def view(value: Any, *, height: int = 400) -> Any:
    """An interactive view of a motion, a pose or a solution, for Jupyter: drag to turn, scroll to come closer, play.

    It may be a motion file, too. `height` is in pixels.
    """
    motion = read_motion(value) if isinstance(value, str | os.PathLike) else getattr(value, "pose", value)
    if isinstance(motion, Pose):
        motion = Motion.of_poses([motion])
    if not isinstance(motion, Motion):
        raise InvalidValueError(
            f"expected a motion, a pose or a solution; got {type(motion).__name__}. Use show() or save() instead"
        )
    if not 100 <= height <= 4000:
        raise InvalidValueError(f"the height of a view must be 100 to 4000 pixels; got {height}")
    world = world_of(motion)
    frames = MotionRange(
        seq=0, fine=True, first=0, frames=len(motion), world=world, path_handles=[], paths=b"", unmet=[]
    )
    body, shown = map(msgspec.msgpack.encode, (body_of(motion[0]), frames))
    return _widget()(body=body, range=shown, fps=float(motion.fps), height=height)


@cache
def _widget() -> Any:
    """The widget class: it needs anywidget, which only notebooks have."""
    if not WIDGET.exists():
        raise PoiseError("the page of this Poise is not built; run: make page")
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingExtraError("anywidget", extra="notebook", purpose="a view in a notebook") from None

    class NotebookView(anywidget.AnyWidget):
        _esm = WIDGET
        body = traitlets.Bytes().tag(sync=True)
        range = traitlets.Bytes().tag(sync=True)
        fps = traitlets.Float().tag(sync=True)
        height = traitlets.Int().tag(sync=True)

    return NotebookView
