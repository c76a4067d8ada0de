"""The procedural performer: whole-body motion from published curves and anthropometric tables, not recordings.

`act("walk")` returns a Motion; `ACTIONS`, `STYLES` and `PERFORMERS` list the valid names.
"""

from poise.performer.acting import ActedMotion, act, acted
from poise.performer.actions import ACTIONS, Action
from poise.performer.bodies import PERFORMERS, Body, Proportions
from poise.performer.styles import STYLES, Style

__all__ = [
    "ACTIONS",
    "PERFORMERS",
    "STYLES",
    "ActedMotion",
    "Action",
    "Body",
    "Proportions",
    "Style",
    "act",
    "acted",
]
