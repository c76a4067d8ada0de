"""`poise library`: every subcommand once, and what goes wrong said in one line."""

import json
import shutil

import pytest


@pytest.fixture
def folder(poise, walk, tmp_path):
    (tmp_path / "bad.bvh").write_text("HIERARCHY\n")
    shutil.copy(walk, tmp_path / "same.bvh")
    run = poise(
        "library",
        "build",
        tmp_path / "moves",
        walk,
        tmp_path / "bad.bvh",
        tmp_path / "same.bvh",
        "--mirrored",
    )
    assert run.code == 0
    assert "2 clips added, 0 kept, 1 refused, 1 duplicates; 2 clips, 120 frames" in run.out
    assert "left out: bad.bvh" in run.err
    return tmp_path / "moves"


def test_info(poise, folder):
    facts = json.loads(poise("library", "info", folder, "--json").out)
    assert (facts["clips"], facts["frames"], facts["tags"]["walk"]) == (2, 120, 2)
    assert [name.rsplit("/")[-1] for name in facts["refused"]] == ["bad.bvh"]
    assert "canonical_joints" in poise("library", "info", folder).out


def test_search_by_words_and_by_pose(poise, folder, walk):
    assert (
        poise("library", "search", folder, "walk", "mirrored").out.splitlines()[1].startswith("walk~mirrored")
    )
    assert len(poise("library", "search", folder, "swim").out.splitlines()) == 1
    found = poise("library", "search", folder, "--like", walk, "--at", "0.5").out.splitlines()
    assert found[1].split() == ["walk", "0.500", "0.00"]


def test_export(poise, folder, tmp_path):
    for options in ((), ("--canonical",)):
        run = poise("library", "export", folder, "walk~mirrored", "-o", tmp_path / "out.bvh", *options)
        assert run.code == 0
        assert "60 frames" in run.out


def test_remove_and_check(poise, folder):
    assert "every checksum as recorded" in poise("library", "check", folder).out
    assert "1 clips removed; 1 clips" in poise("library", "remove", folder, "walk").out
    shard = next((folder / "shards").glob("*.safetensors"))
    shard.write_bytes(b"nonsense")
    run = poise("library", "check", folder)
    assert run.code == 2
    assert "1 of 1 clips are damaged: walk~mirrored" in run.err
    assert poise("library", "check", folder, "--repair").code == 0


def test_mistakes(poise, tmp_path):
    assert "is not a motion library" in poise("library", "info", tmp_path).err
    assert "name at least one clip or folder" in poise("library", "build", tmp_path / "moves").err
