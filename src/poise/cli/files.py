"""Motion files: what is in them, converted, drawn, and on a character of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from poise.cli import terminal
from poise.cli.options import (
    AS_FOUND,
    End,
    Film,
    Onto,
    OptionalPicture,
    Output,
    ReadingOptions,
    Start,
    Target,
    about,
    command,
    warn_of,
    write_motion,
)
from poise.errors import InvalidValueError, PoiseError

_SPANS = 8  # of each contact, listed


@command("""\
A motion file seldom names its unit of length. The reader infers it from the
body's size and says what it chose and why; --units overrides. The T-pose that
some conversions put in the first frame is left out and reported.

Examples:
  poise info walk.bvh
  poise info walk.bvh --json
  poise info clips/*.bvh
  poise info strange.bvh --units cm --keep-first
""")
def info(
    *files: Annotated[Path, about("Motion files: BVH, AMC, C3D, TRC or GLB.")],
    json: Annotated[bool, about("Print JSON: an object, or a list for several files.")] = False,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Show what is in motion files."""
    if not files:
        raise InvalidValueError("name at least one motion file; see poise info --help")
    from poise.apps.describe import describe
    from poise.formats import read

    found, failures = list[dict[str, Any]](), list[Path]()
    with terminal.counting("reading") as report:
        for done, file in enumerate(files, start=1):
            try:
                found.append(describe(read(file, **reading.given)))
            except PoiseError as error:  # among several files, a bad one does not hide the rest
                if len(files) == 1:
                    raise
                failures.append(file)
                terminal.warn(str(error))
            report(done, len(files))
    if json:
        terminal.print_json(found[0] if len(files) == 1 else found)
    elif len(files) == 1:
        _show_one(found[0])
    else:
        columns = ("file", "frames", "Hz", "seconds", "joints", "height", "units", "warnings")
        rows = []
        for one in found:
            name, height = Path(one["path"]).name or one["name"], one["height_m"]
            joints = f"{one['joints']}" if one["kind"] == "motion" else f"{one['markers']} markers"
            tall = f"{height:.2f} m" if height is not None else ""
            times = str(one["frames"]), f"{one['fps']:g}", f"{one['seconds']:.2f}"
            rows.append((name, *times, joints, tall, one["units"], str(len(one["warnings"]))))
        terminal.print_table(columns, rows)
    if failures:
        raise PoiseError(
            f"{len(failures)} of {len(files)} files could not be read: {', '.join(map(str, failures))}"
        )


def _show_one(about: dict[str, Any]) -> None:
    t_pose = " (a T-pose in the first frame was left out; --keep-first keeps it)"
    facts = [
        ("frames", f"{about['frames']} at {about['fps']:g} Hz, {about['seconds']:.2f} s"),
        ("units", f"{about['units']} ({about['metres_per_unit']:g} m): {about['units_reason']}"),
    ]
    if about["dropped_first_frame"]:
        facts[0] = ("frames", facts[0][1] + t_pose)
    if about["kind"] == "motion":
        facts += [
            ("joints", f"{about['joints']}, and {about['end_sites']} end sites"),
            ("height", f"{about['height_m']:.2f} m"),
            ("roles", ", ".join(f"{role}={joint}" for role, joint in about["roles"].items()) or "none found"),
            ("still joints", ", ".join(about["still_joints"]) or "none"),
        ]
    else:
        gaps = f"{about['gaps_percent']:g} % of all points, in {len(about['markers_with_gaps'])} markers"
        facts += [("markers", f"{about['markers']}: {', '.join(about['marker_names'])}"), ("gaps", gaps)]
    facts += [("note", note) for note in about["notes"]]
    terminal.print_facts(f"{about['name']} ({about['format']})", facts)
    for warning in about["warnings"]:
        terminal.warn(warning)


@command("""\
The extension selects the format: .bvh .amc .glb for motions, .trc .c3d for
markers. .png .gif .mp4 draw the motion.

Examples:
  poise convert walk.bvh walk.glb
  poise convert walk.amc walk.bvh
  poise convert run.bvh step.bvh --start 0.5 --end 1.3 --fps 60
  poise convert throw.bvh left-handed.bvh --mirror
  poise convert walk.bvh out.glb --onto character.glb
  poise convert characters.glb#run run.bvh
  poise convert characters.glb clip.bvh --all
  poise convert walk.bvh walk.mot --onto Rajagopal2015.osim
""")
def convert(
    source: Annotated[Path, about("The file to read.")],
    target: Target,
    *,
    start: Start = None,
    end: End = None,
    fps: Annotated[float | None, about("Frames per second to resample to.")] = None,
    mirror: Annotated[bool, about("Swap left and right.")] = False,
    reading: ReadingOptions = AS_FOUND,
    to_units: Annotated[
        str | None, about("The unit to write (BVH, USD, TRC, C3D): m, cm, mm, ... Default: the format's own.")
    ] = None,
    onto: Onto = None,
    all: Annotated[bool, about("Write every animation of the file, each as OUT_NAME.")] = False,
) -> None:
    """Convert between file formats; trim, resample, mirror."""
    from poise.formats import each_animation, read
    from poise.formats.registry import files_of, stem_of
    from poise.formats.text import unique_names
    from poise.motion.edit import edited, frames_between

    parts = each_animation(source)
    if not all and len(parts) > 1:
        terminal.warn(
            f"{source.name} has {len(parts)} animations and this is the first: "
            f"--all writes each, {parts[-1].name} only that one"
        )
    chosen = parts if all else [source]
    stems = unique_names(stem_of(part, target.stem) for part in chosen)
    for part, stem in zip(chosen, stems, strict=True):
        output = target.with_name(stem + target.suffix)
        sources = {file.resolve() for file in files_of(part, "read")}
        for file in files_of(output, "write"):
            if file.resolve() in sources:
                raise InvalidValueError(
                    f"{file} is the file to be read; give what is written a name of its own"
                )
        with terminal.working(f"reading {part.name}"):
            original = read(part, **reading.given)
            changed = edited(original, start=start, end=end, fps=fps, mirrored=mirror)
        warn_of(original)
        options: dict[str, Any] = {} if to_units is None else {"units": to_units}
        if original.origin.format == "c3d" and output.suffix.lower() == ".c3d":
            # The file whose analog channels are kept, from its first frame on.
            options["analogs"] = (part, frames_between(original, start or 0.0, None).start)
        print(write_motion(changed, output, onto=onto, **options))


@command("""\
Left is blue, right is orange. A .png is a contact sheet of poses over time,
.gif and .mp4 are animations (.mp4 needs the extra poise[video]). Marker
files are drawn as dots.

Examples:
  poise render walk.bvh -o walk.png
  poise render walk.bvh -o walk.png --poses 12 --layout row
  poise render throw.bvh -o throw.gif --start 0.5 --end 2
  poise render take.c3d -o take.mp4 --size 1280 720 --fps 60
""")
def render(
    file: Annotated[Path, about("The motion to draw: BVH, AMC, GLB, C3D or TRC.")],
    *,
    output: Film,
    start: Start = None,
    end: End = None,
    title: Annotated[str | None, about("A title of your own.")] = None,
    poses: Annotated[int | None, about("How many poses on a contact sheet.")] = None,
    layout: Annotated[str | None, about("Of a contact sheet: travel, row or auto.")] = None,
    width: Annotated[int | None, about("Of a contact sheet, in pixels.")] = None,
    size: Annotated[tuple[int, int] | None, about("Of an animation: width and height in pixels.")] = None,
    fps: Annotated[float | None, about("Of an animation: frames per second.")] = None,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Draw a motion as a contact sheet or an animation."""
    from poise.apps.outputs import draw
    from poise.formats import read
    from poise.motion.edit import edited

    asked = {"title": title, "poses": poses, "layout": layout, "width": width, "size": size, "fps": fps}
    options = {name: value for name, value in asked.items() if value is not None}
    with terminal.working(f"reading {file.name}"):
        original = read(file, **reading.given)
        shown = edited(original, start=start, end=end)
    warn_of(original)
    with terminal.counting(f"drawing {output.name}") as report:
        draw(shown, output, progress=report, **options)
    print(f"{output}: {terminal.file_size(output)}")


@command("""\
A character in T, A or I pose is enough. A .glb or .vrm output is the
character's own file with the motion added: mesh and materials stay unchanged.
`poise character me.glb` shows the role of each joint, and how to correct it.
What touches what, and when, is listed; --contacts says what of it is kept.
Every command that writes a motion also accepts --onto CHARACTER.

Examples:
  poise retarget walk.bvh me.glb -o walking.glb
  poise retarget walk.bvh avatar.vrm -o walking.vrm
  poise retarget dance.glb#samba me.glb -o dance.mp4
""")
def retarget(
    motion: Annotated[Path, about("The motion to retarget.")],
    character: Annotated[Path, about("The character: .glb, .vrm, .bvh ...")],
    *,
    output: Output,
    contacts: Annotated[
        Literal["none", "feet", "all"], about("The contacts to keep: of feet and hands, of feet, or none.")
    ] = "all",
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Retarget a motion to a character."""
    from poise.apps.retargeting import retarget, spans

    source = reading.motion(motion)
    with terminal.counting(f"carrying onto {character.name}") as report:
        found = retarget(source, character, contacts=contacts, progress=report)
    for what, when in spans(source, contacts):
        more = f" and {len(when) - _SPANS} more" if len(when) > _SPANS else ""
        terminal.note(f"{what}: {', '.join(f'{a:.2f}-{b:.2f}' for a, b in when[:_SPANS])} s{more}")
    print(write_motion(found, output))


@command("""\
Roles come from a VRM's own map, from joint names or from the skeleton's shape.
If one is wrong, write them with --roles, correct the file, and leave it next
to the character. Every command reads NAME.roles.toml there.

Examples:
  poise character me.glb
  poise character me.glb -o me.png
  poise character me.glb --roles me.roles.toml
""")
def character(
    file: Annotated[Path, about("The character: .glb, .vrm, .bvh ...")],
    *,
    output: Annotated[OptionalPicture, about("Also draw it, with its roles (.png).")] = None,
    roles: Annotated[
        Path | None, about("Also write the roles to a file that you can correct (.toml).")
    ] = None,
) -> None:
    """Show the role of each joint of a character."""
    from poise.apps.retargeting import open_character, write_roles
    from poise.motion.carrying import check_person
    from poise.pictures import save
    from poise.pictures.posing import draw_roles

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
