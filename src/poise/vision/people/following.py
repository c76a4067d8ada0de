"""Track people from picture to picture: each is searched at the last position, and recognised by appearance.

A person hidden by another is absent for a while; on return they are recognised by position and by the colours of trunk
and thighs. If two tracks end up on one body, it belongs to the one that looks like it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from poise.types import Array
from poise.vision.people.detector import DISTINCT, SURE, PersonFinder, apart
from poise.vision.people.person import INDEX, Person, shared

Picture = UInt8[Array, "height width 3"]

LOOK_AGAIN = 10  # pictures after which everyone is detected again, not only those who are tracked ...
LOOK_SOONER = 3  # ... and after which, if someone is missing
INSIDE = 0.6  # share of a box inside another from which it is part of that body, or hidden by it
BETTER = 1.1  # visibility ratio above which a detected body replaces the tracked one
GONE = 45  # pictures after which a returning person counts as new
FAR = 1.0  # heights of a person: largest distance between two sightings
UNLIKE = 0.6  # colour distance (0 to 1) above which a body is someone else's
LEARNING = 0.05  # update rate of the remembered colours
_LEVELS, _GRID = 4, 12
_QUADS = tuple(
    tuple(INDEX[name] for name in names)
    for names in (
        ("left_shoulder", "right_shoulder", "left_hip", "right_hip"),
        ("left_hip", "left_hip", "left_knee", "left_knee"),
        ("right_hip", "right_hip", "right_knee", "right_knee"),
    )
)


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
        found = self._followed(picture)
        looking = LOOK_AGAIN if len(found) == len(self._tracks) else LOOK_SOONER
        if not found or self._count % looking == 0:
            self._join(picture, found)
        for track in self._tracks:
            if track.number in found:
                self._remember(track, found, picture)
        return found

    def _followed(self, picture: Picture) -> dict[int, Person]:
        """Those of the previous picture at their new positions; of two on one body, the one that looks like it."""
        current = [track for track in self._tracks if track.seen == self._count - 1]
        looked = {track.number: self._finder.look(picture, track.person.next) for track in current}
        found = {number: person for number, person in looked.items() if person.score > SURE}
        for track in sorted(current, key=lambda one: self._unlike(one, found.get(one.number), picture)):
            person = found.get(track.number)
            others = [found[k] for k in found if k != track.number]
            if person is not None and any(apart(person, other) < DISTINCT for other in others):
                found = {
                    k: one for k, one in found.items() if k == track.number or apart(person, one) >= DISTINCT
                }
        return found

    def _unlike(self, track: PersonTrack, person: Person | None, picture: Picture) -> float:
        return 1.0 if person is None else distance(track.colours, colours_of(picture, person))

    def _join(self, picture: Picture, found: dict[int, Person]) -> None:
        """Detect everyone: lost tracks are put back on their body, missing people return, others are new."""
        for person in self._finder.find(picture):
            same = [number for number in found if shared(person.box, found[number].box) > INSIDE]
            if same:
                self._put_back(person, same, found)
                continue
            colours = colours_of(picture, person)
            number = self._returned(person, colours, found)
            if number is None and len(self._tracks) < self._most:
                number, self._named = self._named, self._named + 1
                self._tracks.append(PersonTrack(number, person, self._count, colours))
            if number is not None:
                found[number] = person

    def _put_back(self, person: Person, same: Sequence[int], found: dict[int, Person]) -> None:
        """Assign a body that only one track is on, and that is seen better than by tracking, to that track."""
        if len(same) == 1 and person.visibility.sum() > BETTER * found[same[0]].visibility.sum():
            found[same[0]] = person

    def _returned(self, person: Person, colours: Array, found: Iterable[int]) -> int | None:
        """Which of the missing people this is: the most similar in position and colours."""
        taken, best, least = set(found), None, np.inf
        for track in self._tracks:
            unlike, far = distance(track.colours, colours), apart(track.person, person)
            if track.number not in taken and unlike < UNLIKE and far < FAR and unlike + far < least:
                best, least = track.number, unlike + far
        return best

    def _remember(self, track: PersonTrack, found: dict[int, Person], picture: Picture) -> None:
        track.person, track.seen = found[track.number], self._count
        alone = all(_clear(track.person, found[k]) for k in found if k != track.number)
        if alone:
            colours = colours_of(picture, track.person)
            track.colours = (1.0 - LEARNING) * track.colours + LEARNING * colours


class OnePersonFollower:
    """The largest person of a picture, tracked while visible; then again the largest."""

    def __init__(self, finder: PersonFinder) -> None:
        self._finder = finder
        self._last: Person | None = None

    def step(self, picture: Picture) -> Person | None:
        """The person in the next picture."""
        found = None if self._last is None else self._finder.look(picture, self._last.next)
        if found is None or found.score <= SURE:
            found = max(
                self._finder.find(picture), key=lambda one: float(one.box[3] - one.box[1]), default=None
            )
        self._last = found
        return found


def colours_of(picture: Picture, person: Person) -> Float[Array, "bins"]:
    """Histogram of coarse colours on trunk and thighs."""
    across = np.linspace(0.15, 0.85, _GRID)
    a, b = (grid.ravel()[:, None] for grid in np.meshgrid(across, across))
    places = []
    for quad in _QUADS:
        p, q, r, s = person.pixels[list(quad)]
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


def _clear(person: Person, other: Person) -> bool:
    """Whether neither box covers the other's middle."""
    middle = (person.box[:2] + person.box[2:]) / 2
    return bool(np.any(middle < other.box[:2]) or np.any(middle > other.box[2:]))


def longest(takes: Sequence[dict[int, Person]]) -> list[int]:
    """The numbers of the people of a take, those seen in most pictures first."""
    counts: dict[int, int] = {}
    for people in takes:
        for number in people:
            counts[number] = counts.get(number, 0) + 1
    return sorted(counts, key=lambda number: -counts[number])
