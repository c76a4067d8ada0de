"""Building: what is taken in, what is refused and why, and that nothing is done twice."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from bodies import moving, person
from poise import read, write
from poise.capture.setup import open_prior
from poise.errors import InvalidValueError
from poise.formats.files import FileAccessError
from poise.geometry import rotations
from poise.library import Library, Recipe, build
from poise.motion import Motion, joint_positions, mirror, retarget
from poise.priors.abilities import examples_of
from poise.skeleton import Skeleton


def quadruped():
    """Four legs below a level trunk, under the names of a person's joints."""
    body = person()
    offsets = body.offsets.copy()
    for name in ("spine", "chest", "neck", "head"):
        offsets[body.index(name)] = (0.0, 0.0, 0.2)
    return body.with_offsets(offsets)


def chain():
    """Two joints and an end."""
    return Skeleton(("a", "b", "c"), np.array([-1, 0, 1]), np.array([[0.0, 1, 0], [0.0, 1, 0], [0.0, 1, 0]]))


def test_every_clip_is_taken_in(library, motions):
    assert [clip.name for clip in library.clips] == sorted(motions)
    walk = library.catalogue.clip("walk_fast")
    assert (walk.frames, walk.fps, walk.tags) == (len(motions["walk_fast"]), 30.0, ("walk", "fast"))
    assert walk.provenance["format"] == "bvh"


def test_a_clip_comes_out_as_it_went_in(library, motions, clips):
    for name in motions:
        recorded, kept = read(clips / f"{name}.bvh"), library.motion(name)
        assert kept.skeleton == recorded.skeleton
        np.testing.assert_allclose(joint_positions(kept), joint_positions(recorded), atol=1e-6)


def test_poses_are_single_precision_and_mapped(library, motions):
    poses = library.poses
    assert poses.maps.dtype == np.float32
    assert isinstance(poses.maps.base, np.memmap)
    assert len(poses) == sum(len(motion) for motion in motions.values())
    for name in motions:
        found = poses.motion(poses.frames_of(name))
        kept = library.canonical_motion(name)
        angles = rotations.geodesic_distance(found.rotations, kept.rotations)[:, poses.space.moving]
        assert angles.max() < 1e-6


def test_a_second_build_reads_nothing(library, clips):
    before = (library.folder / "poses.safetensors").stat().st_mtime_ns
    built = build(library.folder, [clips])
    assert (built.added, built.kept) == ([], 3)
    assert (library.folder / "poses.safetensors").stat().st_mtime_ns == before


def test_a_second_build_adds_what_is_new(library, clips, tmp_path):
    write(read(clips / "reach.bvh")[::2], tmp_path / "half.bvh")
    assert build(library.folder, [clips, tmp_path / "half.bvh"]).added == ["half"]
    assert "half" in Library.open(library.folder).poses.names


def test_duplicates_are_found_by_bytes_and_by_frames(clips, tmp_path):
    shutil.copytree(clips, tmp_path / "more")
    text = (clips / "reach.bvh").read_text()
    (tmp_path / "more" / "z_other_bytes.bvh").write_text(text.replace("\n", " \n"))
    shutil.copy(clips / "walk_slow.bvh", tmp_path / "more" / "zz_same.bvh")
    built = build(tmp_path / "library", [tmp_path / "more"])
    assert len(built.added) == 3
    assert {name.rsplit("/")[-1]: same for name, same in built.duplicates.items()} == {
        "z_other_bytes.bvh": "reach",
        "zz_same.bvh": "walk_slow",
    }


def test_bad_clips_are_listed_and_skipped(clips, tmp_path):
    folder = shutil.copytree(clips, tmp_path / "more")
    (folder / "broken.bvh").write_text("HIERARCHY\nROOT x\n{")
    (folder / "empty.bvh").write_text("")
    write(moving(chain(), frames=5), folder / "chain.bvh")
    write(moving(quadruped(), frames=5, size=0.05), folder / "dog.bvh")
    (folder / "dog.bvh").write_text((folder / "dog.bvh").read_text().replace("head", "Head"))
    built = build(tmp_path / "library", [folder, tmp_path / "missing.bvh"])
    assert len(built.added) == 3
    reasons = {name.rsplit("/")[-1]: reason for name, reason in built.refused.items()}
    assert set(reasons) == {"broken.bvh", "empty.bvh", "chain.bvh", "dog.bvh", "missing.bvh"}
    assert "the file is empty" in reasons["empty.bvh"]
    assert "it lacks pelvis" in reasons["chain.bvh"]
    assert "is upright neither" in reasons["dog.bvh"]
    assert "does not exist" in reasons["missing.bvh"]
    assert set(Library.open(tmp_path / "library").catalogue.refused()) == set(built.refused)


