"""What both rivals share: the clips, matrices from their first two columns, forward kinematics, training for a time."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools" / "motion")]

from kinematics import CARRIED, CARRIERS, LEVELS  # noqa: E402
from tasks import Frames, frames_of  # noqa: E402

from poise.priors.motion.layout import TURNING  # noqa: E402
from poise.priors.universal.recordings import CHOICE, STRANGERS, read_table  # noqa: E402

JOINTS = len(TURNING)
_BEGUN = time.monotonic()


def clips(archive: Path, device: torch.device) -> Frames:
    """The frames of the performers that the motion prior learns from."""
    table = read_table(archive)
    held_out = {name for draw in STRANGERS for name in draw} | set(CHOICE)
    return frames_of(table, sorted(set(table.performers) - held_out), device)


def windows(frames: Frames, count: int, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Without end: clips and frame numbers, (count, length), drawn evenly over all frames."""
    device = frames.roots.device
    usable = torch.where(frames.count[frames.clip] >= length)[0]
    while True:
        at = usable[torch.randint(len(usable), (count,), device=device)]
        clip = frames.clip[at]
        start = torch.minimum(at, frames.begin[clip] + frames.count[clip] - length)
        yield clip, start[:, None] + torch.arange(length, device=device)


def matrices(q: Tensor) -> Tensor:
    """Rotation matrices of unit quaternions."""
    w, x, y, z = q.unbind(-1)
    rows = (
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    )  # fmt: skip
    return torch.stack(rows, -1).unflatten(-1, (3, 3))


def six(turns: Tensor) -> Tensor:
    """The first two columns of rotation matrices."""
    return torch.cat([turns[..., 0], turns[..., 1]], -1)


def orthogonal(values: Tensor) -> Tensor:
    """The rotation matrices nearest to pairs of columns (Gram and Schmidt)."""
    a = nn.functional.normalize(values[..., :3], dim=-1)
    b = values[..., 3:] - (a * values[..., 3:]).sum(-1, keepdim=True) * a
    b = nn.functional.normalize(b, dim=-1)
    return torch.stack([a, b, torch.linalg.cross(a, b)], -1)


def in_world(local: Tensor) -> Tensor:
    """World rotations of the turning joints, (..., joints, 3, 3)."""
    found: list[Tensor] = [local[..., 0, :, :]] * JOINTS
    above = [0]
    for joints, parents in LEVELS:
        for joint, parent in zip(joints, parents, strict=True):
            found[joint] = found[above[parent]] @ local[..., joint, :, :]
        above = joints
    return torch.stack(found, -3)


def points_of(root: Tensor, world: Tensor, levers: Tensor) -> Tensor:
    """World positions of the points, (..., points, 3)."""
    steps = (world[..., CARRIERS, :, :] @ levers[..., None])[..., 0]
    found = [root]
    for number, (before, _, _) in enumerate(CARRIED, start=1):
        found.append(found[before] + steps[..., number, :])
    return torch.stack(found, -2)


def trained(
    network: nn.Module, loss_of: Callable[[], Tensor], seconds: float, rate: Callable[[int, float], float]
) -> int:
    """Adam for so many seconds; `rate` is asked with the step and the share of the time. Returns the steps."""
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
    loss_of().backward()  # compiles
    optimiser.zero_grad()
    begun, step, share = time.monotonic(), 0, 0.0
    network.train()
    while share < 1.0:
        for group in optimiser.param_groups:
            group["lr"] = rate(step, share)
        loss = loss_of()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        step += 1
        if step % 500 == 0:
            print(f"{step} {loss.item():.4f} {time.monotonic() - _BEGUN:.0f} s", flush=True)
        share = (time.monotonic() - begun) / seconds
    network.eval()
    return step


def cosine(peak: float, warm: int) -> Callable[[int, float], float]:
    """Warm-up over some steps, then a cosine over the time."""
    return lambda step, share: peak * min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * share))


def compiled(function: Callable[..., Tensor], plain: bool) -> Callable[..., Tensor]:
    """The function, compiled unless it shall stay plain."""
    return function if plain else torch.compile(function)


def main(
    about: str,
    learn: Callable[[Path, Path, float, int, bool], None],
    evaluate: Callable[[Path, str, int], list[dict]],
) -> None:
    """`train` needs clips and a time; `evaluate` a split."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("what", choices=("train", "evaluate"))
    parser.add_argument("weights", type=Path, help="the file that is written, or read")
    parser.add_argument("--data", type=Path, help="train: cmu-all-30hz.npz.xz")
    parser.add_argument("--seconds", type=float, default=780.0, help="train: without compiling")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--plain", action="store_true", help="train: compile nothing")
    parser.add_argument("--split", default="strangers", help="evaluate: as for `poise evaluate`")
    parser.add_argument("--stride", type=int, default=40)
    parser.add_argument("--json", type=Path, help="evaluate: the rows as a file")
    asked = parser.parse_args()
    if asked.what == "train":
        learn(asked.weights, asked.data, asked.seconds, asked.batch, asked.plain)
        return
    rows = json.dumps(evaluate(asked.weights, asked.split, asked.stride), indent=1)
    print(rows)
    if asked.json:
        asked.json.write_text(rows, encoding="utf-8")
