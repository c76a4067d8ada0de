"""Pictures of poses and motions: contact sheets, animations and single poses, drawn with a mannequin."""

from typing import TYPE_CHECKING

from poise.lazy import lazily

if TYPE_CHECKING:
    from poise.pictures.animation import animate
    from poise.pictures.posing import draw_panels, draw_pose
    from poise.pictures.saving import picture, save
    from poise.pictures.sheet import contact_sheet

__all__ = ["animate", "contact_sheet", "draw_panels", "draw_pose", "picture", "save"]

__getattr__ = lazily(
    __name__,
    {
        "animation": "animate",
        "latent_paths": "draw_latent_paths",
        "overlay": "draw_overlay render_photo",
        "posing": "draw_panels draw_pose",
        "saving": "picture save",
        "sheet": "contact_sheet",
    },
)
