"""What may happen to a machine: a disk that is full, read-only or slow, and a clock that jumps."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.capture.journal import Journal, brought_back
from poise.capture.matching import LOCOMOTION, marker_layout
from poise.capture.performance import Performance
from poise.cli import main
from poise.errors import PoiseError
from poise.formats import read, write
from poise.library import Library, build
from poise.motion.motion import Motion
from poise.motion.virtual_markers import virtual_markers
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import load, save
from poise.solvers.solution import Solution, Status
from poise.studio import autosave as autosave_module
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.uploads import Uploads
from small_disk import SmallDisk, small_disk

WALK = performer.act("walk", seconds=1.0, fps=30)
REACH = performer.act("reach", seconds=1.0, fps=30)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    models, uploads = ModelStore(), Uploads()
    models.add(GaussianPrior.learn([WALK], clusters=3), "steps")
    session = Session(models, uploads, Autosave(tmp_path / "kept"))
    yield session
    session.close()
    session.autosave.close()
    uploads.close()


Writer = Callable[[Path, Motion], None]


def save_model(path: Path, motion: Motion) -> None:
    save(GaussianPrior.learn([motion], clusters=3), path)


WRITERS: dict[str, tuple[str, Writer]] = {
    "bvh": ("a.bvh", lambda path, motion: write(motion, path)),
    "glb": ("a.glb", lambda path, motion: write(motion, path)),
    "pair": ("a.amc", lambda path, motion: write(motion, path, overwrite=True)),
    "model": ("a.poise", save_model),
}


@pytest.mark.parametrize(
    "name", ["bvh", *(pytest.param(name, marks=pytest.mark.slow) for name in WRITERS if name != "bvh")]
)
def test_what_a_full_or_read_only_disk_has_stays(disk: SmallDisk, name: str) -> None:
    file, writer = WRITERS[name]
    writer(disk.path / file, WALK)
    before = {path.name: path.read_bytes() for path in disk.path.iterdir()}
    disk.fill()
    with pytest.raises(OSError, match=r"No space|cannot write"):
        writer(disk.path / file, REACH)
    disk.make_room()
    disk.write_protect()
    with pytest.raises(OSError, match=r"Read-only|cannot write"):
        writer(disk.path / file, REACH)
    assert {path.name: path.read_bytes() for path in disk.path.iterdir()} == before
    disk.write_protect(on=False)
    writer(disk.path / file, REACH)
    assert {path.name for path in disk.path.iterdir()} == set(before)
    assert (disk.path / file).read_bytes() != before[file]


@pytest.mark.slow
def test_commands_say_that_the_disk_is_full_or_read_only(
    disk: SmallDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(WALK, tmp_path / "walk.bvh")
    commands = (
        ["convert", str(tmp_path / "walk.bvh"), str(disk.path / "walk.glb")],
        ["learn", str(disk.path / "walk.poise"), "--kind", "gaussian", str(tmp_path / "walk.bvh")],
        ["library", "build", str(disk.path / "library"), str(tmp_path / "walk.bvh")],
    )
    for trouble in (disk.fill, disk.make_room, disk.write_protect):
        trouble()
        if trouble == disk.make_room:
            continue
        for command in commands:
            assert main(command) == 2
            said = capsys.readouterr().err
            assert "Traceback" not in said
            assert any(words in said for words in ("No space", "full", "Read-only", "read-only", "cannot")), (
                said
            )
    assert not list(disk.path.rglob("*.part"))


def test_a_library_is_whole_again_when_there_is_room(disk: SmallDisk, tmp_path: Path) -> None:
    for name, motion in (("walk", WALK), ("reach", REACH)):
        write(motion, tmp_path / f"{name}.bvh")
    build(disk.path / "library", [tmp_path / "walk.bvh"])
    disk.fill()
    with pytest.raises(PoiseError, match="cannot be changed: database or disk is full"):
        build(disk.path / "library", [tmp_path / "reach.bvh"])
    assert len(Library.open(disk.path / "library").motion("walk")) == len(WALK)
    disk.make_room()
    build(disk.path / "library", [tmp_path / "reach.bvh"])
    library = Library.open(disk.path / "library")
    assert [clip.name for clip in library.clips] == ["reach", "walk"]
    assert not list(library.check())


def test_a_performance_on_a_full_disk_is_whole_when_there_is_room(disk: SmallDisk) -> None:
    prior, output = LocalPrior.learn([WALK]), disk.path / "take.bvh"

    def add(journal: Journal, number: int) -> None:
        q = prior.examples.q[number]
        journal.add(Solution(q, prior.space, tuple, Status.REACHED, 0, 0.0), number / 30)

    with Journal(output, fps=30.0) as journal:
        add(journal, 0)
        disk.fill()
        for number in range(1, 20):
            add(journal, number)
        disk.make_room()
        add(journal, 20)
    found = brought_back(output)
    assert found is not None
    assert found[1] == 21
    np.testing.assert_allclose(
        read(found[0]).root_positions, prior.examples.q[:21, :3], atol=1e-5, err_msg="rows were mixed up"
    )


def test_a_performance_cut_off_before_its_first_word_is_none(tmp_path: Path) -> None:
    (tmp_path / "take.bvh.journal").touch()
    assert brought_back(tmp_path / "take.bvh") is None


def test_the_studio_on_a_full_disk_keeps_all_edits_and_writes_them_when_there_is_room(
    disk: SmallDisk, session: Session
) -> None:
    autosave = Autosave(disk.path / "kept")
    session.autosave = autosave
    session.answer(said.SetLookAt(target=(0.0, 1.0, 2.0)))
    assert autosave.flush()
    disk.fill()
    for height in (1.1, 1.2, 1.3):
        session.answer(said.SetLookAt(target=(0.0, height, 2.0)))
        assert not autosave.flush()
    session.answer(said.Undo())
    disk.make_room()
    assert autosave.flush()
    other = Session(session.models, session.uploads, Autosave(disk.path / "kept"), token=session.token)
    assert other.restore()
    assert other.state.look_at == (0.0, 1.2, 2.0)
    autosave.close()


def test_a_clock_that_jumps_loses_no_scene(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.answer(said.SetLookAt(target=(0.0, 1.0, 2.0)))
    session.autosave.flush()
    now = time.time()
    for jump in (700 * 86400.0, -700 * 86400.0):
        monkeypatch.setattr(autosave_module.time, "time", lambda jump=jump: now + jump)
        session.autosave.tidy()
        kept = session.autosave.kept([session.token])
        assert [scene.age >= 0.0 for scene in kept] == [True]
        assert session.autosave.find(session.token) is not None


@pytest.mark.parametrize("jump", [-1e9, -3600.0, 3600.0, 1e9])
def test_a_performer_whose_clock_jumps_is_still_followed(jump: float) -> None:
    prior = LocalPrior.learn([WALK])
    layout = marker_layout(WALK.skeleton, LOCOMOTION)
    performance = Performance(prior, layout, fps=30.0)
    points = virtual_markers(WALK, layout).points
    frames = [performance.step(points[n], at=1e6 + n / 30 + (jump if n >= 15 else 0.0)) for n in range(30)]
    assert all(np.isfinite(frame.q).all() for frame in frames)
    off = np.linalg.norm(frames[-1].positions["left_hand"] - WALK[29].positions["left_hand"])
    assert off < 0.1


def test_a_slow_disk_holds_no_edit_up(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    store = session.autosave.store
    put, writing, edited, in_time = store.put_scene, threading.Event(), threading.Event(), list[bool]()

    def slowly(token: str, content: bytes) -> None:
        writing.set()
        in_time.append(edited.wait(60.0))
        put(token, content)

    monkeypatch.setattr(store, "put_scene", slowly)
    session.answer(said.SetLookAt(target=(0.0, 1.0, 2.0)))
    assert writing.wait(60.0)
    for height in range(10):
        session.answer(said.SetLookAt(target=(0.0, 1.0 + height / 10, 2.0)))
    edited.set()  # all edits, while the first was being written
    session.autosave.flush()
    assert all(in_time)
    assert session.autosave.has(session.token)


def test_models_that_were_cut_short_are_refused(disk: SmallDisk) -> None:
    save_model(disk.path / "a.poise", WALK)
    content = (disk.path / "a.poise").read_bytes()
    (disk.path / "b.poise").write_bytes(content[: len(content) // 2])
    with pytest.raises(PoiseError):
        load(disk.path / "b.poise")
