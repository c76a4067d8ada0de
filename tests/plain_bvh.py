"""Joint positions of a well-formed BVH file by the letter of the format: what our reader is held to."""

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation


def plain_positions(path: Path) -> dict[str, np.ndarray]:
    """Per joint that has channels, its world positions (frames, 3) in the file's units."""
    hierarchy, motion = path.read_text(encoding="latin-1").split("MOTION")
    values = np.loadtxt(motion.splitlines()[3:], ndmin=2)
    places: dict[str, np.ndarray] = {}
    turns: dict[str, Rotation] = {}
    column = 0
    for name, parent, offset, channels in _joints(hierarchy):
        place = np.tile(offset, (len(values), 1))
        turn = Rotation.identity(len(values))
        for channel in channels:
            if channel.endswith("position"):
                place[:, "XYZ".index(channel[0])] = values[:, column]
            else:
                turn = turn * Rotation.from_euler(channel[0], values[:, [column]], degrees=True)
            column += 1
        places[name] = places[parent] + turns[parent].apply(place) if parent else place
        turns[name] = turns[parent] * turn if parent else turn
    return places


def _joints(hierarchy: str) -> list[tuple[str, str, list[float], list[str]]]:
    """Name, parent, offset and channels of every joint but the end sites."""
    found: list[tuple[str, str, list[float], list[str]]] = []
    opened: list[str] = []
    name, offset = "", [0.0]
    for words in (line.split() for line in hierarchy.splitlines()):
        match words:
            case ["ROOT" | "JOINT", name] | ["End", name]:
                pass
            case ["{"]:
                opened.append(name)
            case ["}"]:
                opened.pop()
            case ["OFFSET", *numbers]:
                offset = [float(number) for number in numbers]
            case ["CHANNELS", _, *channels]:
                found.append((name, opened[-2] if len(opened) > 1 else "", offset, channels))
    return found
