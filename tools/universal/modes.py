"""Trains what tells postures apart on top of the shipped network, whose weights stay as they are.

`python tools/universal/modes.py --data ARCHIVE --weights FOLDER/universal.safetensors --out FOLDER`. A posture is a
group of recorded poses that lie alike. Shown a posture, the network expects a pose of it; asked, it says how likely
handles make each.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from body import Body  # noqa: E402
from losses import POSITIONS, Pose, errors, unlikeliness  # noqa: E402
from network import Network  # noqa: E402
from tasks import PRESETS, Sampler, Tasks, preset_mask  # noqa: E402
from train import Trainer, frames_of  # noqa: E402

from poise.priors.universal import layout, network  # noqa: E402
from poise.priors.universal.body import predicted_zeros  # noqa: E402
from poise.priors.universal.network import in_bytes  # noqa: E402
from poise.priors.universal.recordings import CHOICE, STRANGERS, read_table  # noqa: E402

FEW = (
    ("Head",), ("LeftHand",), ("RightHand",), ("LeftHand", "RightHand"), ("Head", "LeftHand"), ("Head", "RightHand"),
    ("Head", "LeftHand", "RightHand"), ("LeftFoot", "RightFoot"), ("Hips",), ("LeftHand", "RightFoot"),
    ("RightHand", "LeftFoot"), PRESETS[0], PRESETS[1],
)  # fmt: skip
SEEN = 2**16  # poses in which postures are found
NEIGHBOUR = 40  # the distance of this neighbour measures the rarity of a pose
ROUNDS = 60


class ModalNetwork(Network):
    """The trained network with a shift of its values, before each block, for each posture."""

    def __init__(self, trained: dict[str, Tensor], count: int, dropped: float) -> None:
        blocks = sum(name.endswith("up.weight") for name in trained)
        width = len(trained["first.bias"])
        super().__init__(width, blocks, dropped)
        self.load_state_dict({name: trained[name] for name in self.state_dict()})
        self.requires_grad_(False)
        self.shifts = nn.Parameter(torch.zeros(count, (blocks + 1) * width))
        self.gate = nn.Linear(width, count)
        nn.init.zeros_(self.gate.weight)

    def forward(self, inputs: Tensor, posture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variances and factors of a posture."""
        return self.heads(self.hidden(inputs, self.shifts[posture]))

    def likely(self, inputs: Tensor) -> Tensor:
        """Per posture, its log-probability."""
        blank = torch.zeros(1, self.shifts.shape[1], device=inputs.device)
        return self.gate(self.hidden(inputs, blank)).log_softmax(-1)

    def hidden(self, inputs: Tensor, shifts: Tensor) -> Tensor:
        """The input of the heads."""
        h = self.first(inputs)
        by_block = shifts.reshape(len(shifts), len(self.blocks) + 1, -1)
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda, cache_enabled=False):
            for number, block in enumerate(self.blocks):
                h = block(h + by_block[:, number])
        return self.norm(h.float() + by_block[:, -1])


class ModalTrainer(Trainer):
    """Trains shifts and the gate; performers' joint zeros start at their prediction from bones."""

    def __init__(self, sampler: Sampler, options: argparse.Namespace, trained: dict) -> None:
        self._trained = {
            name: torch.tensor(array, dtype=torch.float32, device=sampler.points.device)
            for name, array in trained.items()
        }
        super().__init__(sampler, sampler, options)
        zero_weights = network.ZeroWeights(
            *(trained[f"zeros.{name}"].astype(np.float64) for name in network.ZeroWeights._fields)
        )
        self.known = zero_weights
        with torch.no_grad():
            self.zeros.copy_(self._predicted_zeros(sampler))
        self.centres = postures(sampler, options.postures)

    def made(self) -> ModalNetwork:
        """The network to train."""
        return ModalNetwork(self._trained, self.options.postures, self.options.dropped).to(self.device)

    def _predicted_zeros(self, sampler: Sampler) -> Tensor:
        figures = layout.figure(sampler.frames.bodies.double().cpu().numpy())
        found = torch.tensor(predicted_zeros(self.known, figures), device=self.device).float()
        return found.reshape(len(found), -1, 3)

    def _once(self) -> None:
        tasks = self.sampler.draw(self.options.batch)
        loss, now = self._losses(self.network, tasks, self._zeros(tasks))
        self.optimiser.zero_grad(set_to_none=False)
        (loss + self.options.zeros * self.zeros.square().mean()).backward()
        for parameter in (self.zeros, *self._moving()):
            parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
        torch.nn.utils.clip_grad_norm_(self._moving(), 1.0)
        self.optimiser.step()
        with torch.no_grad():
            for kept, new in zip(self.average.parameters(), self.network.parameters(), strict=True):
                if new.requires_grad:
                    kept.lerp_(new, 1 - self.options.average)
            self.losses.lerp_(now, 0.01)

    def _moving(self) -> list[Tensor]:
        return [one for one in self.network.parameters() if one.requires_grad]

    def _losses(self, net: ModalNetwork, tasks: Tasks, zeros: Tensor) -> tuple[Tensor, Tensor]:
        which = nearest(descriptors(self.sampler, tasks), self.centres)
        mean, variances, factors = net(tasks.inputs, which)
        pose = Pose.named(mean, tasks, zeros)
        turn, place = errors(self.sampler.body, pose, tasks)
        nll = unlikeliness(pose, tasks, variances, factors)
        missed = nn.functional.nll_loss(net.likely(tasks.inputs), which)
        loss = (turn + POSITIONS * place).mean() + self.options.likely * nll.mean() + missed
        return loss, torch.stack([turn.mean(), place.mean(), nll.mean(), missed, missed]).detach()


