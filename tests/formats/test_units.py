"""The unit of a file without one comes from the size of the body, with its reason, and can be given."""

import numpy as np
import pytest

from bodies import WITHOUT_ARMS
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.units import METRES, choose_unit, metres_per_unit
from poise.skeleton import Skeleton

NO_FRAMES = np.zeros((1, 3))


def person(height: float) -> Skeleton:
    """A body of this stature along its bones, lying in its rest pose as a stick along X."""
    names = (*WITHOUT_ARMS, "Head_end")
    parents = np.array([-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9])
    lengths = [0, 0.06, 0.245, 0.246, 0.06, 0.245, 0.246, 0.05, 0.24, 0.06, 0.1]
    offsets = np.zeros((11, 3))
    offsets[:, 0] = np.array(lengths) * height
    return Skeleton(names, parents, offsets, ("ZYX",) * 10 + ("",))


@pytest.mark.parametrize("unit", METRES)
@pytest.mark.parametrize("height", [1.45, 1.6, 1.75, 1.9, 2.1])
def test_grown_people_in_every_usual_unit(unit: str, height: float) -> None:
    skeleton = person(height / METRES[unit])
    chosen = choose_unit(skeleton, NO_FRAMES)
    assert chosen.name == unit
    assert f"{skeleton.height:.4g} units" in chosen.reason
    assert chosen.warnings == ()


@pytest.mark.parametrize("unit", ["m", "cm", "mm"])
@pytest.mark.parametrize("height", [1.0, 1.2, 2.4])
def test_children_and_giants_in_metric_units(unit: str, height: float) -> None:
    assert choose_unit(person(height / METRES[unit]), NO_FRAMES).name == unit


@pytest.mark.parametrize("height", [0.05, 1e5])
def test_a_size_that_is_no_persons_is_reported(height: float) -> None:
    assert "no usual unit" in choose_unit(person(height), NO_FRAMES).warnings[0]


def test_a_body_of_no_length_is_measured_by_the_height_of_its_root() -> None:
    chosen = choose_unit(person(0.0), np.array([[0.0, 92.0, 0.0]]))
    assert (chosen.name, chosen.warnings) == ("cm", ())
    assert "root's height" in chosen.reason


def test_nothing_to_measure_is_metres_and_a_guess() -> None:
    chosen = choose_unit(person(0.0), NO_FRAMES)
    assert (chosen.name, chosen.warnings) == ("m", ("the unit of length is a guess",))


@pytest.mark.parametrize(
    ("given", "name", "metres"),
    [
        ("cm", "cm", 0.01),
        ("Inches", "inch", 0.0254),
        ("CMU", "cmu", 0.0254 / 0.45),
        (0.01, "cm", 0.01),
        (3, "3 m", 3.0),
        ("0.3048", "0.3048 m", 0.3048),
        (" metres ", "m", 1.0),
    ],
)
def test_a_given_unit_is_taken(given: str | float, name: str, metres: float) -> None:
    chosen = choose_unit(person(1.7), NO_FRAMES, units=given)
    assert (chosen.name, chosen.metres, chosen.reason) == (name, pytest.approx(metres), "given")


def test_wrong_units_say_what_is_valid() -> None:
    with pytest.raises(UnknownNameError, match="valid: m, cm, mm, dm, inch, cmu, a number of metres"):
        metres_per_unit("furlong")
    for number in (0.0, -1.0, float("inf"), float("nan"), "nan"):
        with pytest.raises(InvalidValueError, match="positive number of metres"):
            metres_per_unit(number)
