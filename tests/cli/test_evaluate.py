"""`poise evaluate`: its JSON, its table, its plots, and its mistakes in one line."""

import json
from pathlib import Path

import pytest
from PIL import Image

from cli.conftest import Program
from poise.evaluation.splits import ABOUT_SPLITS, SPLITS

METRICS = {
    "method", "deg_per_joint", "mse_rad2", "mpjpe_cm", "rms_cm", "handle_mm", "handle_max_mm", "reached_10mm",
    "reached_1mm", "jitter", "ms_per_frame", "ms_p95", "failed",
}  # fmt: skip


def walks(poise, folder: Path) -> list[Path]:  # type: ignore[no-untyped-def]
    paths = [folder / f"walk{seed}.bvh" for seed in range(2)]
    for seed, path in enumerate(paths):
        assert poise("act", "walk", "--seconds", 1, "--fps", 30, "--seed", seed, "-o", path).code == 0
    return paths


def test_every_split_is_explained(poise: Program) -> None:
    assert ABOUT_SPLITS.keys() == SPLITS.keys()
    shown = poise("evaluate", "--help").out
    assert all(f"{name} " in shown and about in shown for name, about in ABOUT_SPLITS.items())


def test_own_clips_give_a_table_a_report_and_plots(poise, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    train, test = walks(poise, tmp_path)
    report, plots = tmp_path / "new" / "report.json", tmp_path / "plots"
    ran = poise(
        "evaluate", "handles", "--train", train, "--test", test, "--methods", "dls,gaussian-10", "--stride", 6,
        "--json", report, "--plots", plots,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "gaussian-10" in ran.out
    content = json.loads(report.read_text(encoding="utf-8"))
    assert list(content) == ["protocol", "split", "machine", "versions", "rows"]
    assert (content["protocol"], content["split"]) == ("handles", "files")
    assert "numpy" in content["versions"]
    assert [row["method"] for row in content["rows"]] == ["dls", "gaussian-10"]
    assert all(set(row) >= METRICS for row in content["rows"])
    for name in ("accuracy", "figure6", "table1", "poses"):
        with Image.open(plots / f"{name}.png") as picture:
            assert min(picture.size) > 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["handels"], "handles"),
        (["handles", "--split", "wakl"], "walk"),
        (["handles", "--methods", "dsl"], "dls"),
        (["handles", "--train", "nowhere.bvh", "--test", "there.bvh"], "nowhere.bvh"),
        (["handles", "--test", "there.bvh"], "--train"),
        (["speed", "--split", "walk"], "one problem"),
    ],
)
def test_mistakes_take_one_line(poise, arguments: list[str], message: str) -> None:  # type: ignore[no-untyped-def]
    ran = poise("evaluate", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1
