"""The applications, one page of code each."""

from poise.lazy import lazily

__getattr__ = lazily(
    __name__,
    {
        "camera_pictures": "draw_stages",
        "camera_takes": "before_cameras film open_cameras perform_take simulator_of",
        "animate": "constraints_of contacts_in",
        "image": "save_overlay",
        "keyframing": "script_text",
        "keyframing_script": "read_script",
    },
)
