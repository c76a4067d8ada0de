"""Ten real clips in a real studio: one frame of each is edited, undone, redone and saved; the studio is killed.

What counts is what a page that connects gets to play. Clips are of CMU, of Bandai Namco, of two characters with their
own animation (one of them not a person, posed by a model of its own), and a take that was performed live over UDP.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

from poise.capture.matching import WITH_HEAD, marker_layout
from poise.formats import read_motion
from poise.motion.virtual_markers import virtual_markers
from poise.priors.model_file import save
from poise.priors.universal.prior import UniversalPrior
from poise.studio import messages as said
from real_data import recordings
from running_studio import PATIENCE, Page
from studio_page import Server

pytestmark = pytest.mark.slow

EASE = 10
TAKE = ("cmu", "02_01.bvh")  # whose markers are streamed
CLIPS = (
    ("cmu", "02_04.bvh"),
    ("cmu", "14_02.bvh"),
    ("cmu", "35_01.bvh"),
    ("cmu", "124_01.bvh"),
    ("bandai", "dataset-1_bow_angry_001.bvh"),
    ("bandai", "dataset-1_kick_normal_001.bvh"),
    ("bandai", "dataset-1_walk_normal_001.bvh"),
    ("characters", "three_Xbot.glb"),
    ("characters", "kh_Fox.glb"),
    ("a take", "performed live"),
)


class Played(NamedTuple):
    """What a page plays: the scene, and the joints of all frames, as they come over the socket."""

    scene: said.Scene
    world: np.ndarray

    def places(self) -> np.ndarray:
        return self.world[..., :3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("studio")
    people = folder / "people.poise"
    save(UniversalPrior(), people)
    server = Server([people], cache=folder)
    yield server
    server.kill()


@contextmanager
def connected(server: Server) -> Iterator[Page]:
    address = server.address.replace("http", "ws", 1) + "ws"
    with connect(address, max_size=None, open_timeout=PATIENCE, ping_interval=None) as wire:
        yield Page(wire)


def played(page: Page, token: str | None = None) -> tuple[str, Played]:
    """All that a page gets that connects now, and its token."""
    page.say(said.Hello(protocol=said.PROTOCOL, token=token))
    welcome = page.hear_until(said.Welcome)
    assert welcome.resumed == (token is not None)
    return welcome.token, whole(page)


def whole(page: Page) -> Played:
    """The next scene with a motion, and all its frames."""
    scene = page.hear_until(said.SceneChanged).scene
    while not scene.moving:
        scene = page.hear_until(said.SceneChanged).scene
    parts: dict[int, np.ndarray] = {}
    while sum(map(len, parts.values())) < scene.timeline.frames:
        part = page.hear_until(said.MotionRange)
        parts[part.first] = np.frombuffer(part.world, "<f4").reshape(part.frames, -1, 7)
    return Played(scene, np.concatenate([parts[first] for first in sorted(parts)]))


def uploaded(server: Server, token: str, name: str, content: bytes) -> str:
    answer = httpx.post(
        f"{server.address}upload", params={"name": name}, content=content, headers={"X-Poise-Session": token}
    )
    return str(answer.json()["upload"])


def performed(page: Page) -> None:
    """The markers of a recording over UDP, followed by the universal prior and kept as a take."""
    clip = read_motion(recordings(*TAKE)[0])
    layout = marker_layout(clip.skeleton, WITH_HEAD, samples=clip.rotations)
    markers = virtual_markers(clip, layout)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    page.say(said.Perform(model="people", stream=str(port)))
    while page.hear_until(said.Performing).step != "waiting":
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for frame in range(0, len(markers.points), max(1, round(markers.fps / 30.0))):
            places = dict(zip(markers.labels, markers.points[frame].tolist(), strict=True))
            line = json.dumps(places | {"time": frame / markers.fps})
            out.sendto(line.encode(), ("127.0.0.1", port))
            time.sleep(1.0 / 60.0)
    page.say(said.StopPerforming())


def opened(server: Server, collection: str, name: str) -> tuple[str, Played]:
    """A clip on the timeline of a new page, or a take; the page's token."""
    with connected(server) as page:
        token = page.hello().token
        if collection == "a take":
            performed(page)
        else:
            path = recordings(collection, name)[0]
            page.say(said.OpenClip(upload=uploaded(server, token, name, path.read_bytes())))
        while True:
            scene = page.hear_until(said.SceneChanged).scene
            if scene.moving and scene.timeline.clip:
                break
    with connected(server) as page:
        return played(page, token)


