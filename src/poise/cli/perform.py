"""`poise perform [LIBRARY] TAKE`: a whole body from a few markers, sensors, cameras or a webcam, recorded or live."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from poise.cli import terminal
from poise.cli.options import Hue, Onto, OptionalOutput, OptionalPicture, about, command
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poise.capture.cameras import WatchedMoment
    from poise.capture.journal import Journal
    from poise.capture.performance import FollowedFrames, PerformedFrame
    from poise.capture.webcam import LiveBody
    from poise.priors.prior import Prior
    from poise.skeleton.skeleton import Skeleton

_FIRST = "0"  # the default camera
_OTHER_BODY = 0.03  # metres by which the joints of a sender may differ from the body that comes with Poise


@dataclass(frozen=True)
class Watching:
    """Options of performing before cameras."""

    live: Annotated[
        bool, about("Use cameras live and print a line of JSON per pose. Ctrl-C ends the take.")
    ] = False
    to: Annotated[str | None, about("Also send each pose to HOST:PORT over OSC (VMC).")] = None
    empty: Annotated[float, about("Seconds of the empty room at the start.")] = 1.0
    background: Annotated[tuple[str, ...], about("Videos of the empty room instead, one per camera.")] = ()
    sync: Annotated[str, about("How to align videos: time, flash, clap (sound) or motion.")] = "time"
    hue: Hue = ""
    record: Annotated[
        Path | None, about("Keep the session in this folder, so that it can be performed again.")
    ] = None


@dataclass(frozen=True)
class BeforeWebcam:
    """Options of performing before a webcam."""

    webcam: Annotated[
        list[str] | None,
        about(
            "Follow a person in front of a camera: its number (0), its address, or a video.",
            consume_multiple=True,
            negative=(),
        ),
    ] = None
    height: Annotated[float | None, about("With a webcam or trackers: the person's height in metres.")] = None
    fov: Annotated[float | None, about("Its vertical field of view in degrees, if known.")] = None


@dataclass(frozen=True)
class Tracking:
    """Options of performing with oriented trackers."""

    trackers: Annotated[
        str,
        about(
            "Oriented trackers instead of markers, by role (head,left_hand) or as LABEL=ROLE, with commas."
        ),
    ] = ""
    t_pose: Annotated[
        bool, about("The first frame of the trackers is a T-pose, and says how they are worn.")
    ] = False


@command("""\
The library is a folder made by poise library build, or a model. A model made
by poise learn --kind local works best: it also uses velocities and predicts
hidden markers. Without either, the universal prior is used. A take is a C3D or
TRC file, a CSV file with columns time,left_hand.x,left_hand.y,left_hand.z,...,
or - for standard input: one frame per line, JSON ({"left_hand": [x, y, z],
...}) or CSV. Poses are written in the same way.

Labels that name a place (left_hand, forehead, left_waist, LFWT, any role or
joint) need no mapping. Others need a mapping file:

  [markers]
  LWRIST = "left_hand"
  STICK = { joint = "right_hand", offset = [0.0, -0.4, 0.0] }

--sensors uses inertial sensors instead of markers. Each frame has the
orientations of these segments (quaternions w, x, y, z in the world; the pelvis
first), as columns pelvis.w,pelvis.x,pelvis.y,pelvis.z,... or {"pelvis": [w, x,
y, z], ...}. The path of the performer is then estimated by the library, and
drifts.

--trackers follows one to six oriented points instead (head and hands; feet;
pelvis), by what is known of motion. Each has a position and a quaternion, as
columns head.x,head.y,head.z,head.qw,head.qx,head.qy,head.qz,... or {"head":
[x, y, z, w, x, y, z], ...}. Quaternions are (1, 0, 0, 0) in a T-pose that faces
+Z. For trackers worn otherwise, --t-pose or --calibrate says how. --height sets
the size of the body.

vmc:PORT, slimevr:PORT, openxr:PORT, rokoko:PORT, natnet:HOST, qtm:HOST and
lsl:NAME follow other programs live. slimevr: and openxr: are trackers. Without
a library, the body that vmc: sends is written unchanged.

