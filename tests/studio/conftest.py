"""Models and sessions that the studio's tests share: two small styles and a gaussian, learned once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from made_once import learned
from poise.performer import act
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.uploads import Uploads


@pytest.fixture(scope="session")
def priors() -> dict[str, StylePrior | GaussianPrior]:
    walk, reach = act("walk", seconds=2.0, fps=20), act("reach", seconds=3.0, fps=10)
    return {
        "reach": learned(StylePrior, [reach], dimensions=2, active=20, velocity=False),
        "walk": learned(StylePrior, [walk], dimensions=2, active=20, velocity=False),
        "both": GaussianPrior.learn([walk, reach], clusters=5),
    }


@pytest.fixture
def models(priors: dict[str, StylePrior | GaussianPrior]) -> ModelStore:
    models = ModelStore()
    for name, prior in priors.items():
        models.add(prior, name)
    return models


@pytest.fixture
def session(models: ModelStore) -> Iterator[Session]:
    uploads, autosave = Uploads(), Autosave()
    session = Session(models, uploads, autosave)
    yield session
    session.close()
    autosave.close()
    uploads.close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "cache"))
