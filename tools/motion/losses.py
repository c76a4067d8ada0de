"""What the network is trained for, and how its answers are measured."""

from __future__ import annotations

import math

import torch
from kinematics import FEET, PLACED, angle, inverse, local_turns, logarithm, places, times
from tasks import MOVES, RATE, STANDS, Batch, answered
from torch import Tensor

from poise.priors.motion.layout import POINTS, TURNING

FEET_AT = [POINTS.index(name) for side in FEET for name in side]
NAMES = ("place", "turn", "local", "speed", "slide", "energy", "spread", "contacts")
WEIGHTS = (10.0, 2.0, 2.0, 20.0, 5.0, 0.05, 0.02, 0.05)
_SOFT = 1e-6  # square metres: errors below a millimetre count as squares
_SHIFT, _TURNS = 3, 3 * len(TURNING)


def _size(v: Tensor) -> Tensor:
    return (v.square().sum(-1) + _SOFT).sqrt()


def loss_of(batch: Batch, output: Tensor) -> tuple[Tensor, Tensor]:
    """The loss, and its parts."""
    root, world = answered(batch, output)
    points, true = places(root, world, batch.levers), places(batch.root, batch.world, batch.levers)
    local, true_local = local_turns(world), local_turns(batch.world)
    weight = batch.asked * batch.gap.float() ** -0.8
    weight = weight / weight.sum()
    mean = lambda values: (weight * values).sum()  # noqa: E731

    step, true_step = points - points.roll(1, 1), true - true.roll(1, 1)
    linked = weight * batch.pair
    speed = (linked * _size(step - true_step).mean(-1)).sum()
    moved = RATE * _size(true_step[:, :, FEET_AT])
    stands = ((MOVES - moved) / (MOVES - STANDS)).clamp(0, 1)
    slide = (linked * (stands * RATE * _size(step[:, :, FEET_AT])).mean(-1)).sum()
    triple = linked * batch.pair.roll(-1, 1)
    bend, true_bend = ((s.roll(-1, 1) - s).norm(dim=-1) for s in (step, true_step))
    energy = lambda b: ((triple[..., None] * b).sum(1) / triple.sum(1)[:, None].clamp_min(1e-9) + 1e-3).log()  # noqa: E731
    energies = (energy(bend) - energy(true_bend)).abs().mean()

    contact, spreads = _apart(output)
    label = (stands.unflatten(-1, (2, 2)).amax(-1) > 0.5).float()
    said = torch.nn.functional.binary_cross_entropy_with_logits(contact, label, reduction="none")
    with torch.no_grad():
        turn = logarithm(times(inverse(local), true_local)).square().mean(-1)
        away = (points - true).square().mean(-1)
        off = (root - batch.root).square()
    unlikely = sum(
        factor * (0.5 * square * (-2 * log).exp() + log).mean(-1)
        for factor, square, log in zip((1, 3, 3), (off, turn, away), spreads, strict=True)
    )
    parts = torch.stack(
        [mean(_size(points - true).mean(-1)), mean(angle(world, batch.world).mean(-1)),
         mean(angle(local, true_local).mean(-1)), speed, 0.1 * slide, energies, mean(unlikely), mean(said.mean(-1))]
    )  # fmt: skip
    return (parts * parts.new_tensor(WEIGHTS)).sum(), parts.detach()


def _apart(output: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The contacts' log odds, and log deviations of the root, of rotations and of points."""
    _, contact, *spreads = output.split([_SHIFT + _TURNS, 2, 3, len(TURNING), len(POINTS)], dim=-1)
    return contact, tuple(spread.clamp(-8.0, 1.5) for spread in spreads)


def measured(batch: Batch, output: Tensor) -> dict[str, tuple[float, float]]:
    """Sums of errors over the asked frames, of the base and of the answer: by name, (base, answer)."""
    found = {}
    asked = batch.asked
    true = places(batch.root, batch.world, batch.levers)
    true_local = local_turns(batch.world)
    true_step = RATE * (true - true.roll(1, 1))
    stands = (true_step[:, :, FEET_AT[::2]].norm(dim=-1) < STANDS + 0.1) & (asked & batch.pair)[..., None]
    inner = (asked & batch.pair & batch.pair.roll(-1, 1))[..., None]
    bends = []
    for root, world in ((batch.base_root, batch.base), answered(batch, output), (batch.root, batch.world)):
        points = places(root, world, batch.levers)
        bends.append(((points.roll(-1, 1) + points.roll(1, 1) - 2 * points).norm(dim=-1) * inner).sum())
        turn = logarithm(times(inverse(local_turns(world)), true_local)).norm(dim=-1)[:, :, 1:]
        step = RATE * (points - points.roll(1, 1))[:, :, FEET_AT[::2]]
        for name, value in (
            ("cm", 100 * ((points - true)[:, :, list(PLACED)].norm(dim=-1).mean(-1) * asked).sum()),
            ("deg", math.degrees(1.0) * (turn.mean(-1) * asked).sum()),
            ("slide", 100 * (step[..., ::2].norm(dim=-1) * stands).sum()),
        ):
            found.setdefault(name, []).append(float(value))
    _, spreads = _apart(output)
    root, world = answered(batch, output)
    near = (places(root, world, batch.levers) - true).square().sum(-1) < 7.815 * (2 * spreads[2]).exp()
    turn = logarithm(times(inverse(local_turns(world)), true_local)).square().sum(-1)
    found["inside"] = [float((near.float().mean(-1) * asked).sum())]
    found["turns inside"] = [float(((turn < 7.815 * (2 * spreads[1]).exp()).float().mean(-1) * asked).sum())]
    found["bend"] = [float(b) for b in bends]
    found["frames"], found["standing"] = [float(asked.sum())], [float(stands.sum())]
    return found
