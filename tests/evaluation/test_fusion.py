"""The protocol `fusion`: a wrong source is found, and the report is written."""

import json
from pathlib import Path

import pytest

from poise.evaluation.fusion import FRESH, FusionOptions
from poise.evaluation.report import Request, evaluate


@pytest.mark.parametrize("split", ["performer", f"fresh-{FRESH[0]}"])
def test_a_wrong_source_is_found_and_the_report_written(split: str, tmp_path: Path) -> None:
    report = evaluate(Request("fusion", split, options=FusionOptions(takes=1)))
    report.write(tmp_path / "report.json")
    walk = json.loads((tmp_path / "report.json").read_text())["rows"][0]
    assert walk["method"] == "walk"
    assert [walk[name] for name in ("moved_found", "late_found", "none_found")] == [1.0, 1.0, 1.0]
    assert walk["both_cm"] < min(walk["trackers_cm"], walk["camera_cm"])
