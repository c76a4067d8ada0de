"""The markers protocol, on a short take of the performer."""

from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, PoiseError, UnknownNameError
from poise.evaluation import markers as protocol
from poise.evaluation.plots import draw_report
from poise.evaluation.report import Report, Request
from poise.formats import write


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> list[protocol.CompleteTake]:
    motion = performer.act("walk", performer="rosa", seconds=4.5, fps=30, seed=1)
    file = tmp_path_factory.mktemp("clips") / "walk.bvh"
    write(motion, file)
    return protocol.takes_of("performer", [file])


def rows_of(takes: list[protocol.CompleteTake], *methods: str) -> list[protocol.Row]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "SHARES", (50,))
        patch.setattr(protocol, "GAPS", (0.08, 1.2))
        return protocol.evaluate_markers(takes, methods=methods)


@pytest.mark.slow
def test_the_body_fills_long_gaps_and_is_no_worse_in_short_ones(takes: list[protocol.CompleteTake]) -> None:
    complete, *others = rows_of(takes, "spline", "pca", "style")
    assert float(complete["rms_mm"]) < 15
    assert float(complete["mpjpe_cm"]) < 3
    found = {(row["method"], row["gap_s"]): row for row in others}
    assert len(found) == 9
    assert float(found["style", 0.0]["mean_mm"]) < 35
    assert float(found["style", 1.2]["of_spline"]) < 0.5
    assert float(found["style", 0.08]["of_spline"]) <= 1.001
    assert all(row["failed"] == 0 for row in others)
    assert {row["of_spline"] for row in others if row["method"] == "spline"} == {1.0}


@pytest.mark.slow
def test_the_curves_are_drawn(takes: list[protocol.CompleteTake], tmp_path: Path) -> None:
    rows = rows_of(takes, "spline", "pca")
    assert all(row["failed"] == 0 for row in rows[1:])
    files = draw_report(Request("markers"), Report("markers", "performer", rows), tmp_path)
    assert [file.name for file in files] == ["markers.png"]
    assert files[0].stat().st_size > 10_000


def test_what_is_hidden_is_what_was_asked_for() -> None:
    rng = np.random.default_rng(0)
    rest = protocol.hidden_to_the_end(90, 41, share=0.5, first=30, rng=rng)
    assert not rest[:30].any()
    assert (rest[30:].sum(axis=1) == 20).all()
    gaps = protocol.hidden_in_gaps(900, 41, gap=10, first=300, last=12, rng=rng)
    assert not gaps[:300].any()
    assert not gaps[-12:].any()
    assert gaps[300:-12].mean() == pytest.approx(0.5, abs=0.02)


def test_mistakes_are_told() -> None:
    with pytest.raises(InvalidValueError, match="test on alone"):
        Request("markers", train=(Path("a.c3d"),), test=(Path("b.c3d"),))
    with pytest.raises(UnknownNameError, match="method 'splines'"):
        protocol.evaluate_markers([], methods=("splines",))
    with pytest.raises(InvalidValueError, match="stride"):
        protocol.evaluate_markers([], stride=0)


def test_the_optical_split_needs_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "find_recordings", lambda: None)
    with pytest.raises(PoiseError, match="POISE_MOCAP"):
        protocol.takes_of("optical", [])
