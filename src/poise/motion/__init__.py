"""Clips of motion and what can be measured on them."""

from poise.motion.motion import Motion, Origin

__all__ = ["Motion", "Origin"]
