"""What goes wrong with machines: kill -9, a full disk, flipped bits, dead workers. Nothing is lost, the run goes on."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dying import always_die, die_once, faults_of_arrays, refuse_three
from poise.engine import Engine
from poise.errors import ParseError, PoiseError
from poise.evaluation.searches import graph_of
from poise.library import Library, build
from poise.library.store import POSES_FILE, BusyError, only_one
from poise.library.tensor_file import map_tensors, sha256_of, write_tensors

BUILD = """
import sys, time
from pathlib import Path
from poise.library import build
module = sys.modules["poise.library.build"]
slow = module._converted
def converted(task):
    done = slow(task)
    time.sleep(float(sys.argv[3]))
    return done
module._converted = converted
print("started", flush=True)
build(Path(sys.argv[1]), [Path(sys.argv[2])])
"""


@pytest.fixture
def many(clips: Path, tmp_path: Path) -> Path:
    """A dozen different files."""
    folder = tmp_path / "many"
    folder.mkdir()
    text = (clips / "walk_slow.bvh").read_text()
    for number in range(12):
        (folder / f"clip_{number:02d}.bvh").write_text(
            text.replace("Frame Time: 0.0333333", f"Frame Time: 0.03{number:02d}")
        )
    return folder


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-20] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("after", [0.2, pytest.param(0.9, marks=pytest.mark.slow)])
def test_kill_9_leaves_a_library_that_opens_and_the_next_build_goes_on(many, tmp_path, after):
    folder = tmp_path / "library"
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(folder), str(many), "0.15"], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "started"
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
    if folder.exists():
        library = Library.open(folder)
        assert not [finding for finding in library.check() if finding.clip]
        for clip in library.clips:
            assert len(library.motion(clip.name)) == clip.frames
    before = len(library.clips) if folder.exists() else 0
    built = build(folder, [many])
    assert len(built.added) + before == len(built.added) + built.kept == 12
    assert list(Library.open(folder).check()) == []
    assert len(Library.open(folder).poses.names) == 12


def test_a_damaged_shard_is_found_and_read_again(library, clips):
    shard = library.folder / library.catalogue.clip("reach").shard
    flip_a_byte(shard)
    [finding] = [finding for finding in library.check() if finding.clip]
    assert finding.clip == "reach"
    assert "checksum" in finding.what
    built = build(library.folder, [clips])
    assert built.added == ["reach"]
    assert any("damaged" in reason for reason in built.refused.values()) is False
    assert list(Library.open(library.folder).check()) == []


def test_a_damaged_clip_whose_file_is_elsewhere_stays_in_the_catalogue_until_it_is_read_again(
    library, clips, tmp_path
):
    shard = library.folder / library.catalogue.clip("reach").shard
    flip_a_byte(shard)
    built = build(library.folder, [clips / "walk_slow.bvh"])
    assert built.damaged == {"reach": str(clips / "reach.bvh")}
    assert [clip.name for clip in library.clips] == ["reach", "walk_fast", "walk_slow"]
    assert Library.open(library.folder).poses.names == ("walk_fast", "walk_slow")
    moved = tmp_path / "elsewhere.bvh"
    shutil.copy(clips / "reach.bvh", moved)
    built = build(library.folder, [moved])
    assert (built.added, built.damaged) == (["reach"], {})
    assert Library.open(library.folder).poses.names == ("reach", "walk_fast", "walk_slow")


def test_repairing_takes_damaged_clips_out(library):
    flip_a_byte(library.folder / library.catalogue.clip("reach").shard)
    library.repair()
    assert [clip.name for clip in library.clips] == list(library.poses.names) == ["walk_fast", "walk_slow"]
    assert list(library.check()) == []


def test_two_builds_of_one_folder_at_once(library, clips, many):
    with only_one(library.folder):
        for change in (
            lambda: build(library.folder, [many]),
            lambda: library.remove(["reach"]),
            library.repair,
        ):
            with pytest.raises(BusyError, match="is being changed by another process"):
                change()
        assert len(Library.open(library.folder).poses.names) == 3
    assert build(library.folder, [clips]).kept == 3


@pytest.mark.slow
def test_a_build_in_another_process_holds_the_lock_and_kill_9_lets_it_go(many, tmp_path):
    folder = tmp_path / "library"
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(folder), str(many), "600"], stdout=subprocess.PIPE, text=True
    )
    with process:
        while not (folder / "shards").is_dir() or not any((folder / "shards").iterdir()):
            time.sleep(0.02)
        with pytest.raises(BusyError, match="wait until it has finished"):
            build(folder, [many])
        process.send_signal(signal.SIGKILL)
    assert len(build(folder, [many]).added) > 0


def test_the_rest_can_be_used_while_a_shard_is_damaged(library):
    (library.folder / library.catalogue.clip("reach").shard).write_bytes(b"nonsense")
    (library.folder / POSES_FILE).unlink()
    assert Library.open(library.folder).poses.names == ("walk_fast", "walk_slow")


def test_damaged_poses_are_put_together_anew(library):
    expected = np.array(library.poses.maps)
    place = library.folder / POSES_FILE
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
    np.testing.assert_array_equal(Library.open(library.folder).poses.maps, expected)
    flip_a_byte(place)
    assert [finding.what for finding in library.check()] == [
        f"{POSES_FILE}: its checksum differs from the recorded one; it is assembled again when the library is used"
    ]
    np.testing.assert_array_equal(Library.open(library.folder).poses.maps, expected)


def test_a_damaged_catalogue_says_so(library):
    path = library.catalogue.path
    library.catalogue.close()
    path.write_bytes(b"not a database, not at all" * 10)
    with pytest.raises(ParseError, match=r"catalogue\.sqlite: the catalogue cannot be used"):
        Library.open(library.folder)


def test_removed_clips_leave_nothing_behind(library):
    shard = library.folder / library.catalogue.clip("reach").shard
    library.remove(["reach"])
    assert not shard.exists()
    assert library.poses.names == ("walk_fast", "walk_slow")
    with pytest.raises(PoiseError, match="no clip 'reach'"):
        library.motion("reach")


def test_a_full_disk(many, tmp_path):
    """A small file system of its own: what fits is kept, what does not is named, and with room the build goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=180k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        built = build(disk / "library", [many])
        assert 0 < len(built.added) < 12
        assert any("No space left" in reason or "full" in reason for reason in built.refused.values())
        library = Library.open(disk / "library")
        assert not [finding for finding in library.check() if finding.clip]
        for clip in library.clips:
            assert len(library.motion(clip.name)) == clip.frames
        library.catalogue.close()
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        again = build(disk / "library", [many])
        assert len(again.added) + again.kept == 12
        assert again.refused == {}
        assert len(Library.open(disk / "library").poses.names) == 12
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