def descriptors(sampler: Sampler, tasks: Tasks) -> Tensor:
    """Descriptors of poses: points relative to the pelvis, in upright axes with left to the side, in leg lengths."""
    up = tasks.inputs[:, sampler.up_at : sampler.up_at + 3]
    left = tasks.root[..., 0] - up * (tasks.root[..., 0] * up).sum(-1, keepdim=True)
    left = nn.functional.normalize(left, dim=-1)
    axes = torch.stack([left, up, torch.linalg.cross(left, up)], dim=-2)
    legs = tasks.offsets[:, sampler.legs].norm(dim=-1).sum(-1) / 2
    apart = tasks.places[:, sampler.points] - tasks.position[:, None]
    return (apart @ axes.transpose(-1, -2) / legs[:, None, None]).flatten(1)


def nearest(rows: Tensor, centres: Tensor) -> Tensor:
    """Per row the index of the nearest centre."""
    return (centres.square().sum(-1) - 2 * rows @ centres.T).argmin(-1)


def postures(sampler: Sampler, count: int) -> Tensor:
    """Centres of groups of poses, with rare poses weighted more: k-means."""
    rows = torch.cat([descriptors(sampler, sampler.draw(4096)) for _ in range(SEEN // 4096)])
    some = rows[: SEEN // 4]
    rarity = torch.cat(
        [torch.cdist(part, some).kthvalue(NEIGHBOUR, dim=1).values for part in rows.split(2048)]
    )
    weights = rarity.square()
    centres = rows[torch.multinomial(weights, 1)]
    for _ in range(count - 1):
        far = torch.cdist(rows, centres).min(1).values.square() * weights
        centres = torch.cat([centres, rows[torch.multinomial(far, 1)]])
    for _ in range(ROUNDS):
        which = nearest(rows, centres)
        total = torch.zeros(count, device=rows.device).index_add(0, which, weights)
        moved = torch.zeros_like(centres).index_add(0, which, weights[:, None] * rows)
        centres = torch.where(total[:, None] > 0, moved / total[:, None].clamp_min(1e-9), centres)
    shares = torch.bincount(nearest(rows, centres), minlength=count).float() / len(rows)
    order = shares.argsort(descending=True)
    print("shares", [round(float(x), 4) for x in shares[order]], flush=True)
    return centres[order]


def main() -> None:
    """Train, then write."""
    options = _options()
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table, trained = read_table(options.data), network.read_arrays(options.weights)[0]
    trained |= {k: v for k, v in network.read_arrays(options.tables)[0].items() if k.startswith("zeros.")}
    held = {name for draw in STRANGERS for name in draw} | set(CHOICE)
    known = [p for p in sorted(set(table.performers)) if p not in held]
    body = Body(
        table.parents.tolist(), [table.joints.index(n) for n in layout.MOVING],
        torch.tensor(trained["references"], dtype=torch.float32, device=device),
    )  # fmt: skip
    lengths = torch.tensor(trained["lengths"], dtype=torch.float32, device=device)
    sampler = Sampler(frames_of(table, known, device), body, table.joints, lengths)
    sampler.presets = torch.stack([preset_mask(chosen) for chosen in FEW]).to(device)
    sampler.given_shares = sampler.free_shares = (torch.arange(len(FEW), device=device) + 1.0) / len(FEW)
    trainer = ModalTrainer(sampler, options, trained)
    trainer.run()
    write(trainer, options.out / network.POSTURES.name)


def write(trainer: ModalTrainer, path: Path) -> None:
    """Shifts and gate in bytes."""
    from safetensors.numpy import save_file

    own = trainer.average
    arrays = {
        "shifts": own.shifts,
        "gate": own.gate.weight,
        "gate_bias": own.gate.bias,
        "centres": trainer.centres,
    }
    found = {f"postures.{name}": value.detach().cpu().numpy() for name, value in arrays.items()}
    for name in ("postures.shifts", "postures.gate"):
        found |= in_bytes(name, found[name])
    save_file(found, path, {"universal": json.dumps({"steps": trainer.step, "seed": trainer.options.seed})})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=network.FILE)
    parser.add_argument("--tables", type=Path, default=network.TABLES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--postures", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--likely", type=float, default=0.3, help="weight of the likelihood")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=float, default=10.0)
    parser.add_argument("--plain", action="store_true")
    parser.set_defaults(decay=0.0, dropped=0.0, zeros=0.1, average=0.998, minutes=0.0, verbose=False)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    main()
