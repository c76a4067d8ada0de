"""`poise perform [LIBRARY] TAKE`: a whole body from a few markers, from a file, a pipe or the network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput, OptionalPicture
from poise.cli.perform_video import (
    Watching,
    perform_videos,
    save_performed,
    say_latency,
    say_shortfall,
    say_what_was_cut_off,
)
from poise.cli.perform_webcam import BeforeWebcam, follow_webcam
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poise.performance.perform import Performance, PerformedFrame
    from poise.performance.sensors import OrientationPerformance
    from poise.performance.streams import Stream
    from poise.priors.prior import Prior

_OTHER_BODY = 0.03  # metres by which the joints of a sender may differ from the body that comes with Poise

app = App(
    name="perform",
    help_epilogue="""\
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

vmc:PORT, rokoko:PORT, natnet:HOST, qtm:HOST and lsl:NAME follow other programs
live. Without a library, the body that vmc: sends is written unchanged.

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
  poise perform moves/ imu.csv \\
      --sensors pelvis,head,left_forearm,right_forearm -o imu.bvh
  poise perform placement boxing.poise --markers 6 -o places.png
""",
)


@app.default
def perform(
    library: Annotated[
        Path | None, Parameter(help="A motion library, or a model, best one of kind local.")
    ] = None,
    take: Annotated[
        str | None,
        Parameter(help="A take, - for standard input, udp:PORT, vmc:, rokoko:, natnet:, qtm: or lsl:."),
    ] = None,
    *,
    output: OptionalOutput = None,
    markers: Annotated[Path | None, Parameter(help="A mapping file from labels to places.")] = None,
    calibrate: Annotated[
        tuple[Path, ...],
        Parameter(help="A take whose first frame is a T-pose (or two: left, right); or a short motion."),
    ] = (),
    sensors: Annotated[
        str, Parameter(help="Segments with inertial sensors, separated by commas, instead of markers.")
    ] = "",
    noise: Annotated[
        float | None,
        Parameter(
            help="Tolerance of markers in metres (default 0.0002 or the method's; 0.03 for a feed without a model), "
            "of sensors in radians (default 0)."
        ),
    ] = None,
    fps: Annotated[float, Parameter(help="Frames per second, if the take does not say.")] = 60.0,
    video: Annotated[
        tuple[str, ...],
        Parameter(help="Instead of a take: a video, image folder or camera number per camera."),
    ] = (),
    cameras: Annotated[Path | None, Parameter(help="The file of these cameras (poise cameras).")] = None,
    watch: Annotated[Watching, Parameter(name="*")] = Watching(),  # noqa: B008 - frozen
    before: Annotated[BeforeWebcam, Parameter(name="*")] = BeforeWebcam(),  # noqa: B008 - frozen
    onto: Onto = None,
) -> None:
    """Drive a whole body with a few markers and a motion library, or with a webcam."""
    from poise.performance import setup
    from poise.performance.feeds import is_feed, markers_of

    if before.webcam is not None:
        follow_webcam(library, before, watch, output=output, onto=onto)
        return
    alone = str(library) if library is not None and take is None else ""
    if alone.startswith("vmc:"):  # the only feed with the rotations of a whole body
        _record(alone, fps, output, onto)
        return
    if is_feed(alone) or (alone and not video and setup.is_take(alone)):
        library, take = None, alone
        noise = _OTHER_BODY if noise is None and is_feed(alone) and not sensors else noise
    if take is None and not video:
        raise InvalidValueError(
            "give a take, - for standard input, udp:PORT, or --video for each camera; or --webcam alone"
        )
    with terminal.working(f"opening {library.name if library else 'what is known of people'}"):
        prior = setup.open_prior(library)
    _suggest_local(prior, library.name if library else "what comes with Poise")
    if video:
        perform_videos(
            prior, video, cameras, watch, output=output, onto=onto, mapping=markers, calibrate=calibrate,
            skeletons=setup.library_skeletons(library),
        )  # fmt: skip
        return
    assert take is not None
    if sensors:
        names = [name.strip() for name in sensors.split(",") if name.strip()]
        _by_sensors(prior, take, names, calibrate, noise=noise or 0.0, fps=fps, output=output, onto=onto)
        return
    source = setup.read_take(take, fps=fps)
    with terminal.sharing("making local models for these markers") as progress:
        performance = setup.set_up(
            prior,
            source,
            mapping=markers,
            calibration=calibrate,
            skeletons=setup.library_skeletons(library),
            noise=noise,
            fps=fps,
            markers=markers_of(take),
            progress=progress,
        )
    if source is None:
        _stream(performance, take, output, onto)
        return
    with terminal.counting(take) as report:
        frames = performance.run(source, progress=report)
    _save(frames, source.fps, output, onto)


@app.command
def placement(
    library: Annotated[Path, Parameter(help="A motion library, or a model.")],
    *,
    markers: Annotated[int, Parameter(help="How many markers there are.")] = 6,
    output: Annotated[OptionalPicture, Parameter(help="Also draw the body with the places (.png).")] = None,
) -> None:
    """Find the marker places that predict a library's poses best, by trials."""
    from poise.performance import setup
    from poise.performance.placement import best_placement
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


