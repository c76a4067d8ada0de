"""Marker labels as laboratories write them, and the corresponding markers of the 41-marker set."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from poise.motion.markers import Markers
from poise.motion.virtual_markers import OPTICAL_LABELS
from poise.types import Array

_SWAPPED = -0.5  # cosine between the expected left direction and that of the labels

# Names of the same places in Plug-in Gait and its relatives, Helen Hayes (R.ASIS), CODA, Rajagopal (RLMAL) and Cortex
# (R.Knee.Lat), without sides, points and spaces. If a file has two names of one place, the first one is used.
_PLACES = {
    "FWT": ("ASI", "ASIS"),
    "BWT": ("PSI", "PSIS"),
    "SHO": ("SHLD", "SHOULDER", "SHOULD", "ACR", "ACROMION", "ACROMIUM"),
    "ELB": ("ELBW", "ELBOW", "ELBOWLAT", "LEL", "EPILAT"),
    "FRM": ("FRA",),
    "WRA": ("WRISTRAD", "FARADIUS", "WRIST", "WRI"),
    "WRB": ("WRISTULN", "WRISTULNA", "FAULNA"),
    "THI": ("THIGH",),
    "KNE": ("KNEE", "KNEELAT", "LFC"),
    "SHN": ("TIB", "SHANK", "SHA"),
    "ANK": ("ANKL", "ANKLE", "ANKLELAT", "LMAL", "MALL"),
    "HEE": ("HEEL", "CAL", "CALCA"),
    "TOE": ("MET",),
    "MT5": ("5MT", "TOELAT", "FOOTLAT", "FOOTLATERAL"),
    "FHD": ("FHEAD",),
    "BHD": ("BHEAD",),
}
_ALIASES = {"RBAK": "RBAC", "IJ": "CLAV", "PX": "STRN", "XIPH": "STRN"} | {
    f"{side}{other}": f"{side}{name}" for side in "LR" for name, others in _PLACES.items() for other in others
}


def known_marker(label: str) -> str | None:
    """The marker of the 41-marker set that a label stands for; None if it belongs to another set."""
    name = re.sub(r"[\s._-]", "", label.rpartition(":")[2]).upper()
    name = _ALIASES.get(name, name)
    return name if name in OPTICAL_LABELS else None


def known_markers(labels: Iterable[str]) -> dict[str, str]:
    """The labels that stand for a marker of the 41-marker set, with that marker; the first of two with the same."""
    found: dict[str, str] = {}
    for label in labels:
        marker = known_marker(label)
        if marker is not None and marker not in found.values():
            found[label] = marker
    return found


def sides_swapped(markers: Markers) -> bool:
    """Whether left and right labels are swapped, judged by the forward (waist or toes) and up directions."""
    known = known_markers(markers.labels)
    at = {name: markers.points[:, markers.labels.index(label)] for label, name in known.items()}

    def middle(part: str) -> Float[Array, "frames 3"] | None:
        return 0.5 * (at[f"L{part}"] + at[f"R{part}"]) if {f"L{part}", f"R{part}"} <= set(at) else None

    front, back, toes, heels = (middle(part) for part in ("FWT", "BWT", "TOE", "HEE"))
    low = middle("KNE") if middle("KNE") is not None else middle("ANK")
    ahead, behind = (front, back) if back is not None else (toes, heels)
    if front is None or low is None or ahead is None or behind is None:
        return False
    left, leftwards = at["LFWT"] - at["RFWT"], np.cross(front - low, ahead - behind)
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = np.linalg.norm(left, axis=-1) * np.linalg.norm(leftwards, axis=-1)
        cosines = np.sum(left * leftwards, axis=-1) / lengths
    return bool(np.isfinite(cosines).any() and np.nanmedian(cosines) < _SWAPPED)
