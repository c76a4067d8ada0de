"""A moving body from what was recorded: `poise markers`, `poise video`, and `poise fuse` for several sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import (
    End,
    Height,
    Json,
    MarkerOutput,
    Onto,
    OptionalOutput,
    Output,
    Picture,
    Uncertainty,
    Units,
    Up,
    about,
    command,
    warn_of,
    write_motion,
)

if TYPE_CHECKING:
    from poise.capture.markers import Capture
    from poise.capture.matching import MatchedTake
    from poise.priors.prior import Prior

markers = App(
    name="markers",
    help_epilogue="""\
A take is a C3D or TRC file with labelled markers. The 41-marker set of CMU and
HDM05 and Plug-in Gait's names are known. Unknown labels are matched by
geometry, and the result is printed. A mapping file overrides it:

  [markers]            # a marker of the 41-marker set
  "Head1" = "LFHD"
  [joints]             # or only the joint it is attached to
  "Racket" = "right_hand"

Examples:
  poise markers match take.c3d -o match.png
  poise markers solve take.c3d -o take.bvh
  poise markers solve take.c3d --style walk.poise -o take.glb
  poise markers fill take.c3d -o filled.c3d --report filled.png
  poise markers fill duo.c3d --subject Anna --map layout.toml -o anna.c3d
""",
)

Source = Annotated[Path, about("The take: a C3D or TRC file.")]


@dataclass(frozen=True)
class MarkerOptions:
    """What solving and filling have in common."""

    style: Annotated[
        Path | None, about("A model written by poise learn. Default: a style learned from the take.")
    ] = None
    subject: Annotated[str | None, about("The person, if labels have the prefixes of several people.")] = None
    map: Annotated[
        Path | None,
        about("A mapping file from labels to markers or joints (.toml), or an OpenSim model (.osim)."),
    ] = None
    units: Units = None
    up: Up = None
    report: Annotated[Path | None, about("Also draw gaps, fills and uncertainty (.png).")] = None
    uncertainty: Uncertainty = False
    json: Json = False

    def reading(self) -> dict[str, Any]:
        """How the take is read, where that is said."""
        given = {"units": self.units, "up": self.up}
        return {name: value for name, value in given.items() if value is not None}


@markers.command
def solve(
    take: Source,
    *,
    output: Output,
    onto: Onto = None,
    options: Annotated[MarkerOptions, Parameter(name="*")] = MarkerOptions(),  # noqa: B008 - frozen
) -> None:
    """Fit a body to the markers and write its motion (.bvh, .glb, .gif, ...)."""
    from poise.capture import markers as takes

    capture = _capture(take, options)
    write_motion(capture.motion, output, onto=onto)
    _tell(capture, takes.summary(capture), output, options)


@markers.command
def match(
    take: Source,
    *,
    output: Picture,
    subject: Annotated[
        str | None, about("The person, if labels have the prefixes of several people.")
    ] = None,
    map: Annotated[Path | None, about("A mapping file (.toml), or an OpenSim model (.osim).")] = None,
    units: Units = None,
    up: Up = None,
) -> None:
    """Draw where each marker is on the body, and why, without solving the take."""
    from poise.capture import markers as takes

    found = _matched(take, MarkerOptions(subject=subject, map=map, units=units, up=up))
    with terminal.working("fitting the body"):
        body = takes.save_match(found, output)
    print(
        f"{output}: {len(found.layout)} markers on a body of {body.skeleton.height:.2f} m, "
        f"rms {1000 * body.rms:.1f} mm"
    )


@markers.command
def fill(
    take: Source,
    *,
    output: MarkerOutput,
    unsure: Annotated[bool, about("Fill even gaps that are too uncertain.")] = False,
    options: Annotated[MarkerOptions, Parameter(name="*")] = MarkerOptions(),  # noqa: B008 - frozen
) -> None:
    """Fill the gaps of a take and write it again; what was measured stays as it is.

    Filled points have the residual 0, as C3D has it for points that were not
    measured; in a take whose own residuals are all 0, they have their standard
    deviation instead. What is too uncertain (over 100 mm) stays a gap.
    """
    from poise.capture import markers as takes

    capture = _capture(take, options)
    filled = takes.fill_gaps(capture)
    markers = takes.filled_markers(capture, filled, unsure=unsure)
    takes.write_filled_take(take, markers, output, subject=options.subject, **options.reading())
    _tell(capture, takes.summary(capture, filled), output, options)


def _matched(take: Path, options: MarkerOptions, prior: Prior | None = None) -> MatchedTake:
    from poise.capture import markers as takes
    from poise.capture import matching

    skeleton = prior.space.skeleton if prior is not None else takes.template()
    with terminal.working("reading"):
        given = {"subject": options.subject, "mapping": options.map, **options.reading()}
        found = matching.read_take(take, skeleton, **given)
    warn_of(found.markers)
    for line in found.matched:
        terminal.note(line)
    return found


def _capture(take: Path, options: MarkerOptions) -> Capture:
    from poise.capture import markers as takes
    from poise.priors.model_file import load

    prior = load(options.style) if options.style is not None else None
    found = _matched(take, options, prior)
    with terminal.steps() as step:
        capture = takes.solve(
            found, prior=prior, progress=lambda what, done, total: step(f"{what} ({done}/{total})")
        )
    for note in capture.notes:
        terminal.warn(note)
    takes.check_fit(capture.rms, take.name)
    return capture


def _tell(capture: Capture, facts: dict[str, Any], output: Path, options: MarkerOptions) -> None:
    if options.report is not None:
        from poise.capture.markers import save_report

        with terminal.working(f"drawing {options.report.name}"):
            save_report(capture, options.report)
        terminal.note(f"{options.report}: gaps, fills and uncertainty")
    if options.uncertainty:
        from poise.apps.outputs import save_deviations

        save_deviations(output, capture.motion, capture.deviations)
    if options.json:
        terminal.print_json(facts)
        return
    aside = ("matched", "notes", "flagged_frames")
    terminal.print_facts(str(output), [(name, str(facts[name])) for name in facts if name not in aside])
    if points := facts.get("flagged_points"):
        frames = len(facts["flagged_frames"])
        terminal.warn(f"{points} points in {frames} frames are too uncertain to fill")


@command("""\
One video gives a body of about the right size; the vertical and the floor are
estimated from the person. Several videos of the same moment, with the file of
their cameras (poise cameras calibrate), give metres. People are found by
networks that Poise ships. Your videos stay on your machine.