def _suggest_local(prior: Prior, name: str) -> None:
    from poise.priors.abilities import made_for_performing

    if not made_for_performing(prior):
        terminal.note(
            f"{name} is a {prior.kind} model: a local one (poise learn NAME --kind local CLIPS) follows better"
        )


def _by_sensors(
    prior: Prior,
    take: str,
    names: Sequence[str],
    calibrate: Sequence[Path],
    *,
    noise: float,
    fps: float,
    output: Path | None,
    onto: Path | None,
) -> None:
    from poise.performance import setup

    live = setup.is_live(take)
    turned, rate = (None, fps) if live else setup.read_orientations(Path(take), names, fps=fps)
    with terminal.sharing("making local models for these sensors") as progress:
        performance = setup.set_up_sensors(
            prior, names, calibration=calibrate, noise=noise, fps=rate, progress=progress
        )
    if turned is None:
        _stream(performance, take, output, onto)
        return
    with terminal.counting(take) as report:
        frames = []
        for number, frame in enumerate(turned):
            frames.append(performance.step(frame))
            report(number + 1, len(turned))
    _save(frames, rate, output, onto)


def _save(frames: Sequence[PerformedFrame], fps: float, output: Path | None, onto: Path | None) -> None:
    from poise.performance import setup

    say_latency(1000.0 * setup.seconds_of(frames))
    say_shortfall(frames)
    if output is None:
        raise InvalidValueError("name the file to write: poise perform TAKE -o out.bvh")
    save_performed(frames, fps, output, onto)
    print(f"{output}: {len(frames)} frames, {terminal.file_size(output)}")


def _stream(
    performance: Performance | OrientationPerformance, take: str, output: Path | None, onto: Path | None
) -> None:
    from poise.performance.journal import Journal
    from poise.performance.streams import Stream

    say_what_was_cut_off(output)
    with Journal(output, fps=performance.fps) as journal:
        stream = Stream(performance, keep=journal.add)
        try:
            _follow(stream, take)
        except KeyboardInterrupt:
            pass
        finally:  # the performance is written, however it ended
            _finish(stream, performance, output, onto)
            journal.close(saved=True)


def _record(take: str, fps: float, output: Path | None, onto: Path | None) -> None:
    """Record a whole body as another program sends it, as a motion; no model is needed."""
    from poise.apps.outputs import save
    from poise.performance.feeds import open_feed
    from poise.performance.feeds.recording import BodyRecording
    from poise.performance.journal import Journal

    if output is None:
        raise InvalidValueError(f"name the file to write: poise perform {take} -o take.bvh")
    say_what_was_cut_off(output)
    recording = BodyRecording()
    with Journal(output, fps=fps) as journal:
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


def _follow(stream: Stream, take: str) -> None:
    from poise.performance import setup
    from poise.performance.feeds import fitted, is_feed, open_feed
    from poise.performance.streams import serve_udp

    if is_feed(take):
        for frame in fitted(open_feed(take, ready=terminal.note), stream.performance.space.skeleton):
            print(stream.take(frame), flush=True)
        return
    if take == "-":
        for answer in stream.answers(sys.stdin):
            print(answer, flush=True)
        return
    host, port = setup.udp_address(take)
    serve_udp(stream, port, host=host, ready=lambda bound: terminal.note(f"listening on {host}:{bound}"))


def _finish(
    stream: Stream, performance: Performance | OrientationPerformance, output: Path | None, onto: Path | None
) -> None:
    if stream.skipped:
        terminal.warn(f"{stream.skipped} lines could not be read")
    if not stream.frames:
        if output is not None:
            raise InvalidValueError(f"no frame came; {output} was not written")
        return
    say_latency(stream.milliseconds)
    say_shortfall(stream.frames)
    if output is not None:
        save_performed(stream.frames, performance.fps, output, onto)
        terminal.note(f"{output}: {len(stream.frames)} frames")
