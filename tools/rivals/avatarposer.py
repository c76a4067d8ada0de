"""A rival for trackers: Jiang et al. 2022, "AvatarPoser".

Written from the paper. `avatarposer.py train FILE --data ARCHIVE` learns from the clips that the motion prior learns
from; `avatarposer.py evaluate FILE` prints its rows of `poise evaluate trackers`, which are those with head and hands.
As published: 40 frames of positions, rotations as two columns and the velocities of both, of head and hands in the
world; three layers of a transformer of width 256; one decoder for the root's rotation and one for local rotations; L1
losses of rotations and positions; the body hangs on the head's position, and the arms are adjusted to the hands by
gradient steps. Other than published: 30 frames a second, the bodies of the clips, and a rate that falls with the time
that is left. A tracker that is lost stays where it was.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import torch
from shared import (
    JOINTS,
    clips,
    compiled,
    cosine,
    in_world,
    main,
    matrices,
    orthogonal,
    points_of,
    six,
    trained,
    windows,
)
from torch import Tensor, nn

from poise.priors.motion.layout import POINTS, TURNING

FRAMES, WIDTH, LAYERS = 40, 256, 3
TRACKED = ("Head", "LeftHand", "RightHand")
TURNS_AT, POINTS_AT = [TURNING.index(name) for name in TRACKED], [POINTS.index(name) for name in TRACKED]
ARMS = [TURNING.index(side + name) for side in ("Left", "Right") for name in ("Arm", "ForeArm")]
INPUTS = 18 * len(TRACKED)
ROOT, TURN, PLACE = 0.05, 1.0, 1.0  # the paper's weights


class AvatarPoser(nn.Module):
    """From frames of three trackers to local rotations of the last one, as pairs of columns."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        decoder = lambda left: nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, left))  # noqa: E731
        self.root, self.below = decoder(6), decoder(6 * (JOINTS - 1))

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.layers(self.first(inputs))[:, -1]
        return torch.cat([self.root(x), self.below(x)], -1).unflatten(-1, (JOINTS, 6))


def seen(places: Tensor, turns: Tensor) -> Tensor:
    """The network's inputs from positions and rotations of the trackers in the world, one frame more than it sees."""
    spin = turns[:, :-1].transpose(-1, -2) @ turns[:, 1:]
    step = 30.0 * (places[:, 1:] - places[:, :-1])
    return torch.cat([part.flatten(2) for part in (six(turns[:, 1:]), six(spin), places[:, 1:], step)], -1)


def learn(weights: Path, archive: Path, seconds: float, batch: int, plain: bool) -> None:
    """Train."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    frames = clips(archive, device)
    drawn = windows(frames, batch, FRAMES + 1)
    network = AvatarPoser().to(device)

    def loss_of(levers: Tensor, turns: Tensor, roots: Tensor) -> Tensor:
        world = in_world(turns)
        points = points_of(roots, world, levers[:, None])
        found = network(seen(points[:, :, POINTS_AT], world[:, :, TURNS_AT]))
        true = six(turns[:, -1])
        own = in_world(orthogonal(found))
        reached = points_of(torch.zeros_like(roots[:, -1]), own, levers)
        place = (reached - (points[:, -1] - roots[:, -1, None])).abs().mean()
        away = (found - true).abs()
        return ROOT * away[:, 0].mean() + TURN * away[:, 1:].mean() + PLACE * place

    def take() -> tuple[Tensor, Tensor, Tensor]:
        clip, at = next(drawn)
        return frames.levers[clip], matrices(frames.turns[at]), frames.roots[at]

    loss = compiled(loss_of, plain)
    steps = trained(network, lambda: loss(*take()), seconds, cosine(4e-4, 1000))
    torch.save({"network": {k: v.half() for k, v in network.state_dict().items()}, "steps": steps}, weights)
    print(f"{weights}: {steps} steps", flush=True)


def to_hands(
    local: Tensor, head: Tensor, hands: Tensor, levers: Tensor, steps: int = 60
) -> tuple[Tensor, Tensor]:
    """The root's position, and local rotations whose arms reach the hands; the head is where it is tracked."""
    off = torch.zeros(len(ARMS), 3, requires_grad=True)
    optimiser = torch.optim.Adam([off], lr=0.03)
    with torch.no_grad():
        root = head - points_of(torch.zeros(3), in_world(local), levers)[POINTS_AT[0]]

    def bent() -> Tensor:
        angle = (off.square().sum(-1, keepdim=True) + 1e-12).sqrt()
        turn = torch.cat([(angle / 2).cos(), off / angle * (angle / 2).sin()], -1)
        parts = list(local.unbind(-3))
        for number, joint in enumerate(ARMS):
            parts[joint] = parts[joint] @ matrices(turn[number])
        return torch.stack(parts, -3)

    for _ in range(steps):
        optimiser.zero_grad()
        reached = points_of(root, in_world(bent()), levers)[POINTS_AT[1:]]
        loss = (reached - hands).square().sum()
        if loss.item() < 1e-8:
            break
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return root, bent()