def test_the_first_person_gives_the_skeleton(clips, tmp_path):
    write(moving(chain(), frames=5), tmp_path / "a_chain.bvh")
    built = build(tmp_path / "library", [tmp_path / "a_chain.bvh", clips])
    assert len(built.added) == 3
    assert Library.open(tmp_path / "library").skeleton.same_topology(read(clips / "reach.bvh").skeleton)


def test_no_person_at_all(tmp_path):
    write(moving(chain(), frames=5), tmp_path / "chain.bvh")
    with pytest.raises(
        InvalidValueError, match=r"none of the 1 files has a person's skeleton.*chain.bvh: its skeleton \(3"
    ):
        build(tmp_path / "library", [tmp_path / "chain.bvh"])


def test_copies_mirrored_and_at_other_speeds(clips, tmp_path):
    recipe = Recipe(mirrored=True, speeds=(0.5,))
    built = build(tmp_path / "library", [clips / "reach.bvh"], recipe=recipe)
    assert built.added == ["reach", "reach~mirrored", "reach~x0.5"]
    library, reach = Library.open(tmp_path / "library"), read(clips / "reach.bvh")
    kept = library.motion("reach~mirrored")
    np.testing.assert_allclose(joint_positions(kept), joint_positions(mirror(reach)), atol=1e-6)
    slow = library.motion("reach~x0.5")
    assert (len(slow), slow.fps) == (2 * len(reach) - 1, reach.fps)
    np.testing.assert_allclose(joint_positions(slow[::2]), joint_positions(reach), atol=1e-6)


def test_copies_can_be_added_later(library, clips):
    built = build(library.folder, [clips / "reach.bvh"], recipe=Recipe(mirrored=True))
    assert (built.added, built.kept) == (["reach~mirrored"], 1)


@pytest.mark.parametrize("speed", [0.0, 1.0, 20.0])
def test_speeds_are_within_reason(speed):
    with pytest.raises(InvalidValueError, match=r"a copy's speed must be 0\.1 to 10"):
        Recipe(speeds=(speed,))


def test_other_bodies_are_carried_over_by_roles(library, tmp_path):
    """A body with fewer joints and other names faces, steps and reaches the same way."""
    names = {"left_hand": "LeftHand", "right_hand": "RightHand"}
    other = moving(person(names, leave_out=("left_toes", "left_toes_end")), frames=30, size=0.4)
    write(other, tmp_path / "other.bvh")
    assert build(library.folder, [tmp_path / "other.bvh"]).added == ["other"]
    carried = library.canonical_motion("other")
    for role in ("left_shin", "left_foot", "right_forearm", "right_hand"):
        ours, theirs = bone_directions(other, role), bone_directions(carried, role)
        assert np.degrees(np.arccos(np.clip(np.sum(ours * theirs, axis=-1), -1, 1))).max() < 1.0


def bone_directions(motion: Motion, role: str) -> np.ndarray:
    """The direction of the bone that ends at the role's joint, per frame."""
    positions = joint_positions(motion)
    joint = motion.skeleton.index(role)
    bone = positions[:, joint] - positions[:, motion.skeleton.parents[joint]]
    return bone / np.linalg.norm(bone, axis=-1, keepdims=True)


def test_folders_that_are_no_library(tmp_path, clips):
    with pytest.raises(FileAccessError, match="is not a motion library"):
        Library.open(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileAccessError, match="is not empty and not a motion library"):
        build(tmp_path, [clips])


def test_a_performance_by_a_library_knows_whose_each_clip_is(
    motions: dict[str, Motion], tmp_path: Path
) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    tall = retarget(motions["walk_slow"], motions["walk_slow"].skeleton.scaled(1.1))
    write(motions["walk_fast"], folder / "short.bvh")
    write(tall, folder / "tall.bvh")
    build(tmp_path / "library", [folder])
    examples = examples_of(open_prior(tmp_path / "library"))
    tallest = np.abs(examples.bodies).sum(axis=(1, 2)).argmax()
    assert len(examples.bodies) == 2
    assert np.all(np.diff(examples.whose == tallest, prepend=False).nonzero()[0] == [len(examples) // 2])
