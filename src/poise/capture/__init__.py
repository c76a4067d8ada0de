"""Observations of a body as constraints and poses: markers of a recorded take, points in photos."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__,
    {
        "image_files": "Shot",
        "marker_takes": "match read_take",
        "markers": "MarkerStream fill_gaps solve summary template",
        "photos": "pose_from_shots",
    },
)
