"""People in videos: everyone in the pictures of one camera or several, identified across cameras."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, UInt8

from poise.errors import InvalidValueError, PoiseError
from poise.types import Array
from poise.vision.lens import LensCamera
from poise.vision.opencv import cv2
from poise.vision.people.detector import PersonFinder
from poise.vision.people.following import PeopleFollower
from poise.vision.people.person import NAMES, TORSO, Person
from poise.vision.people.watched import WatchedPerson, ray_gaps
from poise.vision.sources import Step

Picture = UInt8[Array, "height width 3"]
Track = dict[int, Person]
"""One person in one camera: sightings by the number of their frame."""

SEEN_ENOUGH = 0.3  # share of the frames in which a person must be seen to count
LARGE_ENOUGH = 0.4  # height relative to the largest person's that is required
MEETING = 0.15  # metres: largest distance between the rays to one trunk
DARK = 0.1  # mean brightness, of 1, below which pictures are too dark
CUT_CHANGE, CUT_LIKENESS = 0.08, 0.6  # mean change of brightness and similarity of pictures at a cut
_SMALL, _PANNED = (
    (32, 24),
    (6, 3),
)  # size of the thumbnails, and the largest pan between frames


@dataclass(eq=False)
class CameraView:
    """The observations of one camera: people by frame, and the brightness of its pictures."""

    name: str
    follower: PeopleFollower
    tracks: dict[int, Track] = field(default_factory=dict)
    brightness: list[float] = field(default_factory=list)
    _before: Array | None = None

    def see(self, frame: int, at: float, picture: Picture) -> None:
        """Add the next picture; raise at a cut between two scenes."""
        cv = cv2()
        small = (
            cv.cvtColor(cv.resize(picture, _SMALL, interpolation=cv.INTER_AREA), cv.COLOR_BGR2GRAY) / 255.0
        )
        if self._before is not None and is_cut(self._before, small):
            raise PoiseError(
                f"{self.name}: the whole picture changes at {at:.2f} s, as at a cut; "
                f"use a part with one scene",
                settings=("start", "end"),
            )
        self._before = small
        self.brightness.append(float(small.mean()))
        for number, person in self.follower.step(picture).items():
            self.tracks.setdefault(number, {})[frame] = person


@dataclass(frozen=True, eq=False)
class SeenPeople:
    """The people of a take: for each, a track per camera (empty if that camera does not see them)."""

    people: Sequence[Sequence[Track]]
    frames: int
    fps: float

    def watched(self, number: int, cameras: Sequence[LensCamera]) -> WatchedPerson:
        """One of them as landmarks on rays."""
        shape = (self.frames, len(cameras), len(NAMES))
        pixels, visibility = np.full((*shape, 2), np.nan), np.zeros(shape)
        shapes, sides = np.zeros((*shape, 3)), np.ones(shape[:2])
        for k, (camera, track) in enumerate(zip(cameras, self.people[number], strict=True)):
            for frame, person in track.items():
                pixels[frame, k] = camera.straightened(person.pixels)
                visibility[frame, k], shapes[frame, k] = person.visibility, person.shape
                sides[frame, k] = person.region.side
        return WatchedPerson([c.pinhole for c in cameras], pixels, visibility, shapes, sides, self.fps)


def watch_people(
    steps: Iterable[Step],
    names: Sequence[str],
    *,
    threads: int = 1,
    progress: Callable[[int], None] = lambda _done: None,
) -> tuple[list[CameraView], int]:
    """Track everyone through the pictures of all cameras; also return the number of frames."""
    finder = PersonFinder(threads=threads)
    views, count = [CameraView(name, PeopleFollower(finder)) for name in names], 0
    for step in steps:
        for view, picture in zip(views, step.pictures, strict=True):
            if picture is not None:
                view.see(count, step.time, picture)
        count += 1
        progress(count)
    return views, count


def people_of(
    views: Sequence[CameraView], frames: int, fps: float, cameras: Sequence[LensCamera] | None = None
) -> SeenPeople:
    """The people in the take, longest and largest first; several cameras must be known to identify them."""
    tracks = [_important(view, frames) for view in views]
    if not any(tracks):
        raise PoiseError(_nobody(views, frames))
    if len(views) == 1:
        return SeenPeople([[track] for track in tracks[0]], frames, fps)
    if cameras is None:
        raise InvalidValueError("several videos need a camera file", settings=("cameras",))
    first = max(range(len(views)), key=lambda k: len(tracks[k]))
    people: list[list[Track]] = [[{} for _ in views] for _ in tracks[first]]
    for person, track in zip(people, tracks[first], strict=True):
        person[first] = track
    for k in (k for k in range(len(views)) if k != first):
        for track in views[k].tracks.values():
            _join(people, track, k, first, cameras)
    return SeenPeople(people, frames, fps)


def chosen(people: SeenPeople, number: int | None) -> int:
    """The index of the chosen person (from 1); a choice is required if there are several."""
    count = len(people.people)
    if number is None and count > 1:
        raise InvalidValueError(
            f"{count} people are seen: choose one; {_where(people)}", settings=("person",)
        )
    if number is not None and not 1 <= number <= count:
        raise InvalidValueError(f"there is no person {number}: {count} seen; {_where(people)}")
    return (number or 1) - 1


def is_cut(before: Float[Array, "rows columns"], after: Float[Array, "rows columns"]) -> bool:
    """Whether two consecutive thumbnails show two scenes: the middle of the second is nowhere in the first."""
    if float(np.abs(after - before).mean()) < CUT_CHANGE:
        return False
    columns, rows = _PANNED
    middle = np.ascontiguousarray(after[rows:-rows, columns:-columns], dtype=np.float32)
    likeness = cv2().matchTemplate(before.astype(np.float32), middle, cv2().TM_CCOEFF_NORMED)
    return float(likeness.max()) < CUT_LIKENESS


def _important(view: CameraView, frames: int) -> list[Track]:
    """Those who are seen long and large, in the order of both."""
    long = [track for track in view.tracks.values() if len(track) >= SEEN_ENOUGH * frames]
    largest = max((_height(track) for track in long), default=0.0)
    kept = [track for track in long if _height(track) >= LARGE_ENOUGH * largest]
    return sorted(kept, key=lambda track: -len(track) * _height(track))


def _height(track: Track) -> float:
    return float(np.median([person.box[3] - person.box[1] for person in track.values()]))


def _join(
    people: Sequence[list[Track]], track: Track, camera: int, first: int, cameras: Sequence[LensCamera]
) -> None:
    """Assign a track of one camera to the person whose trunk its rays meet."""
    gaps = [_gap(person[first], track, cameras[first], cameras[camera]) for person in people]
    best = int(np.argmin(gaps))
    if gaps[best] < MEETING:
        people[best][camera] = {**track, **people[best][camera]}


def _gap(one: Track, other: Track, first: LensCamera, second: LensCamera) -> float:
    """The median distance between the rays to two people's trunks over common frames, in metres."""
    common = sorted(one.keys() & other.keys())
    if not common:
        return np.inf
    trunks = [
        camera.straightened(np.stack([track[frame].pixels[list(TORSO)] for frame in common]))
        for camera, track in ((first, one), (second, other))
    ]
    return float(np.median(ray_gaps(first.pinhole, trunks[0], second.pinhole, trunks[1])))


def _nobody(views: Sequence[CameraView], frames: int) -> str:
    brightness = float(np.mean([value for view in views for value in view.brightness] or [0.0]))
    if brightness < DARK:
        return f"the pictures are too dark to find a person (mean brightness {brightness:.0%}): more light"
    return (
        f"no person is found for long enough in {frames} pictures: show the whole body, "
        f"upright in the picture and at least a quarter of its height"
    )


def _where(people: SeenPeople) -> str:
    """Each person by the middle of their first sighting."""
    places = []
    for number, tracks in enumerate(people.people, start=1):
        track = max(tracks, key=len)
        frame = min(track)
        box = track[frame].box
        places.append(f"{number} is at column {(box[0] + box[2]) / 2:.0f}, row {(box[1] + box[3]) / 2:.0f}")
    return "; ".join(places)
