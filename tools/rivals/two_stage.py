"""A rival in-betweening: Qin et al. 2022, "Motion In-betweening via Two-stage Transformers", written from the paper.

`two_stage.py train FILE --data ARCHIVE` learns from the clips that the motion prior learns from, half of the time each
stage; `two_stage.py evaluate FILE` prints its rows of `poise evaluate inbetween`. As published: local rotations as two
columns and the root's position, all standardised; a context transformer, in which frames see the given ones only, with
keyframe positions and learned relative positions; then a detail transformer that sees its rough transition, and tells
contacts. 6 layers of width 512 each, the paper's weights of losses. Other than published: the batch is larger and the
rate falls with the time that is left, which short training needs; gaps of up to 45 frames and one past frame are
learned too, because they are asked for here.
"""

from __future__ import annotations

import itertools
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

from poise.priors.motion.layout import POINTS

WIDTH, HEADS, HEAD, LAYERS = 512, 8, 64, 6
PAST, GAPS = 10, (5, 45)
LENGTH = PAST + GAPS[1] + 2
STATE = 6 * JOINTS + 3
FEET = [POINTS.index(name) for name in ("LeftFoot", "LeftToeBase", "RightFoot", "RightToeBase")]
STANDS = 0.2  # metres a second
CONTEXT = {"turn": 1.0, "place": 1.0, "still": 0.5}  # the paper's, whose unit is the centimetre
DETAIL = {"turn": 1.0, "place": 2.0, "contact": 0.05, "slide": 5.0}


