"""A person in a photo: the points of the joints, and what a body can be solved from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, PoiseError
from poise.skeleton.roles import SIDES
from poise.types import Array
from poise.vision.people.detector import PersonFinder
from poise.vision.people.person import INDEX, VISIBLE, Person
from poise.vision.people.unknown_camera import level_camera
from poise.vision.people.watched import WatchedPerson
from poise.vision.people.watching import DARK

if TYPE_CHECKING:
    from PIL import Image


CLEARLY = 0.6  # height relative to the largest person's from which a choice is required
FEWEST = 6  # smallest number of visible joints
_POINTS = {
    f"{side}_{role}": (f"{side}_{landmark}",)
    for side in SIDES
    for role, landmark in (
        ("upper_arm", "shoulder"), ("forearm", "elbow"), ("hand", "wrist"),
        ("thigh", "hip"), ("shin", "knee"), ("foot", "ankle"),
    )
} | {"head": ("left_ear", "right_ear")}  # fmt: skip


def people_in_photo(photo: Image.Image) -> list[Person]:
    """Everyone in a photo, the largest first; raise with the reason if there is nobody."""
    pixels = np.asarray(photo.convert("RGB"))
    people = PersonFinder().find(pixels[:, :, ::-1].copy())
    if not people:
        brightness = float(pixels.mean()) / 255.0
        why = (
            f"it is too dark (mean brightness {brightness:.0%})"
            if brightness < DARK
            else "show the whole body"
        )
        raise PoiseError(f"no person is found in the photo: {why}, or give points by hand")
    return sorted(people, key=lambda one: -_height(one))


def person_in_photo(photo: Image.Image, number: int | None = None) -> Person:
    """The chosen person (from 1, the largest first); a choice is required if several are about as large."""
    people = people_in_photo(photo)
    like = [one for one in people if _height(one) > CLEARLY * _height(people[0])]
    places = "; ".join(
        f"{k} is at column {one.pixels[INDEX['nose'], 0]:.0f}" for k, one in enumerate(people, 1)
    )
    if number is None and len(like) > 1:
        raise InvalidValueError(
            f"{len(people)} people are in the photo: choose one; {places}", settings=("person",)
        )
    if number is not None and not 1 <= number <= len(people):
        raise InvalidValueError(f"there is no person {number} in the photo; {places}")
    person = people[(number or 1) - 1]
    if (seen := len(points_of(person, photo.size))) < FEWEST:
        raise PoiseError(
            f"too little of the person is seen in the photo: {seen} joints of {len(_POINTS)}, {FEWEST} needed"
        )
    return person


def points_of(person: Person, size: tuple[int, int]) -> dict[str, Float[Array, "2"]]:
    """The pixels of joints, by role, that are visible and inside the photo."""
    found = {}
    for role, names in _POINTS.items():
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


def _height(person: Person) -> float:
    return float(person.box[3] - person.box[1])