# --- workers that die ----------------------------------------------------------------------------------------------


def items(folder: Path) -> list[tuple[str, int]]:
    return [(str(folder), number) for number in range(6)]


def test_a_dead_process_loses_nothing(tmp_path):
    assert Engine(2).map(die_once, items(tmp_path)) == [0, 1, 4, 9, 16, 25]


def test_an_item_that_kills_every_process_is_lost_alone(tmp_path):
    found = {done.number: done for done in Engine(2, retries=0).each(always_die, items(tmp_path))}
    assert [number for number, done in found.items() if done.lost] == [3]
    assert "killed the process" in found[3].lost
    with pytest.raises(PoiseError, match="item 4 of 6 was lost"):
        Engine(2, retries=0).map(always_die, items(tmp_path))


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_of_the_function_are_raised(tmp_path, jobs):
    with pytest.raises(PoiseError, match="three is refused"):
        Engine(jobs).map(refuse_three, items(tmp_path))


@pytest.mark.slow
def test_a_build_on_a_cluster_with_a_worker_killed_midway(cluster, many, tmp_path):
    engine = Engine(scheduler=cluster.scheduler_address)
    kill = next(worker.pid for worker in cluster.workers.values())

    def progress(done: int, _all: int) -> None:
        if done == 2:
            os.kill(kill, signal.SIGKILL)

    built = build(tmp_path / "library", [many], engine=engine, progress=progress)
    assert (len(built.added), built.refused) == (12, {})
    shutil.rmtree(tmp_path / "library")


@pytest.mark.slow
def test_an_item_that_kills_every_worker_of_a_cluster_is_lost_alone(cluster, tmp_path):
    engine = Engine(scheduler=cluster.scheduler_address)
    found = {done.number: done for done in engine.each(always_die, items(tmp_path))}
    assert {number for number, done in found.items() if done.lost} == {3}
    assert found[3].lost == "every worker that ran it died"
    with pytest.raises(PoiseError, match="item 4 of 6 was lost: every worker that ran it died"):
        engine.map(always_die, items(tmp_path))


@pytest.mark.slow
def test_workers_keep_freed_memory(cluster):
    """Dask's workers give freed memory back at once; each array then costs page faults again."""
    engine = Engine(scheduler=cluster.scheduler_address)
    assert max(engine.map(faults_of_arrays, [0, 1])) < 2000


@pytest.mark.slow
def test_a_result_that_died_with_its_worker_is_waited_for_again(cluster, monkeypatch):
    monkeypatch.setattr(
        "distributed.Future.status", property(lambda _: "pending")
    )  # as when it is made again
    done = list(Engine(scheduler=cluster.scheduler_address).each(abs, [-1, -2]))
    assert sorted(outcome.value for outcome in done) == [1, 2]