--calibrate takes one T-pose, or two (left side, then right side), or a motion
of more than two seconds. The skeleton is interpolated from those of the
library. With --sensors it is a T-pose facing +Z, and gives the mounting of
each sensor.

With --webcam, a person in front of a camera drives the body, without markers
and without a library. A number or an address selects the camera; a video works
too. The person is measured for a second. Ctrl-C ends the take.

Examples:
  poise perform --webcam -o take.bvh --to 127.0.0.1:39539
  poise perform take.c3d -o take.bvh
  poise perform boxing.poise take.c3d -o take.bvh
  poise perform moves/ take.trc --markers map.toml \\
      --calibrate tpose.trc -o take.glb
  tracker | poise perform moves/ - --markers map.toml > poses.jsonl
  poise perform moves/ --video left.avi --video right.avi \\
      --cameras cams.toml -o take.bvh
  poise perform moves/ --video 0 --video 1 --cameras cams.toml \\
      --live --record session
  poise perform moves/ udp:9000 --markers map.toml -o take.bvh
  poise perform moves/ natnet:192.168.1.10 --markers map.toml -o take.bvh
  poise perform vmc:39539 -o take.bvh --onto me.glb
  poise perform slimevr:9000 -o take.bvh --height 1.8
  poise perform openxr:39541 --t-pose -o take.bvh
  poise perform vmc:39539 --trackers HMD=head,LHR-1=left_hand,LHR-2=right_hand \\
      --t-pose -o take.bvh
  poise perform moves/ imu.csv \\
      --sensors pelvis,head,left_forearm,right_forearm -o imu.bvh
  poise perform placement boxing.poise --markers 6 -o places.png
