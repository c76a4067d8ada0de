"""Performance animation: a few markers, sensors or cameras drive a whole body, live (Chai and Hodgins 2005)."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__,
    {
        "": "cameras",
        "marker_sets": "LOCOMOTION WITH_HEAD marker_layout read_layout",
    },
)