class Layer(nn.Module):
    """Attention with learned relative positions, then a hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * HEADS * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x: Tensor, relative: Tensor, apart: Tensor, seen: Tensor) -> Tensor:
        asked, keys, values = self.mix(self.norm(x)).unflatten(-1, (3, HEADS, HEAD)).permute(2, 0, 3, 1, 4)
        scores = asked @ keys.transpose(-1, -2)
        places = asked @ relative.T  # rows, heads, frames, distances
        scores = scores + torch.take_along_dim(places, apart.expand_as(scores), -1)
        scores = (scores * WIDTH**-0.5).masked_fill(~seen, -1e4).softmax(-1)
        x = x + self.out((scores @ values).transpose(1, 2).flatten(2))
        return x + self.net(self.inner(x))


class Stage(nn.Module):
    """An encoder over frames; `left` values come out for each."""

    def __init__(self, left: int, keyed: bool) -> None:
        super().__init__()
        half = lambda come, go: nn.Sequential(nn.Linear(come, WIDTH), nn.PReLU(), nn.Linear(WIDTH, go))  # noqa: E731
        self.first, self.last = half(STATE + 1, WIDTH), half(WIDTH, left)
        self.keyed = half(2, WIDTH) if keyed else None
        self.relative = half(1, HEAD)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x: Tensor, seen: Tensor, keyed: Tensor | None = None) -> Tensor:
        """`seen` (rows, 1, 1, frames) may be read; `keyed` are frames to the last past one and to the target."""
        count = x.shape[1]
        x = self.first(x)
        if self.keyed is not None:
            x = x + self.keyed(keyed)
        at = torch.arange(count, device=x.device)
        distances = torch.arange(1 - count, count, device=x.device)[:, None] / 10.0
        apart = at[None, :] - at[:, None] + count - 1
        relative = self.relative(distances)
        for layer in self.layers:
            x = layer(x, relative, apart, seen)
        return self.last(x)


class TwoStage(nn.Module):
    """Both stages, and how states are standardised."""

    def __init__(self) -> None:
        super().__init__()
        self.context, self.detail = Stage(STATE, keyed=True), Stage(STATE + 4, keyed=False)
        self.register_buffer("mean", torch.zeros(STATE))
        self.register_buffer("spread", torch.ones(STATE))

    def rough(self, state: Tensor, past: Tensor, target: Tensor, known: Tensor) -> Tensor:
        """The first stage's states; `known` (rows, frames) are given, `past` and `target` frame numbers by row."""
        at = torch.arange(state.shape[1], device=state.device)
        share = ((at - past[:, None] + 1) / (target - past + 1)[:, None]).clamp(0, 1)[..., None]
        pick = lambda when: torch.take_along_dim(state[..., -3:], when[:, None, None], 1)  # noqa: E731
        line = pick(past - 1) * (1 - share) + pick(target) * share
        flags = known[..., None].float()
        own = (state - self.mean) / self.spread
        placed = (line - self.mean[-3:]) / self.spread[-3:]
        inputs = torch.cat([own[..., :-3] * flags, torch.where(flags > 0, own[..., -3:], placed), flags], -1)
        keyed = torch.stack([at - past[:, None] + 1, target[:, None] - at], -1) / 10.0
        found = self.context(inputs, known[:, None, None], keyed) * self.spread + self.mean
        return torch.where(known[..., None], state, found)

    def fine(self, rough: Tensor, state: Tensor, target: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """The second stage's states, and its contacts as log odds."""
        at = torch.arange(state.shape[1], device=state.device)
        seen = (at <= target[:, None])[:, None, None]
        flags = known[..., None].float()
        found = self.detail(torch.cat([(rough - self.mean) / self.spread, flags], -1), seen)
        return torch.where(known[..., None], state, found[..., :-4] * self.spread + self.mean), found[
            ..., -4:
        ]


def centred(turns: Tensor, roots: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
    """Seen from the last past frame: above the origin, and its body looks along one axis."""
    pick = lambda values: torch.take_along_dim(values, (past - 1)[:, None, None], 1)[:, 0]  # noqa: E731
    ahead = torch.take_along_dim(turns[:, :, 0], (past - 1)[:, None, None, None], 1)[:, 0, :, 2]
    yaw = torch.atan2(ahead[:, 0], ahead[:, 2])
    cos, sin, no, one = yaw.cos(), yaw.sin(), torch.zeros_like(yaw), torch.ones_like(yaw)
    into = torch.stack([cos, no, -sin, no, one, no, sin, no, cos], -1).unflatten(-1, (3, 3))
    floor = pick(roots) * torch.tensor([1.0, 0.0, 1.0], device=roots.device)
    roots = (roots - floor[:, None]) @ into.transpose(-1, -2)
    turns = torch.cat([(into[:, None] @ turns[:, :, 0])[:, :, None], turns[:, :, 1:]], 2)
    return turns, roots


def learn(weights: Path, archive: Path, seconds: float, batch: int, plain: bool) -> None:
    """Train the first stage, then the second."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    frames = clips(archive, device)
    drawn = windows(frames, batch, LENGTH)
    network = TwoStage().to(device)

    def take() -> tuple[Tensor, ...]:
        clip, at = next(drawn)
        past = torch.where(torch.rand(batch, device=device) < 0.6, PAST, 1)
        target = past + torch.randint(GAPS[0], GAPS[1] + 1, (batch,), device=device)
        when = torch.arange(LENGTH, device=device)
        gap = (when >= past[:, None]) & (when < target[:, None])
        some = (torch.rand(batch, LENGTH, device=device) < 0.05) & gap  # a tenth of the gap, half of the time
        turns, roots = centred(matrices(frames.turns[at]), frames.roots[at], past)
        known = (when < past[:, None]) | (when == target[:, None]) | some
        return frames.levers[clip], turns, roots, past, target, known, gap & ~known

    with torch.no_grad():
        states = torch.cat([_state(*take()[1:3]) for _ in range(40)]).flatten(0, 1)
        network.mean.copy_(states.mean(0))
        network.spread.copy_(states.std(0).clamp_min(1e-2))

    def parts(
        state: Tensor, found: Tensor, levers: Tensor, turns: Tensor, roots: Tensor, asked: Tensor
    ) -> tuple:
        mean = lambda values: (values * asked).sum() / asked.sum()  # noqa: E731
        own = orthogonal(found[..., :-3].unflatten(-1, (JOINTS, 6)))
        points = points_of(found[..., -3:], in_world(own), levers[:, None])
        true = points_of(roots, in_world(turns), levers[:, None])
        loss = {
            "turn": mean((found - state)[..., :-3].abs().mean(-1)),
            "place": mean((points - true).abs().mean((-1, -2))),
        }
        return loss, points, true, mean

    def first(levers, turns, roots, past, target, known, asked) -> Tensor:
        state = _state(turns, roots)
        found = network.rough(state, past, target, known)
        loss, points, _, mean = parts(state, found, levers, turns, roots, asked)
        loss["still"] = mean((points - points.roll(1, 1)).abs().mean((-1, -2)))
        return sum(CONTEXT[name] * value for name, value in loss.items())

    def second(levers, turns, roots, past, target, known, asked) -> Tensor:
        state = _state(turns, roots)
        with torch.no_grad():
            rough = network.rough(state, past, target, known)
        found, contact = network.fine(rough, state, target, known)
        loss, points, true, mean = parts(state, found, levers, turns, roots, asked)
        moved = lambda places: 30.0 * (places - places.roll(1, 1))[:, :, FEET].norm(dim=-1)  # noqa: E731
        label = (moved(true) < STANDS).float()
        loss["contact"] = mean((contact.sigmoid() - label).abs().mean(-1))
        loss["slide"] = mean((contact.sigmoid() * moved(points) / 30.0).mean(-1))
        return sum(DETAIL[name] * value for name, value in loss.items())

    steps = []
    for stage, loss_of, peak in ((network.context, first, 7e-4), (network.detail, second, 2.8e-4)):
        loss = compiled(loss_of, plain)
        steps.append(trained(stage, lambda: loss(*take()), seconds / 2, cosine(peak, 1000)))  # noqa: B023
    torch.save({"network": {k: v.half() for k, v in network.state_dict().items()}, "steps": steps}, weights)
    print(f"{weights}: {steps} steps", flush=True)


def _state(turns: Tensor, roots: Tensor) -> Tensor:
    return torch.cat([six(turns).flatten(2), roots], -1)


def evaluate(weights: Path, split: str, stride: int) -> list[dict]:
    """Its rows of `poise evaluate inbetween`."""
    from poise.evaluation import inbetween
    from poise.evaluation.splits import load_split
    from poise.geometry import rotations
    from poise.motion.motion import Motion
    from poise.priors.motion.carrying import AT, Change, Frames
    from poise.priors.motion.prior import MotionPrior, interpolated

    network = TwoStage()
    network.load_state_dict(
        {k: v.float() for k, v in torch.load(weights, map_location="cpu")["network"].items()}
    )
    network.eval()

    @torch.no_grad()
    def transition(turns: Tensor, roots: Tensor, past: int) -> tuple[Tensor, Tensor]:
        """All frames of a window whose first `past` frames and last frame are given."""
        count = len(roots)
        at = torch.tensor([past])
        seen_turns, seen_roots = centred(turns[None], roots[None], at)
        into = seen_turns[0, 0, 0] @ turns[0, 0].T
        known = torch.zeros(1, count, dtype=torch.bool)
        known[0, :past] = known[0, -1] = True
        state = _state(seen_turns, seen_roots)
        target = torch.tensor([count - 1])
        found, _ = network.fine(network.rough(state, at, target, known), state, target, known)
        own = orthogonal(found[0, :, :-3].unflatten(-1, (JOINTS, 6)))
        own[:, 0] = into.T @ own[:, 0]
        floor = roots[past - 1] * torch.tensor([1.0, 0.0, 1.0])
        return own, found[0, :, -3:] @ into + floor

    def method(_fold: object) -> object:
        def on(skeleton: object) -> object:
            prior = MotionPrior(skeleton)

            def answer(window: Motion, given: np.ndarray) -> Motion:
                keys = np.flatnonzero(given)
                poses = Frames(window.root_positions[keys], window.rotations[keys])
                base = interpolated(poses, keys, len(window))
                canonical = prior.carrier.canonical(base)
                turns = matrices(torch.tensor(canonical.turns[:, AT], dtype=torch.float32))
                roots = torch.tensor(canonical.roots, dtype=torch.float32)
                for before, after in itertools.pairwise(keys):
                    if after - before > 1:
                        first = (
                            before - PAST + 1 if before >= PAST - 1 else before
                        )  # found frames are a past too
                        part = slice(first, after + 1)
                        own, moved = transition(turns[part], roots[part], int(before - first + 1))
                        turns[before + 1 : after], roots[before + 1 : after] = (
                            one[before - first + 1 : -1] for one in (own, moved)
                        )
                q = rotations.quaternion_from_matrix(turns.numpy().astype(np.float64))
                was = canonical.turns[:, AT]
                turned = rotations.expmap_from_quaternion(
                    rotations.canonical(rotations.multiply(rotations.conjugate(was), q))
                )
                whole = rotations.expmap_from_quaternion(
                    rotations.canonical(rotations.multiply(q[:, 0], rotations.conjugate(was[:, 0])))
                )
                change = Change(roots.numpy() - canonical.roots, whole, turned[:, 1:])
                out = window.with_frames(*prior.carrier.added(base, change))
                fixed = [np.where(given.reshape(-1, *(1,) * (a.ndim - 1)), a, b) for a, b in (
                    (window.root_positions, out.root_positions), (window.rotations, out.rotations))]  # fmt: skip
                return window.with_frames(*fixed)

            return answer

        return on

    inbetween.METHODS["two-stage"] = method
    return inbetween.evaluate_inbetween(
        load_split(split), methods=["two-stage"], options=inbetween.InbetweenOptions(stride=stride)
    )


if __name__ == "__main__":
    main(__doc__, learn, evaluate)