""")
def perform(
    library: Annotated[Path | None, about("A motion library, or a model, best one of kind local.")] = None,
    take: Annotated[
        str | None,
        about(
            "A take, - for standard input, udp:PORT, vmc:, slimevr:, openxr:, rokoko:, natnet:, qtm: or lsl:."
        ),
    ] = None,
    *,
    output: OptionalOutput = None,
    markers: Annotated[
        Path | None, about("A mapping file from labels to places (.toml), or an OpenSim model (.osim).")
    ] = None,
    calibrate: Annotated[
        tuple[Path, ...],
        about("A take whose first frame is a T-pose (or two: left, right); or a short motion."),
    ] = (),
    sensors: Annotated[
        str, about("Segments with inertial sensors, separated by commas, instead of markers.")
    ] = "",
    noise: Annotated[
        float | None,
        about(
            "Tolerance of markers in metres (default 0.0002 or the method's; 0.03 for a feed without a model), "
            "of sensors in radians (default 0)."
        ),
    ] = None,
    fps: Annotated[float, about("Frames per second, if the take does not say.")] = 60.0,
    video: Annotated[
        tuple[str, ...], about("Instead of a take: a video, image folder or camera number per camera.")
    ] = (),
    cameras: Annotated[Path | None, about("The file of these cameras (poise cameras).")] = None,
    watch: Annotated[Watching, Parameter(name="*")] = Watching(),  # noqa: B008 - frozen
    before: Annotated[BeforeWebcam, Parameter(name="*")] = BeforeWebcam(),  # noqa: B008 - frozen
    track: Annotated[Tracking, Parameter(name="*")] = Tracking(),  # noqa: B008 - frozen
    onto: Onto = None,
) -> None:
    """Drive a whole body with a few markers and a motion library, with trackers or with a webcam."""
    from poise.capture import setup, sources
    from poise.capture.feeds import is_feed, markers_of, of_trackers
    from poise.priors.abilities import made_for_performing

    if before.webcam is not None:
        _follow_webcam(library, before, watch, output, onto)
        return
    alone = str(library) if library is not None and take is None else ""
    if track.trackers or of_trackers(alone):
        if not alone or sensors or markers or video:
            raise InvalidValueError(
                "trackers are followed without a library: poise perform TAKE --trackers ..."
            )
        _track(alone, track, before.height, calibrate, fps, watch.to, output, onto)
        return
    if alone.startswith("vmc:"):  # the only feed with the rotations of a whole body
        _record(alone, fps, output, onto)
        return
    if is_feed(alone) or (alone and not video and sources.is_take(alone)):
        library, take = None, alone
        noise = _OTHER_BODY if noise is None and is_feed(alone) and not sensors else noise
    if take is None and not video:
        raise InvalidValueError(
            "give a take, - for standard input, udp:PORT, or --video for each camera; or --webcam alone"
        )
    with terminal.working(f"opening {library.name if library else 'what is known of people'}"):
        prior = setup.open_prior(library)
    if not made_for_performing(prior):
        name = library.name if library else "what comes with Poise"
        better = "a local one (poise learn NAME --kind local CLIPS) follows better"
        terminal.note(f"{name} is a {prior.kind} model: {better}")
    skeletons = setup.library_skeletons(library)
    if video:
        if cameras is None:
            raise InvalidValueError(
                "videos need the file of their cameras: --cameras cams.toml (poise cameras calibrate)"
            )
        _perform_videos(prior, video, cameras, watch, output, onto, markers, calibrate, skeletons)
        return
    assert take is not None
    live = sources.is_live(take)
    if sensors:
        names, rate = [name.strip() for name in sensors.split(",") if name.strip()], fps
        if not live:
            turned, rate = sources.read_orientations(Path(take), names, fps=fps)
        with terminal.sharing("making local models for these sensors") as progress:
            performance: FollowedFrames = setup.set_up_sensors(
                prior, names, calibration=calibrate, noise=noise or 0.0, fps=rate, progress=progress
            )
    else:
        source = None if live else sources.of_subject(sources.read_markers(Path(take), fps=fps), None)
        with terminal.sharing("making local models for these markers") as progress:
            performance = setup.follower_of(
                None if library is None and not live else prior, source, mapping=markers, calibration=calibrate,
                skeletons=skeletons, noise=noise, fps=fps, markers=markers_of(take), progress=progress,
            )  # fmt: skip
    if live:
        _stream(performance, take, watch.to, output, onto)
        return
    with terminal.counting(take) as report:
        if sensors:
            frames = []
            for number, frame in enumerate(turned, start=1):
                frames.append(performance.step(frame))
                report(number, len(turned))
        else:
            assert source is not None
            frames, rate = performance.run(source, progress=report), source.fps
    if output is None:
        raise InvalidValueError("name the file to write: poise perform TAKE -o out.bvh")
    _finish(frames, [1000.0 * frame.seconds for frame in frames], rate, output, onto, say=print)


@perform.command
def placement(
    library: Annotated[Path, about("A motion library, or a model.")],
    *,
    markers: Annotated[int, about("How many markers there are.")] = 6,
    output: Annotated[OptionalPicture, about("Also draw the body with the places (.png).")] = None,
) -> None:
    """Find the marker places that predict a library's poses best, by trials."""
    from poise.capture import setup
    from poise.capture.placement import best_placement
    from poise.priors.abilities import examples_of

    with terminal.working(f"opening {library.name}"):
        prior = setup.open_prior(library)
    with terminal.counting("trying places") as report:
        best = best_placement(examples_of(prior), markers, progress=report)
    for name, error in best.growth:
        print(f"+ {name}: joints {error:.1f} cm off")
    for names, error in best.finalists:
        print(f"{', '.join(names)}: {error:.2f} cm off when performed")
    print(f"best {markers}: {', '.join(best.markers)} ({best.error_cm:.2f} cm off when performed)")
    if output is not None:
        setup.draw_places(prior, best.markers, output)
        print(f"{output}: {terminal.file_size(output)}")


def _track(
    take: str, options: Tracking, height: float | None, calibrate: Sequence[Path], fps: float, to: str | None,
    output: Path | None, onto: Path | None,
) -> None:  # fmt: skip
    """Follow oriented trackers, recorded or live."""
    from poise.capture import setup, sources
    from poise.capture.trackers import ALL

    performance = setup.set_up_trackers(
        options.trackers or ",".join(ALL),
        height=height,
        calibration=calibrate,
        t_pose=options.t_pose,
        fps=fps,
    )
    if sources.is_live(take):
        _stream(performance, take, to, output, onto)
        return
    if output is None:
        raise InvalidValueError("name the file to write: poise perform TAKE --trackers ... -o out.bvh")
    values, performance.fps = sources.read_orientations(
        Path(take), performance.names, fps=fps, channels=performance.channels
    )
    frames = []
    with terminal.counting(take) as report:
        for number, frame in enumerate(values, start=1):
            frames.append(performance.step(frame))
            report(number, len(values))
    _finish(frames, [1000.0 * frame.seconds for frame in frames], performance.fps, output, onto, say=print)