def edited(page: Page, frame: int, joint: str) -> None:
    """A joint dragged at a frame and keyed there, as the page does."""
    page.say(said.SetFrame(frame=frame))
    page.say(said.PutHandle(handle=said.SceneHandle(id="hand", joint=joint)))
    scene = page.hear_until(said.SceneChanged).scene
    while not scene.handles:
        scene = page.hear_until(said.SceneChanged).scene
    x, y, z = scene.handles[0].position or (0.0, 0.0, 0.0)
    goal = (x + 0.08, y + 0.08, z)
    for seq in (1, 2):
        page.say(said.Drag(seq=seq, handle="hand", position=goal, last=seq == 2))
    page.say(said.PutKey(key=said.Key(handle="hand", frame=frame, position=goal, ease=EASE)))
    while not scene.timeline.keys:
        scene = page.hear_until(said.SceneChanged).scene


def stepped(page: Page, message: said.Undo | said.Redo, *, undo: int) -> None:
    """Undo or redo until so many steps are left to undo."""
    scene = None
    while scene is None or scene.undo != undo:
        page.say(message)
        scene = page.hear_until(said.SceneChanged).scene


def saved(server: Server, page: Page) -> bytes:
    page.say(said.Export(format="scene"))
    return httpx.get(f"{server.address}{page.hear_until(said.FileReady).address}").content


def drawn_up(page: Page, frame: int) -> np.ndarray:
    """The pose that the scene's own model finds with its handle 5 cm higher."""
    page.say(said.SetFrame(frame=frame))
    scene = page.hear_until(said.SceneChanged).scene
    x, y, z = scene.handles[0].position or (0.0, 0.0, 0.0)
    page.say(said.Drag(seq=10, handle="hand", position=(x, y + 0.05, z), last=True))
    while (pose := page.hear_until(said.SolvedPose)).seq != 10:
        pass
    return np.frombuffer(pose.world, "<f4").reshape(-1, 7)[:, :3]


def same_to_a_hundredth_of_a_millimetre(one: Played, other: Played) -> None:
    assert np.abs(one.places() - other.places()).max() < 1e-5
    assert one.scene.timeline == other.scene.timeline
    assert one.scene.handles == other.scene.handles


@pytest.mark.parametrize(("collection", "name"), CLIPS, ids=[name for _, name in CLIPS])
def test_nothing_of_a_real_clip_is_lost(server: Server, collection: str, name: str) -> None:
    token, clip = opened(server, collection, name)
    frame, joint = len(clip.world) // 2, "left_hand" if name != "kh_Fox.glb" else "b_Head_05"
    with connected(server) as page:
        played(page, token)
        edited(page, frame, joint)
    with connected(server) as page:
        _, after = played(page, token)
        changed = np.flatnonzero((after.world != clip.world).any(axis=(1, 2)))
        assert frame in changed
        assert frame - EASE <= changed.min()
        assert changed.max() <= frame + EASE
        stepped(page, said.Undo(), undo=clip.scene.undo)
    with connected(server) as page:
        _, back = played(page, token)
        np.testing.assert_array_equal(back.world, clip.world)
        stepped(page, said.Redo(), undo=after.scene.undo)
    with connected(server) as page:
        _, again = played(page, token)
        np.testing.assert_array_equal(again.world, after.world)
        file = saved(server, page)
        reached = drawn_up(page, frame)
        stepped(page, said.Undo(), undo=after.scene.undo)
        time.sleep(3.0)  # what is edited is on disk within a second
    server.kill()
    server.start_again()
    with connected(server) as page:
        _, kept = played(page, token)
        same_to_a_hundredth_of_a_millimetre(kept, after)
        assert np.abs(drawn_up(page, frame) - reached).max() < 1e-5  # by the same model
    with connected(server) as page:
        new = page.hello().token
        page.say(said.OpenScene(upload=uploaded(server, new, "saved.scene", file)))
        same_to_a_hundredth_of_a_millimetre(whole(page), after)
        assert np.abs(drawn_up(page, frame) - reached).max() < 1e-5
