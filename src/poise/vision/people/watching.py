"""People in videos and photos: everyone in the pictures of cameras, tracked, and identified across cameras.

Each is searched at the last position, and recognised by appearance. A person hidden by another is absent for a while;
on return they are recognised by position and by the colours of trunk and thighs. If two tracks end up on one body, it
belongs to the one that looks like it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from poise.errors import InvalidValueError, PoiseError
from poise.skeleton.roles import SIDES
from poise.types import Array
from poise.vision.opencv import cv2
from poise.vision.people.detector import DISTINCT, SURE, PersonFinder, apart
from poise.vision.people.person import INDEX, NAMES, TORSO, VISIBLE, Person, shared
from poise.vision.people.unknown_camera import level_camera
from poise.vision.people.watched import WatchedPerson, ray_gaps
from poise.vision.rig import LensCamera
from poise.vision.sources import Step

if TYPE_CHECKING:
    from PIL import Image

Picture = UInt8[Array, "height width 3"]
Track = dict[int, Person]
"""One person in one camera: sightings by the number of their frame."""

LOOK_AGAIN = 10  # pictures after which everyone is detected again, not only those who are tracked ...
LOOK_SOONER = 3  # ... and after which, if someone is missing
INSIDE = 0.6  # share of a box inside another from which it is part of that body, or hidden by it
BETTER = 1.1  # visibility ratio above which a detected body replaces the tracked one
GONE = 45  # pictures after which a returning person counts as new
FAR = 1.0  # heights of a person: largest distance between two sightings
UNLIKE = 0.6  # colour distance (0 to 1) above which a body is someone else's
LEARNING = 0.05  # update rate of the remembered colours
_LEVELS, _GRID = 4, 12
_QUADS = (
    ("left_shoulder", "right_shoulder", "left_hip", "right_hip"),
    ("left_hip", "left_hip", "left_knee", "left_knee"),
    ("right_hip", "right_hip", "right_knee", "right_knee"),
)
SEEN_ENOUGH = 0.3  # share of the frames in which a person must be seen to count
LARGE_ENOUGH = 0.4  # height relative to the largest person's that is required
MEETING = 0.15  # metres: largest distance between the rays to one trunk
DARK = 0.1  # mean brightness, of 1, below which pictures are too dark
CUT_CHANGE, CUT_LIKENESS = 0.08, 0.6  # mean change of brightness and similarity of pictures at a cut
_SMALL, _PANNED = (32, 24), (6, 3)  # size of the thumbnails, and the largest pan between frames
CLEARLY = 0.6  # height relative to the largest person's from which a choice is required
FEWEST_JOINTS = 6  # smallest number of visible joints
_JOINTS = {
    f"{side}_{role}": (f"{side}_{landmark}",)
    for side in SIDES
    for role, landmark in (
        ("upper_arm", "shoulder"), ("forearm", "elbow"), ("hand", "wrist"),
        ("thigh", "hip"), ("shin", "knee"), ("foot", "ankle"),
    )
} | {"head": ("left_ear", "right_ear")}  # fmt: skip


@dataclass(eq=False)
class PersonTrack:
    """One person: the last sighting, its picture's number, and the remembered colours."""

    number: int
    person: Person
    seen: int
    colours: Float[Array, "bins"]


