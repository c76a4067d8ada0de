"""`poise perform LIBRARY --video ... --cameras cams.toml`: the performer is watched by cameras."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poise.apps.camera_takes import CameraTake
    from poise.apps.webcam import LiveBody
    from poise.performance.cameras import WatchedMoment
    from poise.performance.perform import PerformedFrame
    from poise.priors.prior import Prior
    from poise.skeleton.skeleton import Skeleton


@dataclass(frozen=True)
class Watching:
    """Options of performing before cameras."""

    live: Annotated[
        bool, Parameter(help="Use cameras live and print a line of JSON per pose. Ctrl-C ends the take.")
    ] = False
    to: Annotated[str | None, Parameter(help="Also send each pose to HOST:PORT over OSC (VMC).")] = None
    empty: Annotated[float, Parameter(help="Seconds of the empty room at the start.")] = 1.0
    background: Annotated[
        tuple[str, ...], Parameter(help="Videos of the empty room instead, one per camera.")
    ] = ()
    sync: Annotated[str, Parameter(help="How to align videos: time, flash, clap (sound) or motion.")] = "time"
    hue: Annotated[
        str,
        Parameter(help="Colours of markers: red, 0.33 (a hue), or LFIN=red,RFIN=green; others are bright."),
    ] = ""
    record: Annotated[
        Path | None, Parameter(help="Keep the session in this folder, so that it can be performed again.")
    ] = None


def perform_videos(
    prior: Prior,
    videos: tuple[str, ...],
    cameras: Path | None,
    options: Watching,
    *,
    output: Path | None,
    onto: Path | None,
    mapping: Path | None,
    calibrate: Sequence[Path],
    skeletons: Sequence[Skeleton],
) -> None:
    """Open the cameras, run the performance, print notes, and write the motion."""
    from poise.apps.camera_takes import open_cameras, perform_take
    from poise.apps.simulated_cameras import MORE, NINE
    from poise.performance import setup
    from poise.performance.cameras import NOISE
    from poise.performance.journal import Journal
    from poise.performance.marker_sets import read_hues
    from poise.vision.colours import Colours
    from poise.vision.rig import load_rig

    if cameras is None:
        raise InvalidValueError(
            "videos need the file of their cameras: --cameras cams.toml (poise cameras calibrate)"
        )
    colours = Colours.from_text(options.hue)
    if mapping is not None and not options.hue:
        colours = Colours(read_hues(mapping))
    found = open_cameras(load_rig(cameras), videos)
    names = NINE if len(found.rig) > 1 else MORE
    with terminal.sharing("making local models for these markers") as progress:
        performance = setup.set_up(
            prior,
            None,
            mapping=mapping,
            calibration=calibrate,
            skeletons=skeletons,
            noise=NOISE,
            markers=names,
            progress=progress,
        )
    say_what_was_cut_off(output)
    with Journal(output) as journal:
        with terminal.counting("performing") as count, receiving(options, journal.add) as answer:
            take = perform_take(
                found, performance, empty=options.empty, background=options.background, sync=options.sync,
                live=options.live, colours=colours, record=options.record, progress=count, answer=answer,
            )  # fmt: skip
        _finish(take, output, onto)
        journal.close(saved=True)


def _finish(take: CameraTake, output: Path | None, onto: Path | None) -> None:
    """Print the notes on a take, and write it."""
    for note in take.notes:
        terminal.warn(note)
    if take.watched:
        say_latency([1000.0 * watched.seconds for watched in take.watched])
        say_shortfall(take.frames)
    if output is None:
        return
    if not take.frames:
        raise InvalidValueError(f"there is no pose to write; {output} was not written")
    save_performed(take.frames, take.fps, output, onto)
    terminal.note(f"{output}: {len(take.frames)} frames, {terminal.file_size(output)}")


def save_performed(frames: Sequence[PerformedFrame], fps: float, output: Path, onto: Path | None) -> None:
    """Write a performance, on a character if one is given."""
    from poise.apps.outputs import save
    from poise.performance.perform import motion_of

    save(motion_of(frames, fps, name=output.stem), output, onto=onto)


@contextmanager
def receiving(
    options: Watching, keep: Callable[[PerformedFrame, float], None]
) -> Iterator[Callable[[WatchedMoment | LiveBody], None]]:
    """The receivers of every pose: its journal, standard output if live, and the named address."""
    from poise.apps.streaming import VmcSender, address_from_text
    from poise.performance.streams import pose_line

    address = None if options.to is None else address_from_text(options.to)
    sender: VmcSender | None = None

    def answer(watched: WatchedMoment | LiveBody) -> None:
        nonlocal sender
        if watched.frame is None:
            return
        keep(watched.frame, watched.time)
        if options.live:
            print(pose_line(watched.frame, at=watched.time, seconds=watched.seconds), flush=True)
        if address is not None:
            skeleton = watched.frame.space.skeleton
            sender = sender or VmcSender(skeleton, host=address[0], port=address[1])
            sender.send(watched.frame.pose, watched.time)

    try:
        yield answer
    finally:
        if sender is not None:
            sender.close()


def say_what_was_cut_off(output: Path | None) -> None:
    """Recover an interrupted earlier performance for this file, if there is one."""
    from poise.performance.journal import brought_back

    found = None if output is None else brought_back(output)
    if found is not None:
        terminal.warn(f"the last performance was cut off; its {found[1]} frames are in {found[0]}")


def say_shortfall(frames: Sequence[PerformedFrame]) -> None:
    """Print a warning if markers or sensors could not be met."""
    from poise.performance.perform import shortfall_of

    shortfall = shortfall_of(frames)
    if shortfall.unmet:
        terminal.warn(str(shortfall))


def say_latency(milliseconds: object) -> None:
    """The median and the 95th percentile of the frames' durations."""
    import numpy as np

    middle, most = np.percentile(np.asarray(milliseconds), (50, 95))
    terminal.note(f"latency: {middle:.2f} ms a frame, {most:.2f} ms at most in 95 of 100")
