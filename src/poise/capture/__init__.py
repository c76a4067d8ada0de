"""Whatever observes a performer becomes a body: markers, sensors, cameras and photos, live or recorded."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__,
    {
        "": "cameras",
        "matching": "LOCOMOTION WITH_HEAD marker_layout match read_layout read_take",
        "markers": "fill_gaps save_report solve summary template",
        "performance": "shortfall_of",
        "photos": "Shot pose_from_shots",
        "tracking": "MarkerTracker",
    },
)
