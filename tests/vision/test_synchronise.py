"""Videos that were not started together: put in step by a clap or by what moves, or refused."""

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.apps.camera_takes import before_cameras, simulator_of
from poise.cli import main
from poise.errors import InvalidValueError, ParseError
from poise.formats import read, write
from poise.vision.simulator import Conditions, front_rig
from poise.vision.sources import InStep, Source, open_source, write_video
from poise.vision.synchronise import offsets_by, sound_of

pytest.importorskip("cv2")
FPS, SIZE = 25.0, (320, 240)
FINE = 4  # moments of the motion between two pictures
LATE = {"first": 0.0, "second": 0.37, "third": -1.2}  # when each is started, after the first
HALF_A_FRAME = 0.5 / FPS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Boxing, filmed by three cameras that are started one after the other, between two pictures of each other."""
    path = tmp_path_factory.mktemp("late")
    take = before_cameras(performer.act("box", fps=60, seed=5), fps=FINE * FPS, seconds=5.5)
    sim = simulator_of(take, front_rig(size=SIZE, count=3), conditions=Conditions(marker_radius=0.022))
    for number, (name, late) in enumerate(LATE.items()):
        start = round((late - min(LATE.values())) * FINE * FPS)
        pictures = (sim.picture(frame, number) for frame in range(start, len(take), FINE))
        write_video(path / f"{name}.avi", pictures, fps=FPS, size=SIZE)
    return path


def sources(folder: Path) -> list[Source]:
    return [open_source(folder / f"{name}.avi") for name in LATE]


def noise_with_claps(claps: list[float], *, rate: int, loud: float = 1.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    sound = 0.01 * rng.standard_normal(5 * rate)
    decay = np.exp(-np.arange(rate // 20) / (0.008 * rate))
    for at in claps:
        begun = round(at * rate)
        sound[begun : begun + len(decay)] += 0.3 * loud * decay * rng.standard_normal(len(decay))
    return np.clip(sound, -1, 1)


def write_wav(path: Path, sound: np.ndarray, *, rate: int, width: int = 2, channels: int = 1) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(pcm(np.repeat(sound, channels), width))


def pcm(sound: np.ndarray, width: int) -> bytes:
    numbers = np.rint(sound * (2 ** (8 * width - 1) - 1)).astype("<i8")
    if width == 1:
        return (numbers + 128).astype(np.uint8).tobytes()
    return numbers.view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


@pytest.mark.slow
def test_motion_puts_videos_in_step_within_half_a_frame(folder):
    found = offsets_by("motion", sources(folder))
    assert np.allclose(found, list(LATE.values()), atol=HALF_A_FRAME)


def test_moments_begin_when_all_cameras_run(folder):
    with InStep(sources(folder), offsets=list(LATE.values())) as steps:
        moments = list(steps)
    assert moments[0].time == 0.0
    assert len(moments) == pytest.approx((5.5 - 1.57) * FPS, abs=1)
    assert all(picture is not None for picture in moments[-2].pictures)


@pytest.mark.parametrize("rates", [(16_000, 16_000, 16_000), (48_000, 44_100, 22_050)])
def test_a_clap_puts_videos_in_step_whatever_the_microphones(folder, rates):
    for number, ((name, late), rate) in enumerate(zip(LATE.items(), rates, strict=True)):
        claps = [2.1 - late, 2.75 - late]
        sound = noise_with_claps(claps, rate=rate, loud=1.0 / (1 + number), seed=number)
        write_wav(folder / f"{name}.wav", sound, rate=rate, width=number + 1, channels=1 + number % 2)
    found = offsets_by("clap", sources(folder))
    assert np.allclose(found, list(LATE.values()), atol=0.004)


def test_noise_without_a_clap_and_standing_still_are_refused(folder, tmp_path):
    still = [next(iter(InStep([source]))).pictures[0] for source in sources(folder)]
    rng = np.random.default_rng(0)
    for number, name in enumerate(LATE):
        write_wav(tmp_path / f"{name}.wav", noise_with_claps([], rate=16_000, seed=number), rate=16_000)
        noisy = (
            np.clip(still[number] + rng.normal(0, 2, still[number].shape), 0, 255).astype(np.uint8)
            for _ in range(40)
        )
        write_video(tmp_path / f"{name}.avi", noisy, fps=FPS, size=SIZE)
    with pytest.raises(InvalidValueError, match=r"first\.avi and second\.avi do not agree on a clap"):
        offsets_by("clap", sources(tmp_path))
    with pytest.raises(InvalidValueError, match="do not agree on motion that all cameras saw"):
        offsets_by("motion", sources(tmp_path))


@pytest.mark.slow
def test_steps_that_are_all_alike_are_refused(tmp_path):
    """Whoever walks on the spot could be a step further in one video: no lag is clearly the best."""
    take = before_cameras(performer.act("walk", fps=60, seed=5), fps=FPS, seconds=4.0)
    sim = simulator_of(take, front_rig(size=SIZE), conditions=Conditions(marker_radius=0.022))
    for number, start in enumerate((9, 0)):
        pictures = (sim.picture(frame, number) for frame in range(start, len(take)))
        write_video(tmp_path / f"camera{number}.avi", pictures, fps=FPS, size=SIZE)
    with pytest.raises(InvalidValueError, match="jump, or throw the arms up, once"):
        offsets_by("motion", [open_source(tmp_path / f"camera{number}.avi") for number in range(2)])


def chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def avi_with_sound(sound: bytes, *, tag: int = 1, bits: int = 16) -> bytes:
    """A video of two empty pictures with stereo sound between them, as the container is laid down."""
    layout = struct.pack("<HHIIHH", tag, 2, 8000, 8000 * bits // 4, bits // 4, bits)
    picture = chunk(b"LIST", b"strl" + chunk(b"strh", b"vids" + b"\0" * 52) + chunk(b"strf", b"\0" * 40))
    heard = chunk(b"LIST", b"strl" + chunk(b"strh", b"auds" + b"\0" * 52) + chunk(b"strf", layout))
    head = chunk(b"LIST", b"hdrl" + chunk(b"avih", b"\0" * 56) + picture + heard)
    half = len(sound) // 8 * 4
    body = chunk(b"00dc", b"odd") + chunk(b"01wb", sound[:half])
    body += chunk(b"LIST", b"rec " + chunk(b"00dc", b"") + chunk(b"01wb", sound[half:]))
    inside = b"AVI " + head + chunk(b"LIST", b"movi" + body)
    return chunk(b"RIFF", inside)


def test_the_sound_of_an_avi_file_is_read_out_of_it(tmp_path):
    wave_form = np.sin(np.linspace(0, 40, 4000))
    path = tmp_path / "take.avi"
    path.write_bytes(avi_with_sound(pcm(np.repeat(wave_form, 2), 2)))
    found = sound_of(path)
    assert found.rate == 8000
    assert np.allclose(found.samples, wave_form, atol=1e-4)
    path.write_bytes(path.read_bytes()[:-5001])  # broken off
    assert np.allclose(sound_of(path).samples, wave_form[: len(sound_of(path).samples)], atol=1e-4)


def test_sound_that_cannot_be_read_says_how_to_get_it(folder, tmp_path):
    silent = tmp_path / "left.avi"
    silent.write_bytes((folder / "first.avi").read_bytes())
    with pytest.raises(InvalidValueError, match=r"left\.avi has no sound .*ffmpeg -i left\.avi left\.wav"):
        sound_of(silent)
    silent.write_bytes(avi_with_sound(b"\0" * 64, tag=0x55))
    with pytest.raises(ParseError, match="not plain PCM"):
        sound_of(silent)
    (tmp_path / "right.mp4").write_bytes(b"\0\0\0\x20ftypisom")
    with pytest.raises(InvalidValueError, match="synchronise by motion"):
        sound_of(tmp_path / "right.mp4")


def test_an_unknown_way_is_told(folder):
    with pytest.raises(
        InvalidValueError, match="synchronise videos by time, flash, clap, motion; got 'whistle'"
    ):
        offsets_by("whistle", sources(folder))


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_shapes")
def test_the_commands_film_late_cameras_and_put_them_in_step(tmp_path, capsys):
    write(performer.act("box", seconds=2.0, fps=60, seed=5), tmp_path / "box.bvh")
    take, model, out = tmp_path / "take", str(tmp_path / "box.poise"), tmp_path / "out.bvh"
    options = ["--fps", "30", "--seconds", "0.8", "--size", "400", "300", "--empty", "0.5", "--late", "0.4"]
    assert main(["cameras", "simulate", str(tmp_path / "box.bvh"), "-o", str(take), *options]) == 0
    assert main(["learn", model, "--kind", "local", str(tmp_path / "box.bvh")]) == 0
    both = [word for number in (1, 2) for word in ("--video", str(take / f"camera{number}.avi"))]
    rig = ["--cameras", str(take / "cams.toml"), "--empty", "0.5", "--sync", "clap"]
    capsys.readouterr()
    assert main(["perform", model, *both, *rig, "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "camera2.avi begins 0.40" in said
    assert "at one position for all cameras" not in said
    assert len(read(out)) >= 22