class PeopleFollower:
    """Takes one picture after the other; returns the people in it, by number."""

    def __init__(self, finder: PersonFinder, *, most: int = 6) -> None:
        self._finder, self._most = finder, most
        self._tracks: list[PersonTrack] = []
        self._count, self._named = -1, 0

    def step(self, picture: Picture) -> dict[int, Person]:
        """The people in the next picture."""
        self._count += 1
        self._tracks = [track for track in self._tracks if self._count - track.seen <= GONE]
        found = self._still_there(picture)
        looking = LOOK_AGAIN if len(found) == len(self._tracks) else LOOK_SOONER
        if not found or self._count % looking == 0:
            self._look_again(picture, found)
        for track in self._tracks:
            if track.number not in found:
                continue
            person = track.person = found[track.number]
            track.seen, middle = self._count, (person.box[:2] + person.box[2:]) / 2
            others = [found[k].box for k in found if k != track.number]
            if all(
                np.any(middle < box[:2]) or np.any(middle > box[2:]) for box in others
            ):  # nobody covers it
                track.colours = (1.0 - LEARNING) * track.colours + LEARNING * colours_of(picture, person)
        return found

    def _still_there(self, picture: Picture) -> dict[int, Person]:
        """Those of the previous picture at their new positions; of two on one body, the one that looks like it."""
        current = [track for track in self._tracks if track.seen == self._count - 1]
        looked = {track.number: self._finder.look(picture, track.person.next) for track in current}
        found = {number: person for number, person in looked.items() if person.score > SURE}

        def unlike(track: PersonTrack) -> float:
            person = found.get(track.number)
            return 1.0 if person is None else distance(track.colours, colours_of(picture, person))

        for track in sorted(current, key=unlike):
            person = found.get(track.number)
            if person is not None:
                found = {
                    k: one for k, one in found.items() if k == track.number or apart(person, one) >= DISTINCT
                }
        return found

    def _look_again(self, picture: Picture, found: dict[int, Person]) -> None:
        """Detect everyone: lost tracks are put back on their body, missing people return, others are new."""
        for person in self._finder.find(picture):
            same = [number for number in found if shared(person.box, found[number].box) > INSIDE]
            if same:  # a body that only one track is on, and that is seen better than by tracking
                if len(same) == 1 and person.visibility.sum() > BETTER * found[same[0]].visibility.sum():
                    found[same[0]] = person
                continue
            colours, number, least = colours_of(picture, person), None, np.inf
            for track in self._tracks:  # the missing person most similar in position and colours
                unlike, far = distance(track.colours, colours), apart(track.person, person)
                if track.number not in found and unlike < UNLIKE and far < FAR and unlike + far < least:
                    number, least = track.number, unlike + far
            if number is None and len(self._tracks) < self._most:
                number, self._named = self._named, self._named + 1
                self._tracks.append(PersonTrack(number, person, self._count, colours))
            if number is not None:
                found[number] = person


class OnePersonFollower:
    """The largest person of a picture, tracked while visible; then again the largest."""

    def __init__(self, finder: PersonFinder) -> None:
        self._finder = finder
        self._last: Person | None = None

    def step(self, picture: Picture) -> Person | None:
        """The person in the next picture."""
        found = None if self._last is None else self._finder.look(picture, self._last.next)
        if found is None or found.score <= SURE:
            people = self._finder.find(picture)
            found = max(people, key=height_of, default=None)
        self._last = found
        return found


def person_in_photo(photo: Image.Image, number: int | None = None) -> Person:
    """The chosen person (from 1, the largest first); a choice is required if several are about as large."""
    pixels = np.asarray(photo.convert("RGB"))
    people = sorted(PersonFinder().find(pixels[:, :, ::-1].copy()), key=lambda one: -height_of(one))
    if not people:
        light = float(pixels.mean()) / 255.0
        why = f"it is too dark (mean brightness {light:.0%})" if light < DARK else "show the whole body"
        raise PoiseError(f"no person is found in the photo: {why}, or give points by hand")
    like = [one for one in people if height_of(one) > CLEARLY * height_of(people[0])]
    columns = (one.pixels[INDEX["nose"], 0] for one in people)
    places = "; ".join(f"{k} is at column {column:.0f}" for k, column in enumerate(columns, 1))
    if number is None and len(like) > 1:
        raise InvalidValueError(
            f"{len(people)} people are in the photo: choose one; {places}", settings=("person",)
        )
    if number is not None and not 1 <= number <= len(people):
        raise InvalidValueError(f"there is no person {number} in the photo; {places}")
    person = people[(number or 1) - 1]
    if (seen := len(points_of(person, photo.size))) < FEWEST_JOINTS:
        raise PoiseError(
            f"too little of the person is seen in the photo: {seen} joints of {len(_JOINTS)}, {FEWEST_JOINTS} needed"
        )
    return person


def points_of(person: Person, size: tuple[int, int]) -> dict[str, Float[Array, "2"]]:
    """The pixels of joints, by role, that are visible and inside the photo."""
    found = {}
    for role, names in _JOINTS.items():
        numbers = [INDEX[name] for name in names]
        pixel = person.pixels[numbers].mean(axis=0)
        if person.visibility[numbers].min() > VISIBLE and np.all((pixel >= 0) & (pixel <= size)):
            found[role] = pixel
    return found


