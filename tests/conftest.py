"""Set-up of all tests: types and shapes checked as annotated, Hypothesis profiles, no window ever opened."""

import os
import signal
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: small matrices lose by threads

import jaxtyping
import pytest
from hypothesis import settings
from jaxtyping import config, install_import_hook

import shape_checks

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("POISE_QUIET", "1")  # a slow machine adds no line to what a command says
jaxtyping.jaxtyped = shape_checks.check_some_calls
install_import_hook(shape_checks.checked_modules(), "shape_checks.check")

settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    import made_once  # only now: what it imports is checked too

    made_once.remember_motions()


def pytest_runtest_setup() -> None:
    shape_checks.begin_a_test()


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """For tests that hand over a wrong shape on purpose, to see Poise's own message rather than the checker's."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A real scheduler with two workers in processes of their own."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as running:
        yield running
