"""The applications, one page of code each."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__,
    {
        "camera_pictures": "draw_stages",
        "camera_takes": "open_cameras perform_take",
        "foot_targets": "constraints_of contacts_in",
        "image": "save_overlay",
        "keyframing_keys": "script_text",
        "keyframing_script": "read_script",
        "marker_files": "save_report",
        "simulated_cameras": "before_cameras film simulator_of",
    },
)
