"""What a studio starts beside itself, and what it holds."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from poise.errors import InvalidValueError
from poise.studio import launch
from poise.studio import messages as said
from poise.studio.inbox import CrowdedError, Inbox
from poise.studio.models import ModelStore
from poise.studio.session import Session
from running_studio import wait_until


def test_a_process_that_has_learned_does_not_stay_defunct(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def short(_command: object, **_options: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["true"]))
        return started[0]

    monkeypatch.setattr(launch, "Popen", short)
    monkeypatch.setattr(launch, "warm_up", lambda: None)
    with launch._rest_prepared():
        wait_until(lambda: not Path(f"/proc/{started[0].pid}").exists())


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
        with pytest.raises(CrowdedError, match="8 messages wait"):
            inbox.put(message, 1)
        await inbox.take()
        inbox.put(message, 1_000_000)

    asyncio.run(crowd())
