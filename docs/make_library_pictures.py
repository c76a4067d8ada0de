"""Draws the pictures of library.md from real recordings; where there are none, it says so and does nothing.

python docs/make_library_pictures.py
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from poise import pictures, read
from poise.evaluation.search import MARKERS
from poise.library import CoherentSearch, Poses, QueryMetric, find_runs
from poise.motion.edit import mirror, place
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.skeleton.skeleton import Pose

IMAGES = Path(__file__).parent / "images" / "library"
ASKED = (("14_03", 1200), ("16_05", 150), ("124_02", 300))  # boxing, a jump, a pitch
SIZE = (230, 300)
NEIGHBOURS = 5
MIRRORED, SHOWN = "14_03", (600, 830, 1060, 1170, 1290, 1399)


def main() -> None:
    folder = find_recordings()
    if folder is None:
        print("no recordings: the pictures stay as they are")
        return
    IMAGES.mkdir(parents=True, exist_ok=True)
    clips = [
        clip for path in sorted((folder / "cmu").glob("*.bvh")) if isinstance(clip := read(path), Motion)
    ]
    poses = Poses.of_motions(clips)
    handles = poses.space.handles(MARKERS)
    metric = QueryMetric.balanced(poses, handles)
    search = CoherentSearch(find_runs(poses), metric.rows(poses, handles))
    strips = [_strip(poses, metric, search, name, frame) for name, frame in ASKED]
    pictures.save(_stacked(strips), IMAGES / "neighbours.png")
    _mirrored(next(clip for clip in clips if clip.name == MIRRORED))


def _strip(poses: Poses, metric: QueryMetric, search: CoherentSearch, name: str, frame: int) -> Image.Image:
    """A pose by whose markers alone the library is asked, and the nearest frame of each of the nearest clips."""
    own = poses.frames_of(name)
    number = own.start + min(frame, own.stop - own.start - 1)
    handles = poses.space.handles(MARKERS)
    markers = poses.space.points_in_root_frame(poses.maps[number][None], handles)[0]
    query = metric.query(markers, maps=poses.maps.shape[1])
    found = search.nearest(query, 5000, exclude=own)
    panels = {f"{name}, asked for": _facing(poses, number)}
    panels |= {_title(poses, hit): _facing(poses, hit) for hit in _one_per_clip(poses, found.frames)}
    return pictures.draw_panels(panels, columns=len(panels), size=SIZE)


def _one_per_clip(poses: Poses, frames: np.ndarray) -> Iterator[int]:
    seen: set[int] = set()
    for frame in frames.tolist():
        clip = int(poses.clip_of[frame])
        if clip not in seen and len(seen) < NEIGHBOURS:
            seen.add(clip)
            yield frame


def _title(poses: Poses, frame: int) -> str:
    clip = int(poses.clip_of[frame])
    return f"{poses.names[clip]}, {(frame - poses.starts[clip]) / poses.rates[clip]:.1f} s"


def _facing(poses: Poses, frame: int) -> Pose:
    """A frame above the origin, turned to the camera."""
    return place(poses.motion(slice(frame, frame + 1)), heading=np.radians(25))[0]


def _mirrored(clip: Motion) -> None:
    """Poses of a clip and of its mirror image, which the other way round should look like in a mirror."""
    panels = {}
    for name, motion, side in (("recorded", clip, 1.0), ("mirrored", mirror(clip), -1.0)):
        for frame in SHOWN:
            pose = place(motion[frame : frame + 1], heading=np.radians(25 * side))[0]
            panels[f"{name}, {frame / clip.fps:.1f} s"] = pose
    pictures.save(pictures.draw_panels(panels, columns=len(SHOWN), size=SIZE), IMAGES / "mirrored.png")


def _stacked(strips: list[Image.Image]) -> Image.Image:
    whole = Image.new("RGB", (max(s.width for s in strips), sum(s.height for s in strips)), "white")
    top = 0
    for strip in strips:
        whole.paste(strip, (0, top))
        top += strip.height
    return whole


if __name__ == "__main__":
    main()
