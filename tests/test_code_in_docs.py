"""What the documentation shows can be typed: commands are valid, Python runs, no line is wider than a screen."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WIDEST = 120
ELSEWHERE = {"README.md", "extending.md"}  # tests/test_readme.py and tests/test_extending.py run these
MAKE_CLIPS = """
import poise
for name in ("walk", "take", "boxing_1", "boxing_2", "clips/walk", "recordings/alex/walk"):
    path = Path(f"{name}.bvh")
    path.parent.mkdir(parents=True, exist_ok=True)
    poise.performer.act("walk", seconds=1, fps=30, seed=len(name)).save(path)
"""
GIVEN = {
    "characters.md": """
poise.performer.act("walk", performer="otto", seconds=1, fps=30).save("me.glb")
solution = poise.solve(poise.read("walk.bvh").skeleton, {"right_hand": (-0.3, 1.2, 0.4)})
""",
    "library.md": """
performer_body, before, before_that = poise.read("walk.bvh").skeleton, None, None
performance = [[(0.3, 0.1, 0.2), (-0.3, 0.1, 0.2), (0.1, -0.9, 0.0), (-0.1, -0.9, 0.0), (0.0, 0.6, 0.0)]]
performance = map(np.array, performance)
""",
    "style.md": """
style = poise.learn("clips/", kind="style")
frames = [{"right_hand": (-0.3, 1.2, 0.4)}] * 3
""",
    "markers.md": """
from poise.capture.markers import solve, template
from poise.capture.matching import read_take
poise.virtual_markers(poise.performer.act("walk", seconds=2, fps=30)).save("markers.c3d")
captured = solve(read_take(Path("markers.c3d"), template()))
style, calibration = poise.learn(captured.motion, kind="style"), captured.calibration
points = captured.take.markers.points[0]
""",
    "performance.md": """
from poise.capture.matching import WITH_HEAD, marker_layout
walk = poise.read("walk.bvh")
take = poise.virtual_markers(walk, marker_layout(walk.skeleton, WITH_HEAD))
points = take.points[0]
take.save("take.c3d")
values = np.tile([0.0, 1.6, 0.0, 1.0, 0.0, 0.0, 0.0], (3, 1))
values[1:, :3] = (0.7, 1.4, 0.0), (-0.7, 1.4, 0.0)
""",
    "repair.md": """
poise.performer.act("walk", seconds=2, fps=30).save("tracked.bvh")
""",
    "onnx.md": """
from poise.apps.exporting import universal_onnx
universal_onnx(Path("universal.onnx"), None)
""",
}
"""What a page leaves to its reader, as code to run before its own."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _commands(text: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", text)
    return re.findall(r"^(?: {4})?(poise [a-z].*)$", joined, flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "extending.md"], ids=_name)
def test_every_command_is_valid(page: Path) -> None:
    """Each is parsed as the program parses it; nothing runs. The page on extending has options of its own."""
    from poise.cli.main import program

    for command in _commands(page.read_text("utf-8")):
        program().parse_args(shlex.split(command, comments=True)[1:], exit_on_error=False, print_error=False)


def test_commands_are_found() -> None:
    assert len(_commands((ROOT / "docs" / "api" / "commands.md").read_text("utf-8"))) > 80


def test_no_line_is_too_wide() -> None:
    wide = [
        f"{_name(page)}:{number}: {len(line)} characters"
        for page in PAGES
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1)
        if len(line) > WIDEST
    ]
    assert wide == []


def _code(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), flags=re.M | re.S))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if _code(page) and page.name not in ELSEWHERE], ids=_name
)
def test_the_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "cache"))
    exec(MAKE_CLIPS + GIVEN.get(page.name, "") + _code(page), {"Path": Path, "np": np})
