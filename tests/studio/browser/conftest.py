"""A studio with small models, a browser, and pages of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from made_once import learned
from poise.performer import act
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import save
from poise.priors.motion.network import FILE
from poise.priors.style.prior import StylePrior
from small_motion import lines_saved
from studio_page import PAGE, Server, StudioPage, browser, chromium

Open = Callable[[], StudioPage]


@pytest.fixture(scope="session", autouse=True)
def _what_is_needed() -> None:
    if not PAGE.is_file():
        pytest.skip("the studio's page is not built: make page, which needs Node 20")
    if chromium() is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")


@pytest.fixture(scope="session")
def models(
    priors: dict[str, StylePrior | GaussianPrior], tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    walk = act("walk", seconds=2.0, fps=20)
    more = {"steps": LocalPrior.learn([walk]), "round": learned(DynamicsPrior, [walk])}
    for name, prior in (priors | more).items():
        save(prior, folder / f"{name}.poise")
    return [folder / f"{name}.poise" for name in priors | more]


@pytest.fixture(scope="session")
def server(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    cache = tmp_path_factory.mktemp("cache")
    lines = {"POISE_MOTION_WEIGHTS": str(lines_saved(cache / "lines.safetensors"))}
    server = Server(models, cache=cache, env={} if FILE.exists() else lines)
    yield server
    server.kill()


@pytest.fixture(scope="session")
def chromium_browser() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def open_page(server: Server, chromium_browser: Browser) -> Iterator[Open]:
    """Opens pages, each a person of its own; in the end none has had a problem or asked anything of a stranger."""
    pages: list[StudioPage] = []

    def open_one() -> StudioPage:
        context = chromium_browser.new_context(viewport={"width": 1000, "height": 640}, accept_downloads=True)
        pages.append(StudioPage(context.new_page(), server.address))
        return pages[-1]

    yield open_one
    for page in pages:
        page.page.context.close()
        assert page.problems == []
        assert page.strangers == []


@pytest.fixture
def studio(open_page: Open) -> StudioPage:
    return open_page()