def evaluate(weights: Path, split: str, stride: int) -> list[dict]:
    """Its rows of `poise evaluate trackers`."""
    from kinematics import levers_of

    from poise.evaluation import trackers
    from poise.evaluation.splits import load_split
    from poise.geometry import rotations
    from poise.priors.motion.carrying import AT, Change, Frames, carrier_on
    from poise.skeleton.skeleton import Pose

    network = AvatarPoser()
    network.load_state_dict(
        {k: v.float() for k, v in torch.load(weights, map_location="cpu")["network"].items()}
    )
    network.eval()

    def method(_fold: object) -> object:
        def on(skeleton: object, roles: object) -> object:
            carrier = carrier_on(skeleton)
            levers = torch.tensor(levers_of(carrier.fit.offsets), dtype=torch.float32)
            joints = [skeleton.index(role) for role in roles]
            past: deque[np.ndarray] = deque(maxlen=FRAMES + 1)

            def step(values: np.ndarray, wanted: bool) -> tuple[Pose, np.ndarray] | None:
                held = np.where(np.isnan(values), past[-1] if past else 0.0, values)
                past.append(held)
                if not wanted:
                    return None
                every = np.stack([past[0]] * (FRAMES + 1 - len(past)) + list(past))
                axes = rotations.matrix_from_quaternion(every[..., 3:]) @ np.swapaxes(
                    carrier.fit.turns[joints], -1, -2
                )
                places = every[..., :3] - np.einsum("thab,hb->tha", axes, carrier.fit.shifts[joints])
                with torch.no_grad():
                    inputs = seen(*(torch.tensor(part[None], dtype=torch.float32) for part in (places, axes)))
                    local = orthogonal(network(inputs)[0])
                at = torch.tensor(places[-1], dtype=torch.float32)
                root, local = to_hands(local, at[0], at[1:], levers)
                turns = np.tile(carrier.still, (1, 1, 1))
                turns[0, AT] = rotations.quaternion_from_matrix(local.numpy().astype(np.float64))
                own = rotations.matrix_from_quaternion(turns[:, 0])
                base = Frames(
                    root.numpy()[None] + own @ carrier.fit.root_shift,
                    np.tile(carrier.fit.references, (1, 1, 1)),
                )
                base.turns[:, 0] = rotations.quaternion_from_matrix(own @ carrier.fit.root_turn)
                still = rotations.conjugate(carrier.still[AT[1:]])
                bends = rotations.expmap_from_quaternion(
                    rotations.canonical(rotations.multiply(still, turns[0, AT[1:]]))
                )
                no = np.zeros((1, 3))
                found = carrier.added(base, Change(no, no, bends[None]))
                pose = Pose(skeleton, found.roots[0], found.turns[0])
                return pose, np.full(len(skeleton), np.nan)

            return step

        return on

    trackers.METHODS["avatarposer"] = method
    known = dict(trackers.TRACKED)
    trackers.TRACKED.clear()
    trackers.TRACKED["head and hands"] = known["head and hands"]
    folds = (trackers._avatarposer if split == "avatarposer" else lambda: load_split(split))()
    return trackers.evaluate_trackers(
        folds, methods=["avatarposer"], options=trackers.TrackersOptions(stride=stride)
    )


if __name__ == "__main__":
    main(__doc__, learn, evaluate)
