"""`poise character FILE`: how a character is understood, as a table, a picture and a file to correct."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import OptionalPicture

app = App(
    name="character",
    help_epilogue="""\
Roles come from a VRM's own map, from joint names or from the skeleton's shape.
If one is wrong, write them with --roles, correct the file, and leave it next
to the character. Every command reads NAME.roles.toml there.

Examples:
  poise character me.glb
  poise character me.glb -o me.png
  poise character me.glb --roles me.roles.toml
""",
)


@app.default
def character(
    file: Annotated[Path, Parameter(help="The character: .glb, .vrm, .bvh ...")],
    *,
    output: Annotated[OptionalPicture, Parameter(help="Also draw it, with its roles (.png).")] = None,
    roles: Annotated[
        Path | None, Parameter(help="Also write the roles to a file that you can correct (.toml).")
    ] = None,
) -> None:
    """Show the role of each joint of a character."""
    from poise.apps.retargeting import open_character, write_roles
    from poise.motion.carrying import check_person
    from poise.pictures import save
    from poise.pictures.roles import draw_roles

    body = open_character(file)
    skeleton = body.skeleton
    terminal.print_table(("role", "joint"), list(skeleton.roles.items()))
    terminal.note(f"{len(skeleton)} joints, {skeleton.height:.2f} m tall")
    if roles is not None:
        print(f"{write_roles(roles, skeleton)}: {len(skeleton.roles)} roles")
    if output is not None:
        save(draw_roles(body), output)
        print(f"{output}: {terminal.file_size(output)}")
    check_person(body, what="its skeleton")
