"""The performer's own tests see every motion made again, not the one that `act` remembers for all other tests."""

import pytest

from poise.performer import acting


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "acted", acting.acted.__wrapped__)
