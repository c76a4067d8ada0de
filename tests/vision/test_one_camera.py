"""One camera with nineteen markers: labels told by what the library expects in the picture, and poses in degrees."""

import numpy as np
import pytest

from poise import performer
from poise.apps.camera_takes import MORE, before_cameras, simulator_of
from poise.capture.cameras import NOISE, CameraPerformance
from poise.capture.performance import Performance
from poise.geometry import rotations
from poise.priors.local.prior import LocalPrior
from poise.vision.blobs import Background
from poise.vision.label_swaps import PROOF, STRANGE, Expected, LabelSwaps
from poise.vision.simulator import front_rig
from tests.vision.test_labels import _Blobs, blobs_of

pytest.importorskip("cv2")
CAMERA = front_rig(count=1).cameras[0]
HAND, WRIST = 8, 9  # five centimetres apart
SEEN = np.ones(10, dtype=np.bool_)


@pytest.fixture(scope="module")
def shapes() -> np.ndarray:
    """Poses of ten markers that move together: a trunk that leans, an arm that swings, and its hand and wrist."""
    rng = np.random.default_rng(0)
    rest = rng.uniform((-0.4, 0.2, -0.1), (0.4, 1.7, 0.1), (10, 3))
    rest[WRIST] = rest[HAND] + (0.05, 0.0, 0.0)
    ways = 0.15 * rng.standard_normal((3, 10, 3))
    ways[:, WRIST] = ways[:, HAND]
    return rest + np.einsum("pw,wmc->pmc", rng.standard_normal((200, 3)), ways)


@pytest.fixture(scope="module")
def pose(shapes: np.ndarray) -> np.ndarray:
    """Another pose of the same kind, elsewhere."""
    return 0.5 * (shapes[3] + shapes[8]) + (0.2, 0.0, -0.3)


def across(places: np.ndarray) -> np.ndarray:
    rays = places - CAMERA.pinhole.centre
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    return np.eye(3) - rays[:, :, None] * rays[:, None]


def test_the_picture_tells_a_hand_from_a_wrist(shapes, pose):
    others = SEEN.copy()
    others[[HAND, WRIST]] = False
    right = Expected.near(shapes, pose, across(pose), others)
    assert right.exchange_gain(pose, across(pose), others, [HAND, WRIST]) < -PROOF
    swapped = pose[[*range(8), WRIST, HAND]]
    assert right.exchange_gain(swapped, across(swapped), others, [HAND, WRIST]) > PROOF


def test_a_place_is_expected_where_the_others_have_it(shapes, pose):
    known = across(pose)
    others = SEEN.copy()
    others[2] = False
    expected = Expected.near(shapes, pose, known, others).given(pose, known, others)
    assert np.linalg.norm(known[2] @ (expected.mean[2] - pose[2])) < 0.02
    moved = pose.copy()
    moved[2] += known[2] @ np.array([0.2, 0.1, 0.0])
    surprises = Expected.near(shapes, moved, known, SEEN).surprises(moved, known, SEEN)
    assert np.argmax(surprises) == 2
    assert surprises[2] > STRANGE


def test_what_took_another_s_blob_is_found_but_not_what_is_only_unusual(shapes, pose):
    swaps, known = LabelSwaps(shapes, alone=True), across(pose)
    assert swaps.strangers(pose, known) == []
    taken, hidden = pose.copy(), known.copy()
    taken[2], hidden[5] = pose[5], 0.0  # marker 5 is hidden, it seems, and 2 is where 5 should be
    assert swaps.strangers(taken, hidden) == [2]
    unusual = pose.copy()
    unusual[2] += known[2] @ np.array([0.0, 0.6, 0.0])  # nobody is expected up there
    assert swaps.strangers(unusual, known) == []
    assert LabelSwaps(shapes).strangers(taken, hidden) == []  # with two cameras, places tell


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("action", "most"), [("kick", 2.0), pytest.param("box", 3.0, marks=pytest.mark.slow)]
)
def test_one_camera_follows_a_performer(action, most):
    """In degrees per joint, over two seconds; labels may be wrong for some frames, and then are right again."""
    take = before_cameras(performer.act(action, fps=60, seed=12), seconds=2.0)
    sim = simulator_of(take, front_rig(count=1, size=(320, 240)), markers=MORE)
    prior = LocalPrior.learn([performer.act(action, fps=60, seed=seed) for seed in (0, 1)])
    performance = Performance(prior, sim.layout, skeleton=take.skeleton, fps=60, noise=NOISE)
    rooms = [Background.of_frames(sim.empty_room(0, 2))]
    watching = CameraPerformance(_Blobs(sim.rig, rooms, MORE, fps=60), performance)
    frames, wrong = [], []
    for number, truth in enumerate(sim.truth.points):
        seen = watching.step(blobs_of(sim.rig, truth, sim.visible(number)), number / 60)
        frames.append(seen.frame)
        off = np.linalg.norm(seen.moment.sighting.pixels[0] - sim.rig.cameras[0].project(truth), axis=-1)
        wrong.append(int(np.sum(off > 9)))
    assert all(frame is not None for frame in frames)
    _, turns = performance.space.frames_from_q(np.stack([frame.q for frame in frames]))
    moving = performance.space.moving
    angles = np.degrees(rotations.geodesic_distance(turns[:, moving], take.rotations[: len(turns), moving]))
    assert angles.mean() < most
    assert np.mean(wrong) < 0.1
