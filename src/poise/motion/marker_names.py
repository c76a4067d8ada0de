"""Marker labels as laboratories write them, and the marker of the 41-marker set that each means."""

from __future__ import annotations

from collections.abc import Iterable

from poise.motion.virtual_markers import OPTICAL_LABELS

# Plug-in Gait and its relatives name some of the same places otherwise.
_ALIASES = {
    "RBAK": "RBAC",
    **{
        f"{side}{other}": f"{side}{name}"
        for side in "LR"
        for other, name in (
            *(("ASI", "FWT"), ("ASIS", "FWT"), ("PSI", "BWT"), ("PSIS", "BWT")),
            *(("TIB", "SHN"), ("5MT", "MT5"), ("HEEL", "HEE"), ("ANKL", "ANK")),
            *(
                ("FRA", "FRM"),
                ("KNEE", "KNE"),
                ("ELBW", "ELB"),
                ("SHLD", "SHO"),
                ("FHEAD", "FHD"),
                ("BHEAD", "BHD"),
            ),
        )
    },
}


def known_marker(label: str) -> str | None:
    """The marker of the 41-marker set that a label means; None for one of another set."""
    name = label.rpartition(":")[2].strip().upper()
    name = _ALIASES.get(name, name)
    return name if name in OPTICAL_LABELS else None


def known_markers(labels: Iterable[str]) -> dict[str, str]:
    """Label to marker of the 41-marker set, of those that mean one; the first of two that mean the same."""
    found: dict[str, str] = {}
    for label in labels:
        marker = known_marker(label)
        if marker is not None and marker not in found.values():
            found[label] = marker
    return found
