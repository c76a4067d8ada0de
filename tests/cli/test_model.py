"""`poise model check` says which models are sound, and what is wrong with the others."""

from pathlib import Path

import pytest

from poise import performer
from poise.cli import main
from poise.priors.gaussian import GaussianPrior
from poise.priors.model_file import save


def test_models_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    walk = tmp_path / "walk.poise"
    save(GaussianPrior.learn([performer.act("walk", seconds=1.0, fps=30)], clusters=3), walk)
    assert main(["model", "check", str(walk)]) == 0
    assert "walk.poise: a sound model of" in capsys.readouterr().out
    bad = tmp_path / "bad.poise"
    bad.write_bytes(walk.read_bytes().replace(b'"blocks"', b'"blokks"'))
    assert main(["model", "check", str(walk), str(bad)]) == 2
    shown = capsys.readouterr()
    assert "warning: bad.poise: not a complete gaussian model: 'blocks' is missing" in shown.err
    assert "1 of 2 models are not valid" in shown.err
    assert main(["model", "check"]) == 2
