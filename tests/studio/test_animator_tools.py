"""What an animator does without handles: joints turned, poses pasted and kept, keys moved, ranges and contacts."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from poise.errors import PoiseError
from poise.formats import write
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_slide
from poise.motion.motion import Motion
from poise.motion.world import headings, joint_positions
from poise.performer import act
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Pose
from poise.studio import messages as said
from poise.studio.layers import changed_frames
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from poise.studio.timeline_script import path_of, turn_path_of
from running_studio import Heard, kept

TURN = tuple(rotations.quaternion_from_expmap(np.array([0.0, 0.0, 0.4])).tolist())
EASE = 6


@pytest.fixture
def walk() -> Motion:
    return act("walk", seconds=3.0, fps=30)


@pytest.fixture
def recorded(session: Session, walk: Motion) -> Session:
    put_on_timeline(session, walk, "walk.bvh")
    assert session.motion is not None
    return session


def turn(
    session: Session, *joints: str, ease: int | None = None, last: bool = True
) -> list[said.ServerMessage]:
    return session.answer(
        said.TurnJoints(seq=session.seq + 1, joints=list(joints), turn=TURN, last=last, ease=ease)
    )


def take(session: Session, **how: object) -> list[said.ServerMessage]:
    return session.answer(said.TakePose(seq=session.seq + 1, last=True, **how))  # type: ignore[arg-type]


def motion_of(session: Session) -> Motion:
    assert session.motion is not None
    return session.motion


def place(session: Session, handle: str) -> np.ndarray:
    return np.array(session.state.handle(handle).position)


def rest_of(pose: Pose, joint: str) -> np.ndarray:
    return np.delete(pose.rotations, pose.skeleton.index(joint), axis=0)


def held(session: Session, message: said.ClientMessage) -> None:
    """Says something that is done in the background, and waits for it."""
    heard = Heard(session)
    session.answer(message)
    heard.wait_for(said.Progress, lambda step: step.share == 1.0)


def test_a_joint_turns_without_a_handle_and_the_rest_of_the_pose_stays(session: Session) -> None:
    before = session.state.pose
    turn(session, "left_hand", last=False)
    turn(session, "left_hand")
    after, joint = session.state.pose, before.skeleton.index("left_hand")
    np.testing.assert_array_equal(rest_of(after, "left_hand"), rest_of(before, "left_hand"))
    _, was = world_transforms(before.skeleton, before.root_position, before.rotations)
    _, now = world_transforms(after.skeleton, after.root_position, after.rotations)
    wanted = rotations.matrix_from_quaternion(np.array(TURN)) @ was[joint]
    np.testing.assert_allclose(now[joint], wanted, atol=1e-12)
    assert session.state.handles == ()
    assert session.history.undos == 1
    session.answer(said.Undo())
    np.testing.assert_array_equal(session.state.pose.rotations, before.rotations)


def test_the_end_of_a_bone_does_not_turn(session: Session) -> None:
    skeleton = session.state.pose.skeleton
    end = skeleton.names[int(np.flatnonzero(skeleton.is_end_site)[0])]
    with pytest.raises(PoiseError, match="use its parent"):
        turn(session, end)


def test_a_turn_over_a_recording_is_a_key_that_fades_and_moves_and_goes(
    recorded: Session, walk: Motion
) -> None:
    recorded.answer(said.SetFrame(frame=40))
    turn(recorded, "head", ease=EASE)
    assert [key.frame for key in recorded.state.timeline.poses] == [40]
    assert changed_frames(walk, motion_of(recorded)) == (40 - EASE, 40 + EASE + 1)
    body = said.KeyPlace(handle=None, frame=40)
    recorded.answer(said.EaseKeys(keys=[body], ease=3))
    assert changed_frames(walk, motion_of(recorded)) == (37, 44)
    recorded.answer(said.MoveKeys(keys=[body], by=20))
    assert changed_frames(walk, motion_of(recorded)) == (57, 64)
    recorded.answer(said.RemoveKeys(keys=[said.KeyPlace(handle=None, frame=60)]))
    assert changed_frames(walk, motion_of(recorded)) == (0, 0)
    for _ in range(3):
        recorded.answer(said.Undo())
    assert changed_frames(walk, motion_of(recorded)) == (40 - EASE, 40 + EASE + 1)


def test_keys_that_are_not_there_or_leave_the_timeline_are_refused(recorded: Session) -> None:
    turn(recorded, "head", ease=EASE)
    here = said.KeyPlace(handle=None, frame=0)
    for message in (
        said.MoveKeys(keys=[here], by=-1),
        said.MoveKeys(keys=[said.KeyPlace(handle=None, frame=5)], by=1),
        said.RemoveKeys(keys=[said.KeyPlace(handle="hand", frame=0)]),
    ):
        with pytest.raises(PoiseError, match=r"within frames|has no key"):
            recorded.answer(message)


def test_poses_alone_make_a_motion_from_one_to_the_next(session: Session) -> None:
    start = session.state.pose
    session.answer(said.SetFrame(frame=10))
    turn(session, "left_upper_arm", ease=EASE)
    session.answer(said.SetFrame(frame=50))
    turn(session, "left_upper_arm", ease=EASE)
    session.answer(said.SetFrame(frame=30))
    arm = start.skeleton.index("left_upper_arm")
    angles = rotations.geodesic_distance(motion_of(session).rotations[:, arm], start.rotations[arm])
    np.testing.assert_allclose(angles[[10, 50]], [0.4, 0.8], atol=1e-3)
    assert np.abs(np.diff(angles[10:51])).max() < 0.15  # as people move, and without a jump


def test_a_turn_over_keys_stays_when_they_are_solved_again(session: Session) -> None:
    session.answer(said.SetTimeline(fps=12.0, frames=16))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="right_hand")))
    for frame in (0, 10):
        session.answer(said.PutKey(key=said.Key(handle="hand", frame=frame)))
    session.answer(said.SetFrame(frame=5))
    turn(session, "head", ease=2)
    heard = Heard(session)
    session.answer(said.PutKey(key=said.Key(handle="hand", frame=14)))
    heard.wait_for(said.MotionRange, lambda message: message.fine)
    layers = session.state.layers
    assert layers is not None
    head = layers.base.skeleton.index("head")
    gap = rotations.geodesic_distance(layers.motion.rotations[:, head], layers.base.rotations[:, head])
    assert gap[5] == pytest.approx(0.4, abs=1e-6)
    assert gap[8:].max() < 1e-9


def test_a_copied_pose_is_pasted_where_the_body_is_and_mirrored(recorded: Session, walk: Motion) -> None:
    with pytest.raises(PoiseError, match="copy one first"):
        take(recorded)
    recorded.answer(said.CopyPose())
    recorded.answer(said.SetFrame(frame=50))
    take(recorded, ease=EASE)
    pasted = motion_of(recorded)[50]
    np.testing.assert_allclose(pasted.rotations[1:], walk.rotations[0, 1:], atol=1e-9)
    np.testing.assert_allclose(pasted.root_position[[0, 2]], walk.root_positions[50, [0, 2]], atol=1e-9)
    assert headings(motion_of(recorded)[50:51])[0] == pytest.approx(headings(walk[50:51])[0], abs=1e-6)
    recorded.answer(said.Undo())
    take(recorded, mirrored=True, ease=EASE)
    places = joint_positions(motion_of(recorded))[50] - motion_of(recorded).root_positions[50]
    origin = joint_positions(walk)[0] - walk.root_positions[0]
    left, right = (walk.skeleton.index(f"{side}_hand") for side in ("left", "right"))
    assert places[left, 1] == pytest.approx(origin[right, 1], abs=0.02)


def test_some_joints_of_a_pose_are_taken_and_a_share_of_the_way(session: Session) -> None:
    start = session.state.pose
    session.answer(said.CopyPose())
    turn(session, "left_upper_arm", "right_upper_arm")
    left, right = (start.skeleton.index(f"{side}_upper_arm") for side in ("left", "right"))
    for share in (0.75, 0.5):  # the second time instead of the first, not on top of it
        take(session, joints=["left_upper_arm"], share=share)
        angles = rotations.geodesic_distance(session.state.pose.rotations, start.rotations)
        assert angles[left] == pytest.approx(0.4 * (1.0 - share), abs=1e-6)
        assert angles[right] == pytest.approx(0.4, abs=1e-6)


def test_the_library_is_kept_for_all_sessions_and_goes_out_and_comes_back(
    session: Session, tmp_path: Path
) -> None:
    turn(session, "left_upper_arm")
    raised = session.state.pose
    (poses,) = session.answer(said.KeepPose(name="arm up"))
    assert isinstance(poses, said.KeptPoses)
    assert [kept.name for kept in poses.poses] == ["arm up"]
    session.answer(said.Undo())
    take(session, pose=poses.poses[0].id)
    np.testing.assert_allclose(session.state.pose.rotations, raised.rotations, atol=1e-9)
    (file,) = session.answer(said.ExportPoses())
    assert isinstance(file, said.FileReady)
    out = tmp_path / "mine.poses"
    out.write_bytes(session.uploads.find(file.address.split("/")[1]).path.read_bytes())
    (left,) = session.answer(said.DropPose(pose=poses.poses[0].id))
    assert isinstance(left, said.KeptPoses)
    assert left.poses == []
    upload = session.uploads.keep(out, owner=session.token)
    (back,) = session.answer(said.OpenPoses(upload=upload.id))
    assert back == poses


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"poses": 3}',
        b'{"poses":[{"id":"a","name":"a","joints":["a"],"root":[0,0,0],"turns":[]}]}',
    ],
)
def test_what_is_not_a_file_of_poses_is_refused(session: Session, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bad.poses"
    path.write_bytes(text)
    upload = session.uploads.keep(path, owner=session.token)
    with pytest.raises(PoiseError, match="poses"):
        session.answer(said.OpenPoses(upload=upload.id))


def test_a_range_is_reversed_and_all_else_stays(recorded: Session, walk: Motion) -> None:
    turn(recorded, "head", ease=EASE)
    recorded.answer(said.EditRange(first=30, last=60, edit="reverse", ease=4))
    after = motion_of(recorded)
    np.testing.assert_array_equal(after.rotations[10:30], walk.rotations[10:30])
    np.testing.assert_array_equal(after.rotations[61:], walk.rotations[61:])
    gap = rotations.geodesic_distance(after.rotations[40], walk.rotations[50])
    assert gap.max() < 1e-7
    assert [key.frame for key in recorded.state.timeline.poses] == [0]


def test_a_mirrored_range_swaps_the_sides(recorded: Session, walk: Motion) -> None:
    recorded.answer(said.EditRange(first=0, last=len(walk) - 1, edit="mirror"))
    feet = joint_positions(motion_of(recorded))[
        :, [walk.skeleton.index(f"{side}_foot") for side in ("left", "right")], 1
    ]
    was = joint_positions(walk)[:, [walk.skeleton.index(f"{side}_foot") for side in ("right", "left")], 1]
    np.testing.assert_allclose(feet, was, atol=0.02)
    recorded.answer(said.Undo())
    assert changed_frames(walk, motion_of(recorded)) == (0, 0)


def test_a_cycle_ends_as_it_begins(recorded: Session, walk: Motion) -> None:
    recorded.answer(said.EditRange(first=10, last=50, edit="cycle"))
    after = motion_of(recorded)
    np.testing.assert_allclose(after.rotations[50, 1:], walk.rotations[10, 1:], atol=1e-9)
    np.testing.assert_array_equal(after.rotations[10], walk.rotations[10])
    with pytest.raises(PoiseError, match="a range lies within"):
        recorded.answer(said.EditRange(first=10, last=500, edit="cycle"))


def test_a_locked_foot_does_not_slide_and_unlocking_brings_the_recording_back(
    session: Session, walk: Motion
) -> None:
    drift = np.linspace(0.0, 0.5, len(walk))[:, None] * np.array([1.0, 0.0, 0.0])
    sliding = walk.with_frames(walk.root_positions + drift, walk.rotations)
    put_on_timeline(session, sliding, "slides.bvh")
    (found,) = session.answer(said.AskContacts())
    assert isinstance(found, said.ContactsFound)
    steps = [each for each in found.contacts if each.part == "left_foot" and each.last - each.first > 10]
    step = steps[1]
    before = slide(motion_of(session), step)
    held(session, said.LockContact(part=step.part, first=step.first, last=step.last, ease=EASE))
    assert before > 0.1
    assert slide(motion_of(session), step) < 0.25 * before
    pins = list(session.state.timeline.pins)
    assert pins
    for pin in pins:
        held(session, said.RemovePin(handle=pin.handle, first=pin.first))
    assert changed_frames(sliding, motion_of(session)) == (0, 0)


def slide(motion: Motion, step: said.Contact) -> float:
    """How fast a foot slides over a contact, in metres a second."""
    points = foot_contacts(motion)
    return float(np.mean(foot_slide(motion, points)[step.first + 1 : step.last, 0]))


def test_a_hand_that_stays_while_the_body_moves_is_a_contact(session: Session) -> None:
    still = act("reach", seconds=1.0, fps=30)[:1]
    frames = 60
    sway = np.outer(0.3 * np.sin(np.linspace(0.0, 6.0, frames)), [1.0, 0.0, 0.0])
    put_on_timeline(
        session, still.with_frames(still.root_positions + sway, np.repeat(still.rotations, frames, axis=0))
    )
    assert contacts(session, "left_hand") == []
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    held(session, said.PutPin(pin=said.Pin(handle="hand", first=10, last=50, ease=2)))
    (hold,) = contacts(session, "left_hand")
    assert abs(hold.first - 10) <= 3
    assert abs(hold.last - 50) <= 3


def contacts(session: Session, part: str) -> list[said.Contact]:
    (found,) = session.answer(said.AskContacts())
    assert isinstance(found, said.ContactsFound)
    return [each for each in found.contacts if each.part == part]


def test_handles_that_are_selected_together_move_together(session: Session) -> None:
    for side in ("left", "right"):
        session.answer(said.PutHandle(handle=said.SceneHandle(id=side, joint=f"{side}_hand")))
    starts = {side: np.array(session.state.handle(side).position) for side in ("left", "right")}
    goal = tuple((starts["left"] + np.array([0.0, 0.1, 0.0])).tolist())
    session.answer(said.Drag(seq=1, handle="left", position=goal, along=["right"]))
    session.answer(said.Drag(seq=2, handle="left", position=goal, along=["right"], last=True))
    for side, start in starts.items():
        np.testing.assert_allclose(
            session.state.handle(side).position, start + np.array([0.0, 0.1, 0.0]), atol=1e-9
        )
    assert session.history.undos == 3


def test_a_hand_that_is_glued_to_a_prop_goes_along_and_all_is_saved(session: Session, tmp_path: Path) -> None:
    box = said.Prop(id="box", kind="box", position=(0.0, 0.0, 0.4), size=(0.4, 0.9, 0.4))
    session.answer(said.PutProp(seq=1, prop=box, last=True))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand", glued="box")))
    start = np.array(session.state.handle("hand").position)
    quarter = tuple(rotations.quaternion_from_expmap(np.array([0.0, 0.1, 0.0])).tolist())
    there = said.Prop(id="box", kind="box", position=(0.0, 0.1, 0.45), rotation=quarter, size=(0.4, 0.9, 0.4))
    session.answer(said.PutProp(seq=2, prop=there))
    session.answer(said.PutProp(seq=3, prop=there, last=True))
    wanted = rotations.rotate(np.array(quarter), start - [0.0, 0.0, 0.4]) + np.array([0.0, 0.1, 0.45])
    np.testing.assert_allclose(place(session, "hand"), wanted, atol=1e-9)
    hand = joint_positions(_motion(session.state.pose))[0, session.state.pose.skeleton.index("left_hand")]
    np.testing.assert_allclose(hand, wanted, atol=5e-3)
    path = tmp_path / "kept.scene"
    session.files.write(session.state, path)
    again = session.files.opened(path, session.state)
    assert again.props == session.state.props
    assert again.handle("hand").glued == "box"
    session.answer(said.RemoveProp(id="box"))
    assert session.state.handle("hand").glued is None
    session.answer(said.Undo())
    session.answer(said.Undo())
    np.testing.assert_allclose(place(session, "hand"), start, atol=1e-9)


def test_a_prop_that_is_moved_over_a_recording_keys_what_is_glued_to_it(recorded: Session) -> None:
    before = motion_of(recorded)
    recorded.answer(said.SetFrame(frame=40))
    box = said.Prop(id="box", kind="box", position=(0.0, 0.0, 0.4), size=(0.4, 0.9, 0.4))
    recorded.answer(said.PutProp(seq=1, prop=box, last=True))
    for side in ("left", "right"):
        recorded.answer(said.PutHandle(handle=said.SceneHandle(id=side, joint=f"{side}_hand", glued="box")))
    undos, starts = recorded.history.undos, [place(recorded, side) for side in ("left", "right")]
    there = said.Prop(id="box", kind="box", position=(0.0, 0.1, 0.4), size=(0.4, 0.9, 0.4))
    recorded.answer(said.PutProp(seq=2, prop=there, gesture=7))
    recorded.answer(said.PutProp(seq=3, prop=there, last=True, ease=EASE, gesture=7))
    after = motion_of(recorded)
    assert [(key.handles, key.frame) for key in recorded.state.timeline.poses] == [(["left", "right"], 40)]
    assert changed_frames(before, after) == (40 - EASE, 40 + EASE + 1)
    hands = [after.skeleton.index(f"{side}_hand") for side in ("left", "right")]
    np.testing.assert_allclose(joint_positions(after)[40, hands], np.add(starts, [0, 0.1, 0]), atol=5e-3)
    assert recorded.history.undos == undos + 1
    recorded.answer(said.Undo())
    assert recorded.state.timeline.poses == []
    np.testing.assert_array_equal(motion_of(recorded).rotations, before.rotations)


def test_what_is_made_dragged_and_keyed_in_one_gesture_is_one_step_of_undo(recorded: Session) -> None:
    before, undos = motion_of(recorded), recorded.history.undos
    recorded.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand"), gesture=5))
    x, y, z = place(recorded, "hand").tolist()
    recorded.answer(said.Drag(seq=1, handle="hand", position=(x, y + 0.1, z), last=True, gesture=5))
    key = said.Key(handle="hand", frame=0, position=(x, y + 0.1, z))
    recorded.answer(said.PutKey(key=key, gesture=5))
    assert recorded.history.undos == undos + 1
    recorded.answer(said.PutKey(key=key, gesture=6))
    assert recorded.history.undos == undos + 2
    recorded.answer(said.Undo())
    recorded.answer(said.Undo())
    assert recorded.state.handles == ()
    np.testing.assert_array_equal(motion_of(recorded).rotations, before.rotations)
    recorded.answer(said.Redo())
    assert [key.frame for key in recorded.state.timeline.keys] == [0]


def test_a_key_has_a_tangent_of_its_own_or_a_flat_one(session: Session) -> None:
    session.answer(said.SetTimeline(fps=10.0, frames=21))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    x, y, z = place(session, "hand").tolist()
    for frame, up in ((0, 0.0), (10, 0.1), (20, 0.2)):
        key = said.Key(handle="hand", frame=frame, position=(x, y + up, z))
        session.answer(said.PutKey(key=key))

    def pace() -> float:
        """Metres a second about the key in the middle."""
        path = path_of(session.state, "hand").at(np.array([0.99, 1.01]))
        return float((path[1, 1] - path[0, 1]) / 0.02)

    assert pace() == pytest.approx(0.1, abs=1e-3)
    places = [said.KeyPlace(handle="hand", frame=10)]
    session.answer(said.EaseKeys(keys=places, tangents="flat"))
    assert pace() == pytest.approx(0.0, abs=1e-2)
    middle = session.state.timeline.keys[1]
    session.answer(said.DragKey(seq=9, key=msgspec.structs.replace(middle, tangent=(0, 0.4, 0)), last=True))
    assert pace() == pytest.approx(0.4, abs=1e-2)
    session.answer(said.EaseKeys(keys=places, tangents="chosen"))
    assert session.state.timeline.keys[1].tangent is None


def test_a_turned_key_has_a_spin_of_its_own_or_a_flat_one(session: Session) -> None:
    session.answer(said.SetTimeline(fps=10.0, frames=21))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    for frame, angle in ((0, 0.0), (10, 0.2), (20, 0.4)):
        turn = (float(np.cos(angle / 2)), 0.0, float(np.sin(angle / 2)), 0.0)
        session.answer(said.PutKey(key=said.Key(handle="hand", frame=frame, rotation=turn)))

    def pace() -> float:
        """Radians a second about the vertical at the key in the middle."""
        path = turn_path_of(session.state, "hand")
        assert path is not None
        before, after = path.at(np.array([0.99, 1.01]))
        return float(
            rotations.expmap_from_quaternion(rotations.multiply(after, rotations.conjugate(before)))[1] / 0.02
        )

    assert pace() == pytest.approx(0.2, abs=1e-3)
    places = [said.KeyPlace(handle="hand", frame=10)]
    session.answer(said.EaseKeys(keys=places, tangents="flat"))
    assert pace() == pytest.approx(0.0, abs=1e-2)
    middle = session.state.timeline.keys[1]
    session.answer(said.DragKey(seq=9, key=msgspec.structs.replace(middle, spin=(0, 0.6, 0)), last=True))
    assert pace() == pytest.approx(0.6, abs=1e-2)
    session.answer(said.EaseKeys(keys=places, tangents="chosen"))
    assert session.state.timeline.keys[1].spin is None


def _motion(pose: Pose) -> Motion:
    return Motion(pose.skeleton, 30.0, pose.root_position[None], pose.rotations[None])


def test_the_file_of_a_prop_is_part_of_the_scene(session: Session, tmp_path: Path) -> None:
    picture = tmp_path / "pose.png"
    picture.write_bytes(b"\x89PNG nothing")
    upload = session.uploads.keep(picture, owner=session.token).id
    prop = said.Prop(id="p", kind="picture", position=(0.0, 0.0, -1.0), size=(1.0, 2.0, 0.01), upload=upload)
    session.answer(said.PutProp(seq=1, prop=prop, last=True))
    path = tmp_path / "kept.scene"
    session.files.write(session.state, path)
    (again,) = session.files.opened(path, session.state).props
    assert again.upload is not None
    assert session.uploads.find(again.upload, owner=session.token).path.read_bytes() == b"\x89PNG nothing"
    wrong = said.Prop(id="m", kind="mesh", position=(0.0, 0.0, 0.0), size=(1.0, 1.0, 1.0), upload=upload)
    with pytest.raises(PoiseError, match="glb"):
        session.answer(said.PutProp(seq=2, prop=wrong, last=True))
    with pytest.raises(PoiseError, match="prop"):
        session.answer(said.RemoveProp(id="nothing"))


def test_a_clip_of_another_skeleton_comes_onto_the_body_that_is_shown(
    session: Session, tmp_path: Path
) -> None:
    clip = act("walk", seconds=1.0, fps=20)
    path = tmp_path / "other.bvh"
    path.write_text(write(clip, tmp_path / "walk.bvh").read_text().replace("ROOT Hips", "ROOT Middle"))
    body = session.state.pose.skeleton
    heard = Heard(session)
    session.answer(said.OpenClip(upload=kept(session, path), onto_body=True))
    heard.wait_for(said.MotionRange)
    assert motion_of(session).skeleton is body
    assert len(motion_of(session)) == len(clip)
    way = motion_of(session).root_positions[-1] - motion_of(session).root_positions[0]
    assert np.linalg.norm(way) > 0.5