def test_no_scheduler_there(monkeypatch):
    monkeypatch.setattr("poise.engine.CONNECT_S", 0.5)
    with pytest.raises(PoiseError, match=r"no scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        list(Engine(scheduler="tcp://127.0.0.1:9").each(die_once, [("", 1)]))


WAIT = """
import sys
from dying import note_and_wait
from poise.engine import Engine
Engine(jobs=2).map(note_and_wait, [(sys.argv[1], number) for number in range(2)])
"""


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    places = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", WAIT, str(tmp_path)]
    parent = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": places})
    until = time.monotonic() + 60.0
    while len(list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    parent.kill()
    parent.wait()
    while any(_lives(worker) for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.1)


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def change_catalogue(library: Library, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(library.catalogue.path)) as connection, connection:
        connection.execute(statement, values)


def copy_of(library: Library, place: Path) -> Library:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(library.folder, place)
    return Library.open(place)


def damage_arrays(path: Path, name: str, change) -> None:
    """Writes one array of a file again, changed."""
    arrays, header = map_tensors(path)
    kept = {key: np.array(array) for key, array in arrays.items()}
    write_tensors(path, {**kept, name: change(kept[name])}, header)


def test_a_catalogue_cannot_name_a_file_outside_the_library(library, tmp_path):
    victim = library.folder.parent / "victim.txt"
    victim.write_text("precious")
    for shard in ("../victim.txt", "shards/../../victim.txt", "/etc/passwd", "shards/a/b", "", "shards/.."):
        change_catalogue(library, "UPDATE clips SET shard = ? WHERE name = 'reach'", shard)
        for use in (library.motion, library.canonical_motion, lambda name: library.remove([name])):
            with pytest.raises(PoiseError, match="must be a file in the library's folder of shards"):
                use("reach")
    assert victim.read_text() == "precious"
    (library.folder / "shards").rename(tmp_path / "elsewhere")
    (library.folder / "shards").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PoiseError, match="is a link"):
        Library.open(library.folder)


def test_one_bad_cell_costs_one_clip(library, tmp_path):
    clips = len(library.clips)
    for column, value in (
        ("tags", "{"), ("tags", "[1]"), ("tags", "[" * 100_000), ("provenance", "7"), ("fps", "fast"), ("fps", 1e-320),
        ("frames", -1), ("frames", 2**62), ("skeleton", b"\xff"), ("shard_sha256", "x" * 1000), ("source", b"\xff"),
    ):  # fmt: skip
        copy = copy_of(library, tmp_path / "copy")
        change_catalogue(copy, f"UPDATE clips SET {column} = ? WHERE name = 'reach'", value)
        assert len(copy.clips) == clips - 1, column
        assert any("reach" in finding.what and finding.clip for finding in copy.check())
        copy.repair()
        assert [finding for finding in copy.check() if finding.clip] == []
        assert len(copy.poses.names) == clips - 1


def test_a_name_that_is_not_text_does_not_hide_the_others(library):
    change_catalogue(library, "UPDATE clips SET name = ? WHERE name = 'reach'", b"\xff")
    with pytest.raises(PoiseError, match=r"no clip 'reach'; valid: .*walk"):
        library.motion("reach")


def test_a_damaged_skeleton_or_fact_is_said(library, tmp_path):
    for value in ("{", "[]", '{"names": ["a"]}', "[" * 100_000, b"\xff"):
        copy = copy_of(library, tmp_path / "copy")
        change_catalogue(copy, "UPDATE skeletons SET description = ?", value)
        with pytest.raises(PoiseError):
            copy.motion("reach")
        for fact in ("usual", "canonical", "version"):
            copy = copy_of(library, tmp_path / "copy")
            change_catalogue(copy, "UPDATE facts SET value = ? WHERE name = ?", value, fact)
            with pytest.raises(PoiseError):
                _ = Library.open(copy.folder).skeleton


def test_arrays_that_do_not_go_together_are_refused_or_made_again(library, tmp_path):
    for change in (lambda a: a[:-1], lambda a: a[..., None], lambda a: a * np.nan):
        copy = copy_of(library, tmp_path / "copy")
        damage_arrays(copy.folder / copy.catalogue.clip("reach").shard, "rotations", change)
        with pytest.raises(ParseError, match="not a library's clip"):
            copy.motion("reach")
    maps, neighbours = np.array(library.poses.maps), np.array(graph_of(library).neighbours)
    for name, change in (
        ("starts", lambda a: a + 10_000), ("starts", lambda a: a[::-1]), ("starts", lambda a: a[:-1]),
        ("maps", lambda a: a[:-1]), ("maps", lambda a: a[:, :-3]), ("roots", lambda a: a[:, :-1]),
        ("moving", lambda a: a[:-1]), ("references", lambda a: a[:-1]), ("rates", lambda a: a * np.nan),
        ("maps", lambda a: a * np.nan), ("roots", lambda a: a + np.inf), ("moving", lambda a: 1.0 * a),
    ):  # fmt: skip
        copy = copy_of(library, tmp_path / "copy")
        damage_arrays(copy.folder / POSES_FILE, name, change)
        copy.catalogue.poses_sha256 = sha256_of(copy.folder / POSES_FILE)
        np.testing.assert_array_equal(copy.poses.maps, maps)
    for name in ("neighbours", "middles", "offsets", "starts"):
        copy = copy_of(library, tmp_path / "copy")
        damage_arrays(copy.cache / "graph.safetensors", name, lambda array: array + 100_000)
        np.testing.assert_array_equal(graph_of(copy).neighbours, neighbours)
