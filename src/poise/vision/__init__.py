"""Cameras that watch a performer: calibrate, detect, match, triangulate, label (Chai and Hodgins 2005, section 4.1)."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__, {"rig": "Rig load_rig save_rig", "simulator": "Conditions Simulator front_rig"}
)
