"""Real recordings that Pose2Sim (BSD-3-Clause) ships in its wheel: four cameras, one person and two, and boards.

The wheel is fetched once by pip into the user's cache folder; where it is not to be had, tests are skipped.
"""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from poise.vision.sources import write_video

WHEEL = "pose2sim==0.10.49"
CACHE = Path.home() / ".cache" / "poise" / "tests"
WANTED = ("_int.jpg", ".mp4", ".qca.txt")
SINGLE, BOTH = "Pose2Sim/Demo_SinglePerson", "Pose2Sim/Demo_MultiPerson"


def recordings() -> Path:
    """The folder that they are unpacked in."""
    folder = CACHE / "pose2sim-videos"
    if not folder.is_dir():
        _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    pip = shutil.which("pip")
    if pip is None:
        pytest.skip("real recordings: no pip to fetch them with")
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [pip, "download", "--no-deps", "--quiet", "--retries", "1", "--dest", str(CACHE), WHEEL]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=90)
    except (subprocess.SubprocessError, OSError):
        pytest.skip("real recordings: the wheel of pose2sim could not be fetched")
    wheel = next(CACHE.glob("pose2sim-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        part = folder.with_suffix(".part")
        names = [
            name for name in archive.namelist() if name.startswith((SINGLE, BOTH)) and name.endswith(WANTED)
        ]
        archive.extractall(part, names)
    part.rename(folder)  # all of them, or none
    wheel.unlink()


def webcam_video(video: Path, path: Path, *, seconds: float, side: int = 480) -> Path:
    """A video as a webcam would give it: small, 30 pictures a second, there and back for as long as is wanted."""
    import cv2

    capture, pictures = cv2.VideoCapture(str(video)), []
    while (read := capture.read())[0]:
        pictures.append(read[1])
    pictures = pictures[:: max(1, round(capture.get(cv2.CAP_PROP_FPS) / 30.0))]
    scale = side / max(pictures[0].shape[:2])
    small = [cv2.resize(one, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) for one in pictures]
    there_and_back = [*small, *small[-2:0:-1]]
    shown = [there_and_back[k % len(there_and_back)] for k in range(round(seconds * 30.0))]
    write_video(path, shown, fps=30.0, size=(small[0].shape[1], small[0].shape[0]))
    return path
