"""In-betweening tasks drawn from recordings: which frames are keys, what else is given, on which body; answers known.

A batch is rows of frames. A row holds one or more independent segments, so that short gaps cost little. Everything of a
segment is in its frame F: the heading and the place on the floor of the last key before its first gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from kinematics import (
    CARRIED,
    FEET,
    columns,
    exponential,
    heading,
    inverse,
    levers_of,
    local_turns,
    logarithm,
    places,
    slerped,
    times,
    turned,
    world_turns,
)
from torch import Tensor

from poise.geometry import rotations
from poise.priors.motion import layout
from poise.priors.motion.layout import BONES, HANDLES, POINTS, TURNING
from poise.priors.universal.layout import JOINTS
from poise.priors.universal.network import FILE, read_arrays
from poise.priors.universal.recordings import PoseTable

RATE = 30.0
SPLITS = ((96,), (64, 32), (48, 48), (56, 24, 16), (80, 16), (32, 32, 32), (64, 16, 16), (24, 24, 24, 24))
SHORTEST = 24  # frames: a shorter clip is left out
EVERY = 0.6  # a performer's share grows as the number of frames to this power
ZEROS = 0.12  # radians: every performer's joints are calibrated in another way, which positions do not show
TRACKED = 0.18  # share of tasks in which a few oriented points are given all the time, and no pose
LENGTHS = 0.06  # of bones as the network reads them: exact ones would name the performer
STANDS, MOVES = 0.1, 0.3  # metres a second: a point that stands, and one that does not

_AT = {name: number for number, name in enumerate(POINTS)}
_HANDLE_POINTS = [_AT[name] for name in HANDLES]
_HANDLE_TURNS = [TURNING.index(name) for name in HANDLES]
_FEET = [_AT[name] for side in FEET for name in side]
_BONES = [_AT[name] for name in BONES]


def _mirrored(names: tuple[str, ...]) -> list[int]:
    def other(name: str) -> str:
        for a, b in (("Left", "Right"), ("Right", "Left"), ("LThumb", "RThumb"), ("RThumb", "LThumb")):
            if name.startswith(a):
                return b + name[len(a) :]
        return name

    return [names.index(other(name)) for name in names]


def _part(name: str) -> int:
    """Left leg, right leg, trunk and head, left arm, right arm."""
    if any(word in name for word in ("Leg", "Foot", "Toe")):
        return 0 if name.startswith("Left") else 1
    if any(word in name for word in ("Arm", "Hand", "Finger", "Thumb")):
        return 3 if name.startswith("L") else 4
    return 2


_PARTS = [_part(name) for name in TURNING]


@dataclass
class Frames:
    """Recorded frames on the device, by clips."""

    turns: Tensor  # frames, joints, 4: local rotations
    roots: Tensor  # frames, 3
    clip: Tensor  # frames
    begin: Tensor  # clips: the first frame
    count: Tensor  # clips
    levers: Tensor  # clips, points, 3
    shares: Tensor  # frames, cumulative
    names: list[str]  # clips


def frames_of(table: PoseTable, performers: list[str], device: torch.device) -> Frames:
    """The frames of some performers, on the device."""
    counts = np.bincount(table.clip_of, minlength=len(table.clips))
    kept = np.flatnonzero(np.isin(table.performers, performers) & (counts >= SHORTEST))
    picked = np.flatnonzero(np.isin(table.clip_of, kept))
    clip = np.searchsorted(kept, table.clip_of[picked])
    who = np.unique(table.performers[kept], return_inverse=True)[1][clip]
    shares = np.cumsum((np.bincount(who) ** (EVERY - 1.0))[who])
    moving = [table.joints.index(name) for name in TURNING]
    to = lambda array: torch.tensor(array, device=device)  # noqa: E731
    return Frames(
        turns=exponential(to(table.rotations[picked][:, moving])),
        roots=to(table.roots[picked]),
        clip=to(clip),
        begin=to(np.searchsorted(clip, np.arange(len(kept)))),
        count=to(counts[kept]),
        levers=to(levers_of(table.offsets[kept])),
        shares=to(shares / shares[-1]),
        names=[table.clips[k] for k in kept],
    )


@dataclass
class Batch:
    """Rows of frames; (rows, frames, ...)."""

    inputs: Tensor
    mask: Tensor  # rows, 1, frames, frames: which frames see which
    base_root: Tensor
    base: Tensor  # world rotations of the interpolated pose
    root: Tensor  # the answer
    world: Tensor
    levers: Tensor
    asked: Tensor
    gap: Tensor  # frames between the keys
    before: Tensor  # the whole key before and after, and how much of their residuals is taken away
    after: Tensor
    take: Tensor  # rows, frames, 2
    pair: Tensor  # whether a frame and the one before it belong together


class Layout:
    """How rows are divided; the same for every batch."""

    def __init__(self, rows: int, splits: tuple[tuple[int, ...], ...], device: torch.device) -> None:
        size = sum(splits[0])
        task, place, begin, length, lengths = [], [], [], [], []
        for row in range(rows):
            at = 0
            for part in splits[row % len(splits)]:
                task += [len(lengths)] * part
                place += range(part)
                begin += [at] * part
                length += [part] * part
                lengths.append(part)
                at += part
        to = lambda values: torch.tensor(values, device=device).reshape(rows, size)  # noqa: E731
        self.task, self.place, self.begin, self.length = to(task), to(place), to(begin), to(length)
        self.lengths = torch.tensor(lengths, device=device)
        self.tasks, self.rows, self.size = len(lengths), rows, size
        self.same = self.task[:, :, None] == self.task[:, None, :]
        self.at = torch.arange(size, device=device).expand(rows, size)


class Sampler:
    """Draws batches; augments by mirroring, sizes, tempo, direction of time, width of movements and joint zeros."""

    def __init__(
        self,
        frames: Frames,
        typical: Tensor,
        device: torch.device,
        backwards: float = 0.0,
        swing: float = 0.0,
    ) -> None:
        """`backwards` is the share of segments that run backwards; `swing` varies how far arms and trunk move."""
        self.frames, self.typical, self.device = frames, typical, device
        self.backwards, self.swing = backwards, swing
        to = lambda values: torch.tensor(values, device=device)  # noqa: E731
        self.swap_points, self.swap_turns = to(_mirrored(POINTS)), to(_mirrored(TURNING))
        self.parts = to(_PARTS)
        self.carriers, self.above = to([0, *(carrier for _, carrier, _ in CARRIED)]), to(layout.PARENT)
        self.still = to([1.0, 0.0, 0.0, 0.0])
        references = rotations.quaternion_from_matrix(read_arrays(FILE)[0]["references"].astype(np.float64))
        self.neutral = to(references[[JOINTS.index(name) for name in TURNING]].astype(np.float32))
        groups = [2 if p == 2 else p // 3 for p in (_part(name) for name in POINTS)]
        self.groups = to(
            [3 if name in ("Head", "Head_end") else g for name, g in zip(POINTS, groups, strict=True)]
        )

    def draw(self, rows: Layout) -> Batch:
        """A batch for training."""
        device, count = self.device, rows.tasks
        rand = lambda *shape: torch.rand(*shape, device=device)  # noqa: E731
        randn = lambda *shape: torch.randn(*shape, device=device)  # noqa: E731
        some = lambda share, *shape: torch.rand(*(shape or (count,)), device=device) < share  # noqa: E731
        whole = lambda low, high: (low + (high + 1 - low) * rand(count)).long()  # noqa: E731
        frames, lengths = self.frames, rows.lengths
        chosen = torch.searchsorted(frames.shares, rand(count).double()).clamp_max(len(frames.roots) - 1)
        clip = frames.clip[chosen]
        tempo = torch.where(
            some(0.4), torch.ones(count, device=device), torch.exp(0.223 * (2 * rand(count) - 1))
        )
        last = frames.count[clip] - 1
        span = (tempo * (lengths - 1)).ceil().long()
        start = (chosen - frames.begin[clip] - (rand(count) * span).long()).clamp_min(0)
        start = torch.minimum(start, (last - span).clamp_min(0))
        fit = ((last - start) / tempo).floor().long() + 1

        kind = rand(count)
        tracked = some(TRACKED) & (lengths >= SHORTEST)
        past, two, every = kind < 0.38, (kind >= 0.38) & (kind < 0.58), (kind >= 0.58) & (kind < 0.82)
        past, two, every = past & ~tracked, two & ~tracked, every & ~tracked
        seen = lengths - ((past | two) * (0.35 * rand(count).square() * lengths)).long()
        seen = torch.minimum(seen, fit)
        first = torch.where(past, torch.where(some(0.75), 10, whole(2, 12)), 1)
        first = torch.minimum(first, seen - 2)
        later = torch.where(past & some(0.15), whole(1, 8), 1)
        later = torch.minimum(later, seen - first - 1)
        period = (3 + rand(count) * (lengths / 2 - 3)).long()
        often = torch.where(past | two | every, 0.0, 0.02 + 0.3 * rand(count).square())
        slots = lambda values: values[rows.task]  # noqa: E731
        at = rows.place
        visible = at < slots(seen)
        known = (at < slots(first)) | (at >= slots(seen - later))
        known = known | (slots(every) & (at % slots(period) == 0)) | some(slots(often), *at.shape)
        follows = slots(tracked)
        known = known & visible & ~follows
        loose = slots(some(0.2)) & some(slots(0.3 + 0.7 * rand(count)), *at.shape)
        loose = loose & (~slots(past) | (at >= slots(first)))
        partial = known & loose
        keys = known & ~partial

        mirror = some(0.5)
        size = torch.where(some(0.7), (0.07 * randn(count)).clamp(-0.163, 0.14), 0.0)
        parts = torch.where(some(0.5)[:, None], 0.05 * randn(count, 4), 0.0)
        parts[:, 0] = 0.0  # feet that stand must not slide
        levers = frames.levers[clip] * torch.exp(size[:, None] + parts)[:, self.groups][..., None]
        across = torch.tensor([-1.0, 1.0, 1.0], device=device)
        levers = torch.where(mirror[:, None, None], levers[:, self.swap_points] * across, levers)
        zeros = exponential(
            torch.where(some(0.85)[:, None, None], ZEROS * randn(count, len(TURNING), 3), 0.0)
        )
        levers = turned(inverse(zeros)[:, self.carriers], levers)
        when = rows.place * slots(tempo)
        when = torch.where(
            slots(some(self.backwards) & (fit >= lengths)), slots((lengths - 1) * tempo) - when, when
        )
        turns, roots = self._recorded(rows, clip, start, when, mirror, size)
        amounts = torch.exp(self.swing * randn(count, 5))
        amounts[:, :2] = 1.0  # legs keep their steps
        wide = logarithm(times(inverse(self.neutral), turns)) * slots(amounts)[..., self.parts, None]
        turns = torch.cat([turns[:, :, :1], times(self.neutral, exponential(wide))[:, :, 1:]], 2)
        above = torch.where(self.above[:, None] >= 0, zeros[:, self.above], self.still)
        turns = times(times(inverse(above)[rows.task], turns), zeros[rows.task])
        roots[..., 1] = roots[..., 1] + slots(0.02 * randn(count))

        shift = ((3 + 27 * rand(*at.shape)) * torch.where(some(0.5, *at.shape), 1, -1)).long()
        other = torch.minimum((at + shift).clamp_min(0), slots(seen) - 1) + rows.begin
        wrong = partial[..., None] & some(0.5, *at.shape, 5)[..., self.parts]
        shifted = torch.take_along_dim(turns, other[..., None, None], dim=1)
        knots = torch.where(wrong[..., None], shifted, turns)
        off = partial[..., None] * 0.06 * randn(*at.shape, 3)
        knot_roots = roots + off
        alone = some(rand(count), count)[rows.task]  # partial keys that do not bend the base
        given = _Given(
            places=visible[..., None] & ~keys[..., None] & (
                (partial[..., None] & some(slots(0.3 + 0.7 * rand(count))[..., None], *at.shape, 6))
                | (slots(some(0.1))[..., None] & slots(some(0.4, count, 6))
                   & some(slots(rand(count))[..., None], *at.shape, 6))
            ),
            turns=some(slots(0.7 * rand(count))[..., None], *at.shape, 6),
            path=visible & slots(some(0.1)) & some(slots(rand(count)), *at.shape),
            contacts=visible & slots(some(0.15)),
        )  # fmt: skip
        given.turns &= given.places
        ends = (at == 0) | (at == slots(seen) - 1)
        knot = keys | (partial & (~alone | ends))

        chosen = rand(count, 6) < _chances(rand(count), device)
        chosen[:, 1] |= ~chosen.any(-1)
        begins, longs = (rand(count, 6) * lengths[:, None], 3 + 57 * rand(count, 6))
        since = at[..., None] - slots(torch.where(some(0.4, count, 6), begins, lengths[:, None] + 1.0))
        there = visible[..., None] & slots(chosen) & ((since < 0) | (since >= slots(longs)))
        neutral, neutral_roots = self.under(rows, turns, roots, slots(levers), there)
        knots = torch.where(follows[..., None, None], neutral, knots)
        knot_roots = torch.where(follows[..., None], neutral_roots, knot_roots)
        given = _Given(
            torch.where(follows[..., None], there, given.places),
            torch.where(follows[..., None], there & slots(some(0.95, count, 6)), given.turns),
            given.path & ~follows, given.contacts & ~follows,
        )  # fmt: skip
        follows = follows & visible
        batch = self.batch(
            rows, visible, keys, partial | follows, knot | follows, (knots, knot_roots), (turns, roots), slots(levers),
            given, slots(LENGTHS * randn(count, len(BONES))),
        )  # fmt: skip
        late = at >= 0.75 * slots(seen)  # live, the last frames are asked for
        batch.gap = torch.where(follows, torch.where(late, 8, 20), batch.gap)
        return batch

    def under(
        self, rows: Layout, turns: Tensor, roots: Tensor, levers: Tensor, there: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The neutral pose at every frame, upright where the first of the given points is or last was."""
        world = world_turns(turns)
        points = places(roots, world, levers)
        neutral = world_turns(self.neutral).expand_as(world)
        own = places(torch.zeros_like(roots), neutral, levers)
        ever = torch.zeros(rows.tasks, 6, dtype=torch.int32, device=self.device)
        ever = ever.index_add(0, rows.task.flatten(), there.flatten(0, 1).int()) > 0
        anchor = ever.int().argmax(-1)[rows.task][..., None]
        seen = torch.take_along_dim(there, anchor, -1)[..., 0]
        before, after = _neighbours(seen, rows)
        end = rows.begin + rows.length - 1
        held = torch.minimum(torch.where(before >= rows.begin, before, after), end)

        def pick(values: Tensor, names: list[int]) -> Tensor:
            at = anchor[..., None].expand(*anchor.shape[:2], 1, values.shape[-1])
            return torch.take_along_dim(values[:, :, names], at, 2)[:, :, 0]

        when = lambda values: torch.take_along_dim(values, held[..., None], 1)  # noqa: E731
        turn = when(pick(world, _HANDLE_TURNS))
        yaw = heading(times(turn, inverse(pick(neutral, _HANDLE_TURNS))))
        root = when(pick(points, _HANDLE_POINTS)) - turned(yaw, pick(own, _HANDLE_POINTS))
        upright = times(yaw, self.neutral[0].expand_as(yaw))
        below = self.neutral[1:].expand(*upright.shape[:2], -1, -1)
        return torch.cat([upright[:, :, None], below], 2), root

    def follow(self, rows: Layout, clip: Tensor, start: Tensor, there: Tensor) -> Batch:
        """Segments as recorded, of which these points are given with their rotations: (rows, frames, handles)."""
        no = torch.zeros(rows.tasks, device=self.device)
        turns, roots = self._recorded(rows, clip, start, rows.place.float(), no > 0, no)
        levers = self.frames.levers[clip][rows.task]
        none = torch.zeros_like(there[..., 0])
        under = self.under(rows, turns, roots, levers, there)
        return self.batch(
            rows, ~none, none, ~none, ~none, under, (turns, roots), levers, _Given(there, there, none, none)
        )

    def exact(self, rows: Layout, clip: Tensor, start: Tensor, keys: Tensor) -> Batch:
        """The tasks of given segments as recorded; `keys` (rows, frames) are given wholly, nothing else is."""
        no = torch.zeros(rows.tasks, device=self.device)
        turns, roots = self._recorded(rows, clip, start, rows.place.float(), no > 0, no)
        none = torch.zeros_like(keys)
        handles = none[..., None].expand(*keys.shape, 6)
        given = _Given(handles, handles, none, none)
        levers = self.frames.levers[clip][rows.task]
        return self.batch(rows, ~none, keys, none, keys, (turns, roots), (turns, roots), levers, given)

    def batch(
        self, rows: Layout, visible: Tensor, keys: Tensor, partial: Tensor, knot: Tensor,
        knots: tuple[Tensor, Tensor], truth: tuple[Tensor, Tensor], levers: Tensor, given: _Given,
        doubt: Tensor | float = 0.0,
    ) -> Batch:  # fmt: skip
        """Everything in F: the base that runs through the knots, the network's inputs, and the answer."""
        at, begin = rows.at, rows.begin
        end = begin + rows.length - 1
        before, after = _neighbours(knot, rows)
        before, after = torch.maximum(before, begin), torch.minimum(after, end)
        gap = (after - before).clamp_min(1)
        share = (at - before) / gap
        take = lambda values, index: torch.take_along_dim(  # noqa: E731
            values, index.reshape(*index.shape, *(1,) * (values.ndim - 2)), dim=1
        )
        local = slerped(take(knots[0], before), take(knots[0], after), share[..., None, None])
        root = torch.lerp(take(knots[1], before), take(knots[1], after), share[..., None])

        asked = visible & ~keys
        first = torch.where(asked, at, rows.size).flip(1).cummin(1).values.flip(1)
        first = take(first, begin)  # of the segment, or of a later one, if it has none
        origin = torch.minimum((first - 1).clamp_min(0), end)
        origin = torch.maximum(origin, begin)
        yaw = inverse(heading(take(local[:, :, 0], origin)))
        floor = take(root, origin) * torch.tensor([1.0, 0.0, 1.0], device=self.device)

        def place(local: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
            own = torch.cat([times(yaw, local[:, :, 0])[:, :, None], local[:, :, 1:]], 2)
            return world_turns(own), turned(yaw, root - floor)

        (base, base_root), (world, true_root) = place(local, root), place(*truth)
        base_points, points = places(base_root, base, levers), places(true_root, world, levers)

        pair = visible & (at > begin)
        speed = RATE * (base_points - base_points.roll(1, 1)) * pair[..., None, None]
        moved = RATE * (points - points.roll(1, 1))[:, :, _FEET].square().sum(-1).sqrt()
        moved = torch.where(pair[..., None], moved, moved.roll(-1, 1))
        stands = (moved.reshape(*at.shape, 2, 2).amin(-1) < 0.5 * (STANDS + MOVES)).float()

        whole_before, whole_after = _neighbours(keys, rows)
        has = torch.stack([whole_before >= begin, whole_after <= end], -1).float()
        whole_before, whole_after = torch.maximum(whole_before, begin), torch.minimum(whole_after, end)
        along = (at - whole_before) / (whole_after - whole_before).clamp_min(1)
        taken = torch.stack([1 - along * has[..., 1], 1 - (1 - along) * has[..., 0]], -1) * has
        taken = torch.where(keys[..., None], torch.tensor([1.0, 0.0], device=self.device), taken)

        number = lambda *values: torch.stack([v.float() for v in values], -1)  # noqa: E731
        turns = logarithm(times(inverse(base[:, :, _HANDLE_TURNS]), world[:, :, _HANDLE_TURNS]))
        offs = (points - base_points)[:, :, _HANDLE_POINTS]
        masks, turn_masks = given.places[..., None].float(), given.turns[..., None].float()
        handles = torch.cat([0.2 * masks, offs * masks, 0.2 * turn_masks, turns * turn_masks], -1)
        path = given.path[..., None].float()
        lengths = levers[:, :, _BONES].norm(dim=-1).clamp_min(1e-3) / self.typical
        inputs = torch.cat(
            [base_root, (base_points - base_root[:, :, None]).flatten(2), columns(base).flatten(2), speed.flatten(2),
             number(share, gap.log() / 4, (at - before) / 30, (after - at) / 30, keys, partial),
             handles.flatten(2), torch.cat([0.2 * path, (true_root - base_root)[..., ::2] * path], -1),
             given.contacts[..., None] * torch.cat([torch.ones_like(stands), stands], -1), lengths.log() + doubt], -1,
        )  # fmt: skip
        inputs = inputs / torch.tensor(layout.SIZES, device=self.device)
        mask = rows.same & visible[:, None, :] | torch.eye(rows.size, dtype=torch.bool, device=self.device)
        return Batch(
            inputs, mask[:, None], base_root, base, true_root, world, levers, asked, gap, whole_before, whole_after,
            taken, pair,
        )  # fmt: skip

    # --- private ---------------------------------------------------------------------------------------------------

    def _recorded(
        self, rows: Layout, clip: Tensor, start: Tensor, when: Tensor, mirror: Tensor, size: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Local rotations and roots of the segments `when` frames after their starts, in a mirror, on other sizes."""
        frames, task = self.frames, rows.task
        steps = when.floor()
        last = (frames.begin + frames.count - 1)[clip][task]
        low = (frames.begin[clip] + start)[task] + steps.long()
        high = torch.minimum(low + 1, last)
        low, part = torch.minimum(low, last), when - steps
        a, b = frames.turns[low], frames.turns[high]
        b = torch.where((a * b).sum(-1, keepdim=True) < 0, -b, b)
        turns = torch.nn.functional.normalize(torch.lerp(a, b, part[..., None, None]), dim=-1)
        roots = (
            torch.lerp(frames.roots[low], frames.roots[high], part[..., None]) * size.exp()[task][..., None]
        )
        flips = mirror[task][..., None]
        signs = torch.tensor([1.0, 1.0, -1.0, -1.0], device=self.device)
        turns = torch.where(flips[..., None], turns[:, :, self.swap_turns] * signs, turns)
        return turns, torch.where(flips, roots * torch.tensor([-1.0, 1.0, 1.0], device=self.device), roots)


@dataclass
class _Given:
    """What is given beside keys."""

    places: Tensor  # rows, frames, handles
    turns: Tensor
    path: Tensor  # rows, frames
    contacts: Tensor


def _chances(kind: Tensor, device: torch.device) -> Tensor:
    """How likely each handle is tracked: head and hands, then feet too, then the pelvis too, or any."""
    rows = [
        [0.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [1.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0.4, 0.7, 0.6, 0.6, 0.4, 0.4],
    ]  # fmt: skip
    return torch.tensor(rows, device=device)[
        torch.searchsorted(kind.new_tensor([0.5, 0.62, 0.72, 0.8]), kind)
    ]


def _neighbours(chosen: Tensor, rows: Layout) -> tuple[Tensor, Tensor]:
    """The nearest chosen frame before (or at) each frame of a row, and after; -1 and `size` where there is none."""
    before = torch.where(chosen, rows.at, -1).cummax(1).values
    after = torch.where(chosen, rows.at, rows.size).flip(1).cummin(1).values.flip(1)
    return before, after


def answered(batch: Batch, output: Tensor) -> tuple[Tensor, Tensor]:
    """The root's positions and all world rotations of the answer: the base with the residual, which is 0 at keys."""
    width = 3 + 3 * len(TURNING)
    residual = output[..., :width]
    take = lambda index: torch.take_along_dim(residual, index[..., None], dim=1)  # noqa: E731
    residual = residual - batch.take[..., :1] * take(batch.before) - batch.take[..., 1:] * take(batch.after)
    turns = exponential(residual[..., 3:].unflatten(-1, (-1, 3)))
    root_turn = turns[:, :, :1]
    below = times(batch.base[:, :, 1:], turns[:, :, 1:])
    world = times(root_turn, torch.cat([batch.base[:, :, :1], below], 2))
    return batch.base_root + residual[..., :3], world


__all__ = ["Batch", "Frames", "Layout", "Sampler", "answered", "frames_of", "local_turns"]
