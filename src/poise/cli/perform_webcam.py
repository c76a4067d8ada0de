"""`poise perform --webcam`: whoever stands before a camera drives the body, without markers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from poise.cli import terminal
from poise.cli.perform_video import Watching, receiving, say_latency, say_what_was_cut_off
from poise.errors import InvalidValueError

FIRST = "0"  # the default camera


@dataclass(frozen=True)
class BeforeWebcam:
    """Options of performing before a webcam."""

    webcam: Annotated[
        list[str] | None,
        Parameter(
            help="Follow a person in front of a camera: its number (0), its address, or a video.",
            consume_multiple=True,
            negative=(),
        ),
    ] = None
    height: Annotated[float | None, Parameter(help="With a webcam: the person's height in metres.")] = None
    fov: Annotated[float | None, Parameter(help="Its vertical field of view in degrees, if known.")] = None


def follow_webcam(
    model: Path | None, before: BeforeWebcam, options: Watching, *, output: Path | None, onto: Path | None
) -> None:
    """Follow the person, send and record their poses, and write the motion."""
    from poise.apps.outputs import save
    from poise.apps.webcam import perform_webcam
    from poise.performance.journal import Journal
    from poise.performance.setup import open_prior
    from poise.performance.webcam import WebcamPerformance

    places = before.webcam or [FIRST]
    if len(places) > 1:
        raise InvalidValueError(f"one webcam is followed; got {', '.join(places)}")
    say_what_was_cut_off(output)
    with Journal(output) as journal:
        with terminal.steps() as step, receiving(options, journal.add) as answer:
            step("loading")
            performance = WebcamPerformance(
                None if model is None else open_prior(model), fov=before.fov, height=before.height
            )
            take = perform_webcam(places[0], performance, record=options.record, answer=answer, status=step)
        for note in take.notes:
            terminal.warn(note)
        if take.bodies:
            say_latency([1000.0 * body.seconds for body in take.bodies])
            terminal.note(f"{len(take.bodies)} bodies, {take.mean_rate:.1f} a second; {take.work}")
        if output is not None:
            save(take.motion(output.stem), output, onto=onto)
            terminal.note(f"{output}: {terminal.file_size(output)}")
        journal.close(saved=output is not None)
