"""Plain mathematics: rotations, cameras, splines."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__,
    {
        "": "alignment cameras rotations splines",
    },
)
