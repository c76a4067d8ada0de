"""The build of a wheel: with the studio's page, or an error in words."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for Node are shell scripts")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/page.py in a fresh clone, on a machine whose npm answers as `NPM_ENDS` says."""
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    web = tmp_path / "clone" / "web"
    (web / "src").mkdir(parents=True)
    (web / "package-lock.json").write_text("{}")
    (tmp_path / "clone" / ".git").mkdir()
    for name, value in {
        "ROOT": tmp_path / "clone",
        "PAGE": web,
        "MODELS": tmp_path / "clone" / "models",
    }.items():
        monkeypatch.setattr(found, name, value)
    for program, text in {"node": "echo ${NODE_SAYS:-v22.1.0}", "npm": "exit ${NPM_ENDS:-0}"}.items():
        file = tmp_path / program
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return found


@pytest.fixture
def hook(page: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "page", page)
    return module.PageHook(str(ROOT), {}, None, SimpleNamespace(version="1.2.0"), "", "wheel")


def building() -> dict[str, Any]:
    """What Hatch gives a hook to change."""
    return {"artifacts": [], "dependencies": [], "force_include": {}}


def test_a_fresh_clone_has_no_page_and_old_sources_make_it_stale(page: ModuleType) -> None:
    assert not page.is_current()
    (page.PAGE / "dist").mkdir()
    made = page.PAGE / "dist" / "index.html"
    page.MODELS.mkdir()
    for file in (made, *(page.MODELS / name for name in page._NETWORKS.values())):
        file.touch()
    assert page.is_current()
    os.utime(made, (0, 0))
    assert not page.is_current()
    (page.ROOT / ".git").rmdir()
    assert page.is_current()  # as in a source archive, whose files have any time


def test_a_wheel_without_its_page_is_refused_in_words(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_ENDS", "1")
    with pytest.raises(
        SystemExit, match=r"page is missing, and npm could not install.*\n.*POISE_WITHOUT_PAGE=1"
    ):
        hook.initialize("standard", building())
    hook.initialize("editable", building())
    monkeypatch.setenv("POISE_WITHOUT_PAGE", "1")
    hook.initialize("standard", building())


def test_node_from_pypi_is_needed_only_without_one(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hook.dependencies() == []
    monkeypatch.setenv("NODE_SAYS", "v18.0.0")
    assert hook.dependencies() == [(ROOT / "requirements" / "node.txt").read_text().strip()]
    monkeypatch.setenv("POISE_WITHOUT_PAGE", "1")
    assert hook.dependencies() == []


def test_a_wheel_may_bring_the_kernels_of_an_installation(
    hook: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POISE_WITHOUT_PAGE", "1")
    monkeypatch.setenv("POISE_KERNELS", str(tmp_path))
    with pytest.raises(SystemExit, match="there are none below"):
        hook.initialize("standard", building())
    kept = tmp_path / "poise" / "solvers" / "__pycache__"
    kept.mkdir(parents=True)
    for name in ("core.solve-46.py311.nbi", "core.solve-46.py311.1.nbc", "core.cpython-311.pyc"):
        (kept / name).touch()
    built = building()
    hook.initialize("standard", built)
    assert set(built["force_include"].values()) == {
        f"poise/solvers/__pycache__/core.solve-46.py311.{end}" for end in ("nbi", "1.nbc")
    }
    assert not built["pure_python"]
    assert built["tag"].startswith(f"cp{sys.version_info.major}{sys.version_info.minor}-")


def test_networks_are_in_a_wheel_or_in_one_of_their_own(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POISE_WITHOUT_PAGE", "1")
    whole, apart = building(), building()
    hook.initialize("standard", whole)
    monkeypatch.setenv("POISE_PEOPLE_APART", "1")
    hook.initialize("standard", apart)
    assert (whole["artifacts"], whole["dependencies"]) == (["src/poise/vision/people/models"], [])
    assert (apart["artifacts"], apart["dependencies"]) == ([], ["poise-people==1.2.0; extra == 'video'"])