Examples:
  poise video walk.mp4 -o walk.bvh --film check.mp4
  poise video walk.mp4 -o walk.glb --height 1.82 --fov 40
  poise video walk.mp4 -o walk.glb --onto me.glb
  poise video left.mp4 right.mp4 --cameras cams.toml \\
      -o walk.bvh --picture check.png
  poise video duet.mp4 --person 2 -o second.bvh
""")
def video(
    *videos: Annotated[str, about("A video or a folder of images; several, one per camera.")],
    output: OptionalOutput = None,
    cameras: Annotated[Path | None, about("The file of the cameras, for several videos.")] = None,
    person: Annotated[int | None, about("Which person, from 1, if there are several.")] = None,
    height: Height = None,
    fov: Annotated[float | None, about("Vertical field of view in degrees, if known.")] = None,
    model: Annotated[Path | None, about("A model. Default: the universal prior.")] = None,
    start: Annotated[float, about("Start at this second.")] = 0.0,
    end: End = None,
    sync: Annotated[str, about("How to align videos: time, flash, clap or motion.")] = "time",
    film: Annotated[Path | None, about("Write the video with the skeleton, next to the body (.mp4).")] = None,
    picture: Annotated[Path | None, about("Write some frames of it as a picture (.png).")] = None,
    uncertainty: Uncertainty = False,
    onto: Onto = None,
    json: Json = False,
) -> None:
    """Find a person in videos and write their motion."""
    from poise.apps import video as app
    from poise.apps.outputs import save, save_deviations
    from poise.priors.model_file import load
    from poise.vision.rig import load_rig

    rig = None if cameras is None else load_rig(cameras)
    prior = None if model is None else load(model)
    part = app.VideoPart(start, end, sync)
    with terminal.naming() as report:
        take = app.watch_videos(videos, rig=rig, fov=fov, part=part, progress=report)
        found = app.capture(take, person=person, prior=prior, height=height, progress=report)
    files = [] if output is None else [save(found.motion, output, onto=onto)]
    if output is not None and uncertainty:
        files.append(save_deviations(output, found.motion, found.deviations))
    if film is not None:
        with terminal.naming() as report:
            files.append(app.draw_film(take, found, film, progress=report))
    if picture is not None:
        files.append(app.draw_sheet(take, found, picture))
    facts = app.report(found)
    if json:
        terminal.print_json(facts)
        return
    print(f"{facts['frames']} frames at {facts['fps']:g} a second; a body {facts['height_m']} m tall")
    rows = [(name, f"{value} cm") for name, value in facts["uncertainty_cm"].items()]
    terminal.print_table(("joint", "uncertain by"), rows)
    for file in files:
        print(f"{file}: {terminal.file_size(file)}")


@command("""\
The take is a TOML file with a table per source: positions of joints (C3D, TRC,
CSV), orientations of segments or pixels of joints in a camera (CSV), each with
its noise, and [[constraints]] for keys and contacts. Clocks are corrected, and
a source that the others contradict is left out. docs/uncertainty.md shows a
file.

Examples:
  poise fuse take.toml -o take.bvh
  poise fuse take.toml --json
""")
def fuse(
    take: Annotated[Path, about("The take file, TOML.")],
    *,
    output: OptionalOutput = None,
    onto: Onto = None,
    json: Annotated[bool, about("Print the agreement of the sources as JSON.")] = False,
) -> None:
    """Make one motion from several sources."""
    from dataclasses import asdict, replace

    from poise.apps.fusing import fuse_take
    from poise.apps.outputs import save

    with terminal.working("fusing"):
        fused = fuse_take(take)
    if output is not None:
        save(replace(fused, name=output.stem), output, onto=onto)
    if json:
        terminal.print_json({"sources": [asdict(report) for report in fused.sources]})
        return
    for report in fused.sources:
        print(report)
    if output is not None:
        print(f"{output}: {terminal.file_size(output)}")
