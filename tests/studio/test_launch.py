"""What a studio starts beside itself, and what it holds."""

import subprocess
import time
from pathlib import Path

import pytest

from poise.errors import InvalidValueError
from poise.studio import launch
from poise.studio.models import ModelStore
from poise.studio.session import Session


def test_a_process_that_has_learned_does_not_stay_defunct(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def short(_command: object, **_options: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["true"]))
        return started[0]

    monkeypatch.setattr(launch, "Popen", short)
    monkeypatch.setattr(launch, "warm_up", lambda: None)
    with launch._rest_prepared():
        end = time.monotonic() + 30.0
        while Path(f"/proc/{started[0].pid}").exists():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_page_holds_so_many_models(
    session: Session, models: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("poise.studio.models.MOST_MODELS", 2)
    models.add(models.first.prior, "of the studio")  # counts for nobody
    for _ in range(2):
        session.models.add(models.first.prior, "mine")
    with pytest.raises(InvalidValueError, match="2 models of its own"):
        session.models.add(models.first.prior, "mine")
