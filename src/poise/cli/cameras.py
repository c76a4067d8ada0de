"""`poise cameras calibrate|check|simulate`: cameras that watch a performer, from a printed board to a dry run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App

from poise.cli import terminal
from poise.cli.options import Hue, Json, about
from poise.errors import PoiseError

cameras = App(
    name="cameras",
    help="Calibrate cameras with a printed board, check them, and simulate a setup.",
    help_epilogue="""\
Print a chessboard, glue it to something flat, and film it with all cameras at
once: near and far, in every corner of the picture, tilted. Then lay it on the
floor and take a picture with the first camera. This sets the floor and the
vertical. docs/cameras.md describes all steps.

Examples:
  poise cameras calibrate left.avi right.avi --board 8x6 --square 0.03 \\
      --floor floor.png -o cams.toml --picture coverage.png
  poise cameras check cams.toml left.avi right.avi --board 8x6 --square 0.03
  poise cameras check cams.toml take-left.avi take-right.avi
  poise cameras simulate box.bvh -o take --cameras 3
""",
)

Videos = Annotated[str, about("A video or a folder of images per camera.")]
BoardSize = Annotated[str, about("Inner corners of the board: columns x rows.", "--board")]
Square = Annotated[float, about("Side of a square in metres.")]
Charuco = Annotated[
    float | None, about("Side of the markers in metres, if it is a ChArUco board (DICT_4X4_250).")
]
Sync = Annotated[
    str, about("How to align videos: time (they started together), flash, clap (sound) or motion.")
]


@cameras.command
def calibrate(
    *videos: Videos,
    board: BoardSize,
    square: Square,
    charuco: Charuco = None,
    floor: Annotated[Path | None, about("The first camera's picture of the board on the floor.")] = None,
    sync: Sync = "time",
    output: Annotated[Path, about("The camera file to write (.toml).", "--output", "-o")],
    picture: Annotated[
        Path | None, about("Also draw where the board was seen, and its errors (.png).")
    ] = None,
    json: Json = False,
) -> None:
    """Calibrate lenses and positions of cameras from videos of a board.

    All cameras must show the same moments. --sync aligns videos that did not start
    together. Images in folders are paired in the order of their names.
    """
    from poise.apps import camera_calibration
    from poise.vision.rig import save_rig

    if not videos:
        raise PoiseError("give a video or a folder of images for each camera")
    printed = camera_calibration.board_from_text(board, square, charuco=charuco)
    with terminal.counting("looking for the board") as count:
        found = camera_calibration.calibrate_from(videos, printed, floor=floor, sync=sync, progress=count)
    save_rig(found.result.rig, output)
    if picture is not None:
        from poise.apps.camera_pictures import draw_coverage

        draw_coverage(found).save(picture)
    if json:
        terminal.print_json(camera_calibration.facts(found))
        return
    terminal.print_table(*camera_calibration.view_rows(found))
    print()
    terminal.print_table(*camera_calibration.camera_rows(found))
    for note in found.notes:
        terminal.note(note)
    for lens in found.result.lenses:
        for hint in lens.hints:
            terminal.warn(f"{lens.camera.name}: {hint}")
    print(f"{output}: {len(found.result.rig)} cameras")


@cameras.command
def check(
    cameras: Annotated[Path, about("A camera file.")],
    *videos: Videos,
    board: Annotated[str, about("Inner corners, if the videos show the board.")] = "",
    square: Annotated[float, about("Side of its squares in metres.")] = 0.03,
    charuco: Charuco = None,
    empty: Annotated[float, about("Seconds without the performer at the start.")] = 1.0,
    sync: Sync = "time",
    hue: Hue = "",
    json: Json = False,
) -> None:
    """Check videos against a camera file: sizes, corners or markers, epipolar lines, scale.

    With --board, the videos show the board again. Without it, they show a person
    with markers. The command fails if the cameras do not fit.
    """
    from poise.apps import camera_calibration
    from poise.vision.colours import Colours
    from poise.vision.rig import load_rig
    from poise.vision.sources import open_source

    rig, sources = load_rig(cameras), [open_source(video) for video in videos]
    with terminal.counting("looking") as count:
        if board:
            printed = camera_calibration.board_from_text(board, square, charuco=charuco)
            checks = camera_calibration.check_with_board(rig, sources, printed, sync=sync, progress=count)
        else:
            checks = camera_calibration.check_with_markers(
                rig, sources, empty=empty, sync=sync, colours=Colours.from_text(hue)
            )
    if json:
        terminal.print_json([vars(entry) for entry in checks])
    else:
        values = [f"{entry.value:.2f} {entry.unit}" if entry.unit else "" for entry in checks]
        rows = [(entry.what, value, entry.wrong or "ok") for entry, value in zip(checks, values, strict=True)]
        terminal.print_table(("checked", "measured", "verdict"), rows)
    if any(entry.wrong for entry in checks):
        raise PoiseError(f"{cameras.name} does not fit these videos")


@cameras.command
def simulate(
    clip: Annotated[Path, about("The motion to film.")],
    *,
    output: Annotated[Path, about("The folder to write into.", "--output", "-o")],
    cameras: Annotated[int, about("The number of cameras, side by side in front of the performer.")] = 2,
    rig: Annotated[Path | None, about("A camera file, instead of cameras side by side.")] = None,
    distance: Annotated[float, about("Metres from the performer.")] = 3.0,
    apart: Annotated[float, about("Metres between neighbouring cameras.")] = 1.2,
    size: Annotated[tuple[int, int], about("Width and height of the pictures.")] = (640, 480),
    fps: Annotated[float, about("Pictures per second.")] = 60.0,
    seconds: Annotated[float | None, about("Film only this many seconds of the clip.")] = None,
    markers: Annotated[str, about("Names, separated by commas. Default: nine markers.")] = "",
    hue: Hue = "",
    lamp: Annotated[bool, about("Add a bright lamp to the view.")] = False,
    perfect: Annotated[bool, about("Without noise, blur, clutter, shadow and drift.")] = False,
    empty: Annotated[float, about("Seconds of the empty room before the performance.")] = 1.0,
    late: Annotated[
        float, about("Seconds by which each camera starts after the one before it; a clap is heard, too.")
    ] = 0.0,
    seed: Annotated[int, about("The random seed of noise and room.")] = 0,
) -> None:
    """Film a motion with simulated cameras, to plan the places of cameras and markers.

    Writes a video per camera, cams.toml, the true positions of all markers
    (truth.trc, truth.c3d) and the motion (truth.bvh).
    """
    from poise.apps import camera_takes
    from poise.formats import read_motion
    from poise.vision.colours import Colours
    from poise.vision.rig import load_rig
    from poise.vision.simulator import Conditions, front_rig

    take = camera_takes.before_cameras(read_motion(clip), fps=fps, seconds=seconds)
    where = load_rig(rig) if rig else front_rig(distance=distance, apart=apart, size=size, count=cameras)
    names = [name.strip() for name in markers.split(",") if name.strip()] or list(camera_takes.NINE)
    conditions = Conditions.perfect() if perfect else Conditions(lamp=lamp)
    conditions = replace(conditions, marker_colours=Colours.from_text(hue).lights(names))
    with terminal.counting("filming") as count:
        simulator = camera_takes.simulator_of(take, where, markers=names, conditions=conditions, seed=seed)
        filmed = camera_takes.film(simulator, output, empty=empty, late=late, progress=count)
    rows = [
        (name, f"{100 * share:.0f} %", f"{100 * filmed.seen_by_none[name]:.0f} %")
        for name, share in filmed.seen_by_two.items()
    ]
    terminal.print_table(("marker", "seen by two", "by none"), rows)
    for path in (*filmed.videos, filmed.cameras, *filmed.truth):
        print(f"{path}: {terminal.file_size(path)}")
