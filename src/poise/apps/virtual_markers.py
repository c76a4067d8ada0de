"""The points of markers on a motion or on that of a file."""

import os
from collections.abc import Mapping

from poise.formats.registry import read_motion
from poise.motion import virtual_markers as markers
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.skeleton.pose_space import Handle


def virtual_markers(
    motion: Motion | str | os.PathLike[str], layout: Mapping[str, Handle] | None = None
) -> Markers:
    """The points of a layout through the frames of a motion or a motion file; by default, of the 41-marker set."""
    return markers.virtual_markers(read_motion(motion), layout)