def watched_in_photo(person: Person, size: tuple[int, int], focal: float | None = None) -> WatchedPerson:
    """One moment in front of an unknown camera, or one with a known focal length in pixels."""
    return WatchedPerson(
        [level_camera(size, focal)], person.pixels[None, None], person.visibility[None, None],
        person.shape[None, None], np.array([[person.region.side]]), fps=1.0,
    )  # fmt: skip


def height_of(person: Person) -> float:
    """The height of a person's box, in pixels."""
    return float(person.box[3] - person.box[1])


def colours_of(picture: Picture, person: Person) -> Float[Array, "bins"]:
    """Histogram of coarse colours on trunk and thighs."""
    across = np.linspace(0.15, 0.85, _GRID)
    a, b = (grid.ravel()[:, None] for grid in np.meshgrid(across, across))
    places = []
    for quad in _QUADS:
        p, q, r, s = person.pixels[[INDEX[name] for name in quad]]
        places.append((1 - b) * ((1 - a) * p + a * q) + b * ((1 - a) * r + a * s))
    height, width = picture.shape[:2]
    x, y = np.round(np.concatenate(places)).astype(int).T
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    levels = picture[y[inside], x[inside]].astype(int) * _LEVELS // 256
    bins = levels @ (_LEVELS**2, _LEVELS, 1)
    counts = np.bincount(bins, minlength=_LEVELS**3).astype(np.float64)
    return np.asarray(counts / max(counts.sum(), 1.0))


def distance(first: Float[Array, "bins"], second: Float[Array, "bins"]) -> float:
    """Hellinger distance of two colour histograms: 0 equal, 1 disjoint."""
    return float(np.sqrt(max(0.0, 1.0 - np.sqrt(first * second).sum())))


def longest(takes: Sequence[dict[int, Person]]) -> list[int]:
    """The numbers of the people of a take, those seen in most pictures first."""
    counts: dict[int, int] = {}
    for people in takes:
        for number in people:
            counts[number] = counts.get(number, 0) + 1
    return sorted(counts, key=lambda number: -counts[number])


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
        small = cv.resize(picture, _SMALL, interpolation=cv.INTER_AREA)
        small = cv.cvtColor(small, cv.COLOR_BGR2GRAY) / 255.0
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
    tracks = []
    for view in views:  # those who are seen long and large
        long = [track for track in view.tracks.values() if len(track) >= SEEN_ENOUGH * frames]
        largest = max((_height(track) for track in long), default=0.0)
        kept = [track for track in long if _height(track) >= LARGE_ENOUGH * largest]
        tracks.append(sorted(kept, key=lambda track: -len(track) * _height(track)))
    if not any(tracks):
        brightness = float(np.mean([value for view in views for value in view.brightness] or [0.0]))
        if brightness < DARK:
            raise PoiseError(
                f"the pictures are too dark to find a person (mean brightness {brightness:.0%}): more light"
            )
        raise PoiseError(
            f"no person is found for long enough in {frames} pictures: show the whole body, "
            f"upright in the picture and at least a quarter of its height"
        )
    if len(views) == 1:
        return SeenPeople([[track] for track in tracks[0]], frames, fps)
    if cameras is None:
        raise InvalidValueError("several videos need a camera file", settings=("cameras",))
    first = max(range(len(views)), key=lambda k: len(tracks[k]))
    people: list[list[Track]] = [[{} for _ in views] for _ in tracks[first]]
    for person, track in zip(people, tracks[first], strict=True):
        person[first] = track
    for k in (k for k in range(len(views)) if k != first):
        for track in views[k].tracks.values():  # that of the person whose trunk its rays meet
            gaps = [_gap(person[first], track, cameras[first], cameras[k]) for person in people]
            best = int(np.argmin(gaps))
            if gaps[best] < MEETING:
                people[best][k] = {**track, **people[best][k]}
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


def _height(track: Track) -> float:
    return float(np.median([height_of(person) for person in track.values()]))


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


def _where(people: SeenPeople) -> str:
    """Each person by the middle of their first sighting."""
    places = []
    for number, tracks in enumerate(people.people, start=1):
        track = max(tracks, key=len)
        frame = min(track)
        box = track[frame].box
        places.append(f"{number} is at column {(box[0] + box[2]) / 2:.0f}, row {(box[1] + box[3]) / 2:.0f}")
    return "; ".join(places)