def _stream(
    performance: FollowedFrames, take: str, to: str | None, output: Path | None, onto: Path | None
) -> None:
    from poise.capture.feeds import fitted, is_feed, open_feed
    from poise.capture.sources import udp_address
    from poise.capture.streams import Stream, serve_udp

    terminal.stay()
    with _journal(output, fps=performance.fps) as journal, _sending(to) as send:

        def keep(frame: PerformedFrame, at: float) -> None:
            journal.add(frame, at)
            send(frame, at)

        stream = Stream(performance, keep=keep, say=terminal.warn)
        try:
            if is_feed(take):
                for frame in fitted(open_feed(take, ready=terminal.note), performance.space.skeleton):
                    print(stream.take(frame), flush=True)
            elif take == "-":
                for answer in stream.answers(sys.stdin):
                    print(answer, flush=True)
            else:
                host, port = udp_address(take)
                serve_udp(
                    stream, port, host=host, ready=lambda at: terminal.note(f"listening on {host}:{at}")
                )
        except KeyboardInterrupt:
            pass
        finally:  # the performance is written, however it ended
            if stream.skipped:
                terminal.warn(f"{stream.skipped} lines could not be read")
            _finish(stream.frames, stream.milliseconds, performance.fps, output, onto)
            journal.close(saved=True)


def _record(take: str, fps: float, output: Path | None, onto: Path | None) -> None:
    """Record a whole body as another program sends it, as a motion; no model is needed."""
    from poise.apps.outputs import save
    from poise.capture.feeds import open_feed
    from poise.capture.feeds.humanoid import BodyRecording

    if output is None:
        raise InvalidValueError(f"name the file to write: poise perform {take} -o take.bvh")
    terminal.stay()
    recording = BodyRecording()
    with _journal(output, fps=fps) as journal:
        try:
            for number, frame in enumerate(open_feed(take, ready=terminal.note)):
                if (pose := recording.add(frame)) is not None:
                    journal.add(pose, number / fps)
        except KeyboardInterrupt:
            pass
        finally:  # the recording is written, however it ended
            if len(recording):
                save(recording.motion(fps, name=output.stem), output, onto=onto)
                print(f"{output}: {len(recording)} frames came, {terminal.file_size(output)}")
                journal.close(saved=True)
    if not len(recording):
        raise InvalidValueError("no frame with a whole body arrived; check the port and the sender")


def _perform_videos(
    prior: Prior, videos: tuple[str, ...], cameras: Path, options: Watching, output: Path | None,
    onto: Path | None, mapping: Path | None, calibrate: Sequence[Path], skeletons: Sequence[Skeleton],
) -> None:  # fmt: skip
    """Open the cameras, run the performance, print notes, and write the motion."""
    from poise.apps.camera_takes import MORE, NINE, open_cameras, perform_take
    from poise.capture import setup
    from poise.capture.cameras import NOISE
    from poise.capture.matching import read_hues
    from poise.vision.colours import Colours
    from poise.vision.rig import load_rig

    colours = Colours.from_text(options.hue)
    if mapping is not None and not options.hue:
        colours = Colours(read_hues(mapping))
    found = open_cameras(load_rig(cameras), videos)
    with terminal.sharing("making local models for these markers") as progress:
        performance = setup.set_up(
            prior, None, mapping=mapping, calibration=calibrate, skeletons=skeletons, noise=NOISE,
            markers=NINE if len(found.rig) > 1 else MORE, progress=progress,
        )  # fmt: skip
    with _journal(output) as journal:
        with terminal.counting("performing") as count, _receiving(options, journal.add) as answer:
            take = perform_take(
                found, performance, empty=options.empty, background=options.background, sync=options.sync,
                live=options.live, colours=colours, record=options.record, progress=count, answer=answer,
            )  # fmt: skip
        for note in take.notes:
            terminal.warn(note)
        _finish(take.frames, [1000.0 * one.seconds for one in take.watched], take.fps, output, onto)
        journal.close(saved=True)


