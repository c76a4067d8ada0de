"""Measures postures on strangers: `python tools/universal/measure_modes.py --data ARCHIVE`.

Few handles, a free root; which way bodies face is known to within 20 degrees. Per set of handles: minus the mean log
density of the truth under one Gaussian and under the mixture (Student's, per pose); mean joint error in centimetres of
the answer, of the best of it and both ends of its widest way, and of the best of the three likeliest postures;
nats by which shares miss the true posture, against those of shares that know no handles; and, by claimed share,
how often a posture is the true one.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from body import Body, apply, times  # noqa: E402
from losses import TAILS, Pose, finished  # noqa: E402
from modes import FEW, ModalNetwork, descriptors, nearest  # noqa: E402
from tasks import Sampler, Shown, Tasks, about_up, preset_mask  # noqa: E402
from train import frames_of  # noqa: E402

from poise.priors.universal import layout, network  # noqa: E402
from poise.priors.universal.body import predicted_zeros  # noqa: E402
from poise.priors.universal.recordings import STRANGERS, read_table  # noqa: E402

BATCH, FIRST, APART, FACING = 1024, 3, 1.5, 0.35


class Answer(NamedTuple):
    """What is expected of tasks, seen from the second frame."""

    tasks: Tasks
    pose: Pose
    covariance: Tensor
    variances: Tensor
    factors: Tensor


class Measured:
    """The network on strangers' frames."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        files = (network.FILE, network.TABLES, options.postures)
        arrays = {name: array for file in files for name, array in network.read_arrays(file)[0].items()}
        made = {name: self._tensor(array) for name, array in arrays.items()}
        zero_weights = network.ZeroWeights(
            *(arrays[f"zeros.{name}"].astype(float) for name in network.ZeroWeights._fields)
        )
        self.centres, self.tempers, self.unknown = (
            made["postures.centres"],
            made["tempers"],
            made["zeros.spread"],
        )
        self.one, self.many = (
            ModalNetwork(made, n, 0.0).to(self.device).eval() for n in (1, len(self.centres))
        )
        with torch.no_grad():
            self.many.shifts.copy_(made["postures.shifts"])
            self.many.gate.weight.copy_(made["postures.gate"])
            self.many.gate.bias.copy_(made["postures.gate_bias"])
        table = read_table(options.data)
        moving = [table.joints.index(name) for name in layout.MOVING]
        self.body = Body(table.parents.tolist(), moving, made["references"])
        frames = frames_of(table, [who for draw in STRANGERS for who in draw], self.device)
        self.sampler = Sampler(frames, self.body, table.joints, made["lengths"])
        zeros = predicted_zeros(zero_weights, layout.figure(frames.bodies.double().cpu().numpy()))
        self.zeros = self._tensor(zeros).reshape(len(zeros), -1, 3)
        order = torch.randperm(len(frames.roots), generator=torch.Generator().manual_seed(5))
        self.chosen = order[: options.frames].to(self.device)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.tensor(np.asarray(array, np.float32), device=self.device)

    def of(self, preset: tuple[str, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """Per frame the figures; the probabilities of all postures, and the true ones."""
        torch.manual_seed(3)
        parts = [
            self._part(frames, preset_mask(preset).to(self.device)) for frames in self.chosen.split(BATCH)
        ]
        rows, shares, true = (torch.cat(part) for part in zip(*parts, strict=True))
        return rows, shares, true

    def _part(self, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sampler, count = self.sampler, len(frames)
        plain = torch.zeros(count, 1, 1, dtype=torch.bool, device=self.device)
        who = sampler.frames.body[frames]
        self.who, self.free = (who, plain, sampler.frames.bodies[who]), plain[..., 0]
        self.now = sampler._posed(frames, plain, self.who[2], torch.ones(count, 1, device=self.device))
        self.mask, places = mask.expand(count, -1), self.now[2][:, sampler.points]
        origin = (places * self.mask[..., None]).sum(1) / self.mask.sum(1, keepdim=True)
        heading = torch.atan2(self.now[1][:, 0, 2], self.now[1][:, 2, 2])
        frame = origin, about_up(heading + FACING * torch.randn(count, device=self.device))
        tasks = self._seen(*frame)
        true, shares = nearest(descriptors(sampler, tasks), self.centres), self.many.likely(tasks.inputs)
        one = self._asked(self.one, frame, torch.zeros_like(true))
        each = [self._asked(self.many, frame, torch.full_like(true, k)) for k in range(len(self.centres))]
        met = self._met(one)
        ways = torch.stack([self._missed(one, pose) for pose in (met, *self._ends(one, met))], -1)
        kinds = torch.stack([self._missed(kind, self._met(kind)) for kind in each], -1)
        first = torch.take_along_dim(kinds, shares.argsort(-1, descending=True), 1)[:, :FIRST]
        mixed = -torch.logsumexp(shares.double() - torch.stack([self._nats(kind) for kind in each], -1), -1)
        missed = -torch.take_along_dim(shares, true[:, None], 1)[:, 0]
        row = (self._nats(one), mixed, ways[:, 0], ways.min(1).values, first.min(1).values, missed)
        return torch.stack([figure.double() for figure in row], -1), shares.exp(), true

    def _seen(self, origin: Tensor, axes: Tensor) -> Tasks:
        """The tasks from a frame, with the floor."""
        shown: Shown = self.sampler._plain(self.mask)
        shown.floor = torch.ones_like(shown.floor)
        return self.sampler.tasks(self.now, self.who, self.free, origin, axes, shown)

    def _asked(self, net: ModalNetwork, frame: tuple[Tensor, Tensor], posture: Tensor) -> Answer:
        """From the guessed frame, then from the root predicted there; the root's variance does not decrease."""
        zeros, (origin, axes) = self.zeros[self.who[0]], frame
        tasks = self._seen(origin, axes)
        mean, variances, factors = net(tasks.inputs, posture)
        before, near = self._covariance(variances, factors)[:, :6, :6], Pose.named(mean, tasks, zeros)
        if net is self.many and self.mask[0].sum() == 1:  # one handle does not determine the heading
            turn = about_up(torch.atan2(near.root[:, 2, 0], near.root[:, 0, 0]))
            near = Pose(apply(turn, near.position), times(turn, near.root), near.maps)
        tasks = self._seen(origin + apply(axes, near.position), times(axes, near.root))
        mean, variances, factors = net(tasks.inputs, posture)
        covariance = self._covariance(variances, factors)
        into = torch.eye(6, device=self.device).repeat(len(mean), 1, 1)
        into[:, :3, :3] = near.root.transpose(-1, -2)
        lacking = (into @ before @ into.transpose(-1, -2) - covariance[:, :6, :6]).double()
        values, vectors = torch.linalg.eigh((lacking + lacking.transpose(-1, -2)) / 2)
        covariance[:, :6, :6] += (vectors * values.clamp_min(0)[:, None] @ vectors.transpose(-1, -2)).float()
        return Answer(tasks, Pose.named(mean, tasks, zeros), covariance, variances, factors)

    def _covariance(self, variances: Tensor, factors: Tensor) -> Tensor:
        low = factors * self.tempers[:, None]
        covariance = torch.diag_embed(variances * self.tempers**2) + low @ low.transpose(-1, -2)
        covariance[:, 3:, 3:] += self.unknown
        return covariance

    def _nats(self, answer: Answer) -> Tensor:
        """Negative log density of the truth."""
        tasks, count = answer.tasks, layout.FREEDOMS
        gap = answer.pose.gap(Pose(tasks.position, tasks.root, tasks.maps)).double()
        lower = torch.linalg.cholesky(answer.covariance.double())
        square = torch.linalg.solve_triangular(lower, gap[..., None], upper=False)[..., 0].square().sum(-1)
        volume = lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = (
            count / 2 * math.log(TAILS * math.pi) + math.lgamma(TAILS / 2) - math.lgamma((TAILS + count) / 2)
        )
        return volume + 0.5 * (TAILS + count) * torch.log1p(square / TAILS) + constant

    def _met(self, answer: Answer) -> Pose:
        return finished(self.body, answer.pose, answer.tasks, answer.variances, answer.factors, rounds=6)

    def _places(self, answer: Answer, pose: Pose) -> tuple[Tensor, Tensor]:
        return self.body.forward(pose.position, pose.root, self.body.local(pose.maps), answer.tasks.offsets)

    def _missed(self, answer: Answer, pose: Pose) -> Tensor:
        return (self._places(answer, pose)[0] - answer.tasks.places).norm(dim=-1).mean(1)

    def _ends(self, answer: Answer, pose: Pose) -> list[Pose]:
        """Both ends of the first principal component of the joints."""
        places, turns = self._places(answer, pose)
        every = torch.arange(places.shape[1], device=self.device).expand(len(places), -1)
        jacobian = self.body.jacobian(pose.maps, places, turns, every, places)
        rows = torch.take_along_dim(jacobian, answer.tasks.handle_joints[..., None, None], 1)
        rows = (rows * answer.tasks.handle_mask[..., None, None]).flatten(1, 2)
        jacobian, spread = jacobian.flatten(1, 2), rows @ answer.covariance
        gram = spread @ rows.transpose(-1, -2) + 1e-6 * torch.eye(rows.shape[1], device=self.device)
        left = answer.covariance - spread.transpose(-1, -2) @ torch.linalg.solve(gram, spread)
        values, ways = torch.linalg.eigh((jacobian @ left @ jacobian.transpose(-1, -2)).double())
        size = values[:, -1].clamp_min(1e-9).sqrt()[:, None].float()
        step = APART * apply(left @ jacobian.transpose(-1, -2), ways[..., -1].float()) / size
        return [pose.moved(step), pose.moved(-step)]


def main() -> None:
    """A line per set of handles, and the frequencies of postures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--postures", type=Path, default=network.POSTURES)
    parser.add_argument("--frames", type=int, default=3072)
    measured = Measured(parser.parse_args())
    claimed, came = [], []
    for preset in FEW[:10]:
        with torch.no_grad():
            rows, shares, true = measured.of(preset)
        one, mixed, answer, ways, kinds, missed = rows.mean(0).tolist()
        usual = torch.bincount(true, minlength=shares.shape[1]) / len(true)
        entropy = -(usual * usual.clamp_min(1e-9).log()).sum()
        errors = " ".join(f"{100 * error:.1f}" for error in (answer, ways, kinds))
        report = f"nats {one:.1f} {mixed:.1f}; cm {errors}; posture {missed:.2f} of {entropy:.2f}"
        print(f"{'+'.join(preset)}: {report}", flush=True)
        claimed.append(shares.flatten())
        came.append(nn.functional.one_hot(true, shares.shape[1]).flatten().float())
    shares, hits = torch.cat(claimed), torch.cat(came)
    for low in torch.arange(0.0, 1.0, 0.1):
        part = (shares >= low) & (shares < low + 0.1)
        print(f"claimed {shares[part].mean():.3f}, true {hits[part].mean():.3f}, of {int(part.sum())}")


if __name__ == "__main__":
    main()
