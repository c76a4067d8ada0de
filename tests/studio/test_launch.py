"""What a studio starts beside itself, and what it holds."""

import asyncio
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from pkgutil import walk_packages

import pytest

from poise import studio
from poise.apps.warm_up import KERNELS, Pace, pace_of, warm_up
from poise.errors import InvalidValueError
from poise.studio import launch
from poise.studio import messages as said
from poise.studio.connection import CrowdedError, Inbox
from poise.studio.models import ModelStore
from poise.studio.session import Session
from running_studio import PATIENCE, running, wait_until

OTHER_EXTRAS = (
    "matplotlib cv2 ezc3d c3d pxr ufbx faiss joblib distributed pooch anywidget pylsl onnx mcp motionmcp"
)


def test_a_studio_needs_only_the_packages_of_its_own_extra() -> None:
    """Every module of the studio, in a process in which the packages of other extras cannot be imported."""
    modules = [
        each.name for each in walk_packages(studio.__path__, "poise.studio.") if "notebook" not in each.name
    ]
    missing = f"import sys; sys.modules |= dict.fromkeys({OTHER_EXTRAS.split()!r})"
    subprocess.run([sys.executable, "-c", f"{missing}; import {', '.join(modules)}"], check=True)


def test_a_process_that_has_learned_does_not_stay_defunct(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def short(_command: object, **_options: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["true"]))
        return started[0]

    monkeypatch.setattr(launch, "Popen", short)
    monkeypatch.setattr(launch, "warm_up", lambda: None)
    with launch._rest_prepared():
        wait_until(lambda: bool(started) and not Path(f"/proc/{started[0].pid}").exists())


def test_a_page_opens_while_kernels_compile_and_shows_how_far_they_are(models: ModelStore) -> None:
    pace = Pace({"kinematics": 2.0, "solver": 20.0})
    pace.finish("kinematics")
    with running(models, preparing=pace) as studio:
        assert urllib.request.urlopen(studio.address, timeout=PATIENCE).status == 200
        with studio.page() as page:
            page.say(said.Hello(protocol=said.PROTOCOL, token=None))
            step = page.hear_until(said.Progress)
            assert re.fullmatch(r"First start, compiling: solver \(2 of 2\), about \d+ s left", step.words)
            assert 0.0 < step.share < 1.0
            pace.finish("solver")
            while step.share < 1.0:
                step = page.hear_until(said.Progress)
            page.hear_until(said.Welcome)


def test_compiling_that_fails_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, "kinematics", "poise.studio.launch:models_of")  # called without its argument
    pace = pace_of(["kinematics", "solver"])
    with pytest.raises(TypeError):
        warm_up(["kinematics", "solver"], pace)
    assert pace.over


def test_the_time_left_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("poise.apps.warm_up.time.monotonic", lambda: now)
    pace = Pace({"kinematics": 2.0, "solver": 20.0, "people": 3.0})
    assert pace.words == "kinematics (1 of 3), about 25 s left"
    now = 104.0  # twice as slow as expected
    pace.finish("kinematics")
    assert pace.words == "solver (2 of 3), about 46 s left"
    assert pace.share == pytest.approx(4.0 / 50.0)
    now = 166.0  # thrice as slow, as the step that is not over shows
    assert pace.words == "solver (2 of 3), about 9 s left"


def test_a_page_holds_so_many_models(
    session: Session, models: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("poise.studio.models.MOST_MODELS", 2)
    models.add(models.first.prior, "of the studio")  # counts for nobody
    for _ in range(2):
        session.models.add(models.first.prior, "mine")
    with pytest.raises(InvalidValueError, match="2 models of its own"):
        session.models.add(models.first.prior, "mine")


def test_messages_that_wait_take_so_many_bytes() -> None:
    async def crowd() -> None:
        inbox, message = Inbox(), said.SetConstraints(text="")
        for _ in range(8):
            inbox.put(message, 1_000_000)
        with pytest.raises(CrowdedError, match="8 messages are already waiting"):
            inbox.put(message, 1)
        inbox.take()
        inbox.put(message, 1_000_000)

    asyncio.run(crowd())