def _follow_webcam(
    model: Path | None, before: BeforeWebcam, options: Watching, output: Path | None, onto: Path | None
) -> None:
    """Follow the person, send and record their poses, and write the motion."""
    from poise.apps.outputs import save
    from poise.capture.setup import open_prior
    from poise.capture.webcam import WebcamPerformance, perform_webcam

    places = before.webcam or [_FIRST]
    if len(places) > 1:
        raise InvalidValueError(f"one webcam is followed; got {', '.join(places)}")
    with _journal(output) as journal:
        with terminal.steps() as step, _receiving(options, journal.add) as answer:
            step("loading")
            prior = None if model is None else open_prior(model)
            performance = WebcamPerformance(prior, fov=before.fov, height=before.height)
            take = perform_webcam(places[0], performance, record=options.record, answer=answer, status=step)
        for note in take.notes:
            terminal.warn(note)
        if take.bodies:
            _say_latency([1000.0 * body.seconds for body in take.bodies])
            terminal.note(f"{len(take.bodies)} bodies, {take.mean_rate:.1f} a second; {take.work}")
        if output is not None:
            save(take.motion(output.stem), output, onto=onto)
            terminal.note(f"{output}: {terminal.file_size(output)}")
        journal.close(saved=output is not None)


def _say_latency(milliseconds: object) -> None:
    """The median and the 95th percentile of the frames' durations."""
    import numpy as np

    middle, most = np.percentile(np.asarray(milliseconds), (50, 95))
    terminal.note(f"latency: {middle:.2f} ms a frame, {most:.2f} ms at most in 95 of 100")


def _finish(
    frames: Sequence[PerformedFrame], milliseconds: Any, fps: float, output: Path | None, onto: Path | None,
    *, say: Callable[[str], None] = terminal.note,
) -> None:  # fmt: skip
    """Report a performance, and write it, on a character if one is given."""
    from poise.apps.outputs import save
    from poise.capture.performance import motion_of, shortfall_of

    if len(milliseconds):
        _say_latency(milliseconds)
        shortfall = shortfall_of(frames)
        if shortfall.unmet:
            terminal.warn(str(shortfall))
    if output is None:
        return
    if not frames:
        raise InvalidValueError(f"no frame came; {output} was not written")
    save(motion_of(frames, fps, name=output.stem), output, onto=onto)
    say(f"{output}: {len(frames)} frames, {terminal.file_size(output)}")


@contextmanager
def _receiving(
    options: Watching, keep: Callable[[PerformedFrame, float], None]
) -> Iterator[Callable[[WatchedMoment | LiveBody], None]]:
    """The receivers of every pose: its journal, standard output if live, and the named address."""
    from poise.capture.streams import pose_line

    with _sending(options.to) as send:

        def answer(watched: WatchedMoment | LiveBody) -> None:
            if watched.frame is None:
                return
            keep(watched.frame, watched.time)
            if options.live:
                print(pose_line(watched.frame, at=watched.time, seconds=watched.seconds), flush=True)
            send(watched.frame, watched.time)

        yield answer


@contextmanager
def _sending(to: str | None) -> Iterator[Callable[[PerformedFrame, float], None]]:
    """Sends poses and their times to an address over VMC, if there is one."""
    from poise.apps.streaming import VmcSender, address_from_text

    address = None if to is None else address_from_text(to)
    sender: VmcSender | None = None

    def send(frame: PerformedFrame, at: float) -> None:
        nonlocal sender
        if address is not None:
            sender = sender or VmcSender(frame.space.skeleton, host=address[0], port=address[1])
            sender.send(frame.pose, at)

    try:
        yield send
    finally:
        if sender is not None:
            sender.close()


@contextmanager
def _journal(output: Path | None, **options: Any) -> Iterator[Journal]:
    """The journal of a performance; if an earlier one for this file was cut off, it is recovered first."""
    from poise.capture.journal import Journal, brought_back

    if output is not None and (found := brought_back(output)) is not None:
        terminal.warn(f"the last performance was cut off; its {found[1]} frames are in {found[0]}")
    with Journal(output, **options) as journal:
        yield journal
