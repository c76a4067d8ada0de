"""Posing tasks drawn from recordings: which handles are given, in which frame, on which body; the answer is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from body import Body, apply, columns, exponential, logarithm, times
from torch import Tensor

from poise.priors.universal import layout

MOST = 12  # largest number of handles in the finish
COARSE, REFINED = (
    0.33,
    0.22,
)  # shares of tasks with a free root, by the quality of the frame F; the rest is given
GROUPS = (
    ("UpLeg", 0), ("Leg", 1), ("Foot", 2), ("Toe", 3), ("Spine", 4), ("Neck", 5), ("Head", 6),
    ("ForeArm", 8), ("Arm", 7), ("Index", 10), ("Hand", 9), ("Thumb", 10),
)  # fmt: skip


@dataclass
class Frames:
    """Recorded frames on the device, with their sampling probabilities."""

    rotations: Tensor  # frames, 1 + moving, 3
    roots: Tensor  # frames, 3
    before: Tensor  # frames: the number of the frame before, itself at a clip's begin
    body: Tensor  # frames
    bodies: Tensor  # bodies, joints, 3
    shares: Tensor  # frames, cumulative


@dataclass
class Tasks:
    """A batch: inputs of the network, and the known answer, all in the frame F."""

    inputs: Tensor
    who: Tensor  # batch: the performer's number
    mirror: Tensor  # batch, 1, 1: whether he is seen in a mirror
    offsets: Tensor  # batch, joints, 3
    given: Tensor  # batch, 1: whether the root is given
    root: Tensor  # batch, 3, 3
    position: Tensor  # batch, 3
    maps: Tensor  # batch, moving, 3
    local: Tensor  # batch, moving, 3, 3
    places: Tensor  # batch, joints, 3
    handle_joints: Tensor  # batch, MOST
    handle_offsets: Tensor  # batch, MOST, 3
    handle_targets: Tensor  # batch, MOST, 3
    handle_mask: Tensor  # batch, MOST


class Sampler:
    """Draws tasks from frames; augments by mirroring, other bodies and limb lengths."""

    def __init__(self, frames: Frames, body: Body, names: tuple[str, ...], lengths: Tensor) -> None:
        self.frames, self.body, self.lengths = frames, body, lengths
        device = frames.roots.device

        def index(chosen: tuple[str, ...]) -> Tensor:
            return torch.tensor([names.index(name) for name in chosen], device=device)

        self.points, self.turns, self.bones = index(layout.POINTS), index(layout.TURNS), index(layout.BONES)
        self.head = names.index("Head")
        self.swap = index(tuple(_mirrored(name, names) for name in names))
        order = ("root", *layout.MOVING)
        self.swap_maps = torch.tensor([order.index(_mirrored(name, order)) for name in order], device=device)
        self.group = torch.tensor([_group(name) for name in names], device=device)
        self.legs = index(("LeftLeg", "LeftFoot", "RightLeg", "RightFoot"))
        self.presets = torch.stack([preset_mask(chosen) for chosen in PRESETS]).to(device)
        self.given_shares = torch.tensor(GIVEN_SHARES, device=device).cumsum(0) / sum(GIVEN_SHARES)
        self.free_shares = torch.tensor(FREE_SHARES, device=device).cumsum(0) / sum(FREE_SHARES)
        self.across = torch.tensor([-1.0, 1.0, 1.0], device=device)  # a mirrored place
        self.up = torch.tensor([0.0, 1.0, 0.0], device=device)
        self.pairs = torch.tensor(_pairs(), device=device)

    def draw(self, count: int) -> Tasks:
        """A batch for training."""
        device, frames = self.frames.roots.device, self.frames
        rand = lambda *shape: torch.rand(*shape, device=device)  # noqa: E731
        chosen = torch.searchsorted(frames.shares, rand(count).double()).clamp_max(len(frames.roots) - 1)
        mirror = rand(count, 1, 1) < 0.5
        offsets, scale = self._bodies(chosen, mirror)
        now = self._posed(chosen, mirror, offsets, scale)
        moving = count // 4
        earlier = self._posed(
            frames.before[chosen[:moving]], mirror[:moving], offsets[:moving], scale[:moving]
        )
        velocities = torch.zeros(count, len(self.points), 3, device=device)
        velocities[:moving] = 30.0 * (now[2][:moving, self.points] - earlier[2][:, self.points])
        kind = rand(count, 1)
        given, coarse = kind >= COARSE + REFINED, kind < COARSE
        mask = self._mask(given[:, 0], count)
        origin, axes = self._frame(now, mask, given, coarse)
        shown = Shown(
            mask=mask,
            offsets=0.06 * torch.randn_like(velocities) * (rand(count, len(self.points), 1) < 0.2),
            noise=0.01 * rand(count, 1, 1) * torch.randn_like(velocities) * (rand(count, 1, 1) < 0.2),
            turns=(rand(count, len(self.turns)) < rand(count, 1) * 0.6) & (rand(count, 1) < 0.3),
            look=rand(count, 1) < 0.15,
            floor=(rand(count, 1) < 0.5),
            velocities=velocities,
            moving=(torch.arange(count, device=device) < moving)[:, None],
        )
        return self.tasks(now, (frames.body[chosen], mirror, offsets), given, origin, axes, shown)

    def exact(self, chosen: Tensor, preset: int, *, given: bool) -> Tasks:
        """The tasks of one preset on recorded frames as they are, root given or guessed from the handles."""
        count, device = len(chosen), chosen.device
        plain = torch.zeros(count, 1, 1, dtype=torch.bool, device=device)
        offsets = self.frames.bodies[self.frames.body[chosen]]
        now = self._posed(chosen, plain, offsets, torch.ones(count, 1, device=device))
        mask = self.presets[preset].expand(count, -1)
        if given:
            origin, axes = now[0], now[1]
        else:
            origin, axes = self.guessed(now[2][:, self.points], mask)
        flags = torch.full((count, 1), given, device=device)
        performer = self.frames.body[chosen], plain, offsets
        return self.tasks(now, performer, flags, origin, axes, self._plain(mask))

    def again(self, tasks: Tasks, position: Tensor, root: Tensor) -> Tasks:
        """The tasks relative to predicted roots instead."""
        offsets, places = tasks.offsets, tasks.places
        now = (tasks.position, tasks.root, places, self.body.forward(
            tasks.position, tasks.root, tasks.local, offsets)[1], tasks.local)  # fmt: skip
        mask = tasks.inputs[:, : 7 * len(self.points)].reshape(-1, len(self.points), 7)[..., 0] > 0.5
        up = tasks.inputs[:, self.up_at : self.up_at + 3]
        performer = tasks.who, tasks.mirror, offsets
        return self.tasks(now, performer, tasks.given, position, root, self._plain(mask), up)

    up_at = sum(rows * width for name, rows, width in layout.INPUTS[:4]) + 1

    def _plain(self, mask: Tensor) -> Shown:
        count, device = len(mask), mask.device
        nothing = torch.zeros(count, len(self.points), 3, device=device)
        no = torch.zeros(count, 1, dtype=torch.bool, device=device)
        turns = torch.zeros(count, len(self.turns), dtype=torch.bool, device=device)
        return Shown(mask, nothing, nothing, turns, no, no, nothing, no)

    def tasks(
        self, now: tuple[Tensor, ...], performer: tuple[Tensor, Tensor, Tensor], given: Tensor, origin: Tensor,
        axes: Tensor, shown: Shown, up: Tensor | None = None,
    ) -> Tasks:  # fmt: skip
        """Everything relative to F, in the network's form."""
        position, root, places, turns, local = now
        who, mirror, offsets = performer
        into = axes.transpose(-1, -2)
        seen = apply(into[:, None], places - origin[:, None])
        facing = times(into[:, None], turns)
        carried = apply(facing[:, self.points], shown.offsets)
        targets = seen[:, self.points] + carried + shown.noise
        vertical = apply(into, self.up if up is None else up)
        points = (
            torch.cat([torch.ones_like(targets[..., :1]), targets, shown.offsets], -1) * shown.mask[..., None]
        )
        shown_turns = facing[:, self.turns]
        ones = torch.ones_like(shown_turns[..., 0, :1])
        turn_rows = torch.cat([ones, columns(shown_turns)], -1) * shown.turns[..., None]
        head = facing[:, self.head][..., 2]
        look = torch.cat([torch.ones_like(head[:, :1]), head], -1) * shown.look
        height = origin[:, 1:2] + 0.02 * torch.randn_like(origin[:, 1:2])
        floor = torch.cat([torch.ones_like(height), height], -1) * shown.floor
        lengths = (offsets[:, self.bones].norm(dim=-1) / self.lengths).log() / layout.LENGTH_SCALE
        drift = apply(into[:, None], shown.velocities)
        drift = drift * (shown.mask & shown.moving)[..., None]
        inputs = torch.cat(
            [points.flatten(1), turn_rows.flatten(1), look, floor, given.float(), vertical, lengths,
             drift.flatten(1), shown.moving.float()], -1,
        )  # fmt: skip
        picked = (shown.mask + 0.5 * torch.rand_like(shown.mask.float())).topk(MOST, dim=1).indices
        take = lambda values: torch.take_along_dim(values, picked[..., None], dim=1)  # noqa: E731
        return Tasks(
            inputs=inputs,
            who=who,
            mirror=mirror,
            offsets=offsets,
            given=given,
            root=times(into, root),
            position=apply(into, position - origin),
            maps=logarithm(times(self.body.references[self.body.moving].transpose(-1, -2), local)),
            local=local,
            places=seen,
            handle_joints=self.points[picked],
            handle_offsets=take(shown.offsets),
            handle_targets=take(targets),
            handle_mask=torch.take_along_dim(shown.mask, picked, dim=1).float(),
        )

    def guessed(self, places: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """A frame from the handles alone: at their mean, facing perpendicular to left and right."""
        weights = mask.float()[..., None]
        origin = (places * weights).sum(1) / weights.sum(1).clamp_min(1.0)
        both = (mask[:, self.pairs[:, 0]] & mask[:, self.pairs[:, 1]]).float()[..., None]
        left = ((places[:, self.pairs[:, 0]] - places[:, self.pairs[:, 1]]) * both).sum(1)
        return origin, about_up(torch.atan2(-left[:, 2], left[:, 0]))

    # --- private ---------------------------------------------------------------------------------------------------

    def _bodies(self, chosen: Tensor, mirror: Tensor) -> tuple[Tensor, Tensor]:
        """Bodies for frames, mirrored where the frame is: the performer's own bones, each as long as somebody's.

        Lengths that are always the performer's own name him, and with him how his joints were calibrated. Bones keep
        his directions, since his rotations make a pose only with those.
        """
        frames, count, device = self.frames, len(chosen), chosen.device
        own = frames.body[chosen]
        offsets, others = frames.bodies[own], torch.randint(len(frames.bodies), (count,), device=device)
        size = lambda bodies: bodies.norm(dim=-1, keepdim=True)  # noqa: E731
        offsets = offsets * (size(frames.bodies[others]) / size(offsets).clamp_min(1e-6))
        flipped = offsets[:, self.swap] * self.across
        offsets = torch.where(mirror, flipped, offsets)
        varied = 0.06 * torch.randn(count, 1 + max(number for _, number in GROUPS), device=device)
        varied = varied * (torch.rand(count, 1, device=device) < 0.7)
        overall = 0.08 * torch.randn(count, 1, device=device) * (torch.rand(count, 1, device=device) < 0.5)
        offsets = offsets * (varied[:, self.group] + overall).exp()[..., None]
        legs = lambda bodies: bodies[:, self.legs].norm(dim=-1).sum(-1, keepdim=True)  # noqa: E731
        return offsets, legs(offsets) / legs(frames.bodies[own])

    def _posed(self, chosen: Tensor, mirror: Tensor, offsets: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        """Root position and rotation, joint positions and rotations, local rotations: in the world."""
        vectors, position = self.frames.rotations[chosen], self.frames.roots[chosen] * scale
        flipped = vectors[:, self.swap_maps] * -self.across
        turned = exponential(torch.where(mirror, flipped, vectors))
        position = torch.where(mirror[..., 0], position * self.across, position)
        places, turns = self.body.forward(position, turned[:, 0], turned[:, 1:], offsets)
        return position, turned[:, 0], places, turns, turned[:, 1:]

    def _mask(self, given: Tensor, count: int) -> Tensor:
        """Which points are handles: one of the presets, or any."""
        device = given.device
        pick = torch.rand(count, device=device)
        fixed = torch.where(
            given, *(torch.searchsorted(s, pick) for s in (self.given_shares, self.free_shares))
        )
        fixed = fixed.clamp_max(len(self.presets) - 1)
        share = 0.03 + 0.6 * torch.rand(count, 1, device=device) ** 2
        several = torch.rand(count, len(self.points), device=device) < share
        kept = self.presets[fixed] & (torch.rand(count, len(self.points), device=device) > 0.02)
        return torch.where(torch.rand(count, 1, device=device) < 0.65, kept, several)

    def _frame(
        self, now: tuple[Tensor, ...], mask: Tensor, given: Tensor, coarse: Tensor
    ) -> tuple[Tensor, Tensor]:
        """F: the given root, a rough guess, or a good one."""
        position, root, places = now[:3]
        count, device = len(position), position.device
        randn = lambda *shape: torch.randn(*shape, device=device)  # noqa: E731
        some = mask.any(1, keepdim=True)
        middle = (places[:, self.points] * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp_min(1)
        middle = torch.where(some, middle, position + 0.3 * randn(count, 3))
        heading = torch.atan2(root[:, 0, 2], root[:, 2, 2])
        wild = (2 * torch.rand(count, device=device) - 1) * math.pi
        off = torch.where(torch.rand(count, device=device) < 0.6, 0.35 * randn(count), wild)
        size = 0.25 * torch.rand(count, 1, device=device)
        near = times(root, exponential(size * randn(count, 3)))
        origin = torch.where(
            given, position, torch.where(coarse, middle, position + 0.3 * size * randn(count, 3))
        )
        turn = torch.where(coarse[..., None], about_up(heading + off), near)
        return origin, torch.where(given[..., None], root, turn)


@dataclass
class Shown:
    """The parts of a pose that the network is shown."""

    mask: Tensor
    offsets: Tensor
    noise: Tensor
    turns: Tensor
    look: Tensor
    floor: Tensor
    velocities: Tensor
    moving: Tensor


def about_up(angle: Tensor) -> Tensor:
    """Turns about the vertical."""
    up = torch.zeros(*angle.shape, 3, device=angle.device)
    up[..., 1] = angle
    return exponential(up)


def _mirrored(name: str, names: tuple[str, ...]) -> str:
    for a, b in (("Left", "Right"), ("Right", "Left"), ("L", "R"), ("R", "L")):
        if name.startswith(a) and b + name[len(a) :] in names:
            return b + name[len(a) :]
    return name


def _group(name: str) -> int:
    return next((number for part, number in GROUPS if part in name), 4)


def preset_mask(chosen: tuple[str, ...]) -> Tensor:
    """Which points are handles of a preset."""
    return torch.tensor([name in chosen for name in layout.POINTS])


def _pairs() -> list[tuple[int, int]]:
    return [
        (number, layout.POINTS.index(_mirrored(name, layout.POINTS)))
        for number, name in enumerate(layout.POINTS)
        if name.startswith("Left")
    ]


_FIVE = ("Head", "LeftHand", "RightHand", "LeftFoot", "RightFoot")
_LIMBS = tuple(f"{side}{part}" for side in ("Left", "Right") for part in
               ("UpLeg", "Leg", "Foot", "Arm", "ForeArm", "Hand"))  # fmt: skip
PRESETS = (
    _FIVE,
    (*_FIVE, "Hips"),
    ("Head", "LeftHand", "RightHand"),
    ("LeftHand", "RightHand", "LeftFoot", "RightFoot", "LeftArm", "RightArm", "Hips"),
    ("LeftHand", "RightHand", "LeftFoot", "RightFoot", "LeftArm", "RightArm", "Hips", "Head"),
    (*_LIMBS, "Head"),
    ("LeftHand", "RightHand"),
    ("LeftFoot", "RightFoot"),
    ("LeftHand",),
    ("RightHand",),
    ("LeftFoot", "RightFoot", "Hips"),
)
GIVEN_SHARES = (10.0, 1.0, 1.5, 1.5, 1.5, 0.7, 0.7, 0.5, 0.5, 0.5, 0.5)
FREE_SHARES = (1.0, 8.0, 3.5, 1.5, 1.5, 1.5, 0.5, 0.5, 0.7, 0.7, 0.7)
