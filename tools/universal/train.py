"""Trains the universal prior and writes its file: `python tools/universal/train.py --data ARCHIVE --out FOLDER`.

Deterministic by seed on one machine; a run that was stopped continues from its last checkpoint. CPU or CUDA.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from body import Body, exponential, logarithm  # noqa: E402
from losses import POSITIONS, Pose, errors, finished, freedoms_counted, unlikeliness  # noqa: E402
from network import Network  # noqa: E402
from tasks import Frames, Sampler, Tasks  # noqa: E402
from zeros import fitted_zeros  # noqa: E402

from poise.priors.universal import layout  # noqa: E402
from poise.priors.universal.body import predicted_zeros  # noqa: E402
from poise.priors.universal.network import ZeroWeights, in_bytes  # noqa: E402
from poise.priors.universal.recordings import CHOICE, STRANGERS, PoseTable, read_table  # noqa: E402

SAVE_S = 60.0  # seconds between checkpoints
EVERY = 0.6  # a performer's share grows as the number of frames to this power
WAYS = (
    "mean",
    "bones",
    "spread",
)  # how joint zeros of strangers are taken: none, by bones, and with their spread
CHECKS = (("five, given", 0, True), ("six, free", 1, False), ("three, free", 2, False))
STILL = {"LeftHandIndex1": (0.0, 0.0, -0.12), "RightHandIndex1": (0.0, 0.0, 0.12)}


def main() -> None:
    """Train, then write the weights."""
    options = _options()
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table = read_table(options.data)
    held = {name for draw in STRANGERS for name in draw} | set(CHOICE)
    known = [p for p in sorted(set(table.performers)) if p not in held]
    aside = known[1 :: options.aside] if options.aside else []
    known = [p for p in known if p not in aside]
    performers = [*known, *(CHOICE if options.final else ())]
    learned = frames_of(table, performers, device)
    chosen = frames_of(table, [*CHOICE, *aside], device)
    body = Body(
        table.parents.tolist(),
        [table.joints.index(n) for n in layout.MOVING],
        references(table, held).to(device),
    )
    lengths = learned.bodies[:, [table.joints.index(n) for n in layout.BONES]].norm(dim=-1).mean(0)
    sampler, checks = (Sampler(frames, body, table.joints, lengths) for frames in (learned, chosen))
    print(f"{len(learned.roots)} frames of {len(learned.bodies)} performers on {device}", flush=True)
    trainer = Trainer(sampler, checks, options)
    trainer.run()
    header = {
        "learned_from": [c for c, p in zip(table.clips, table.performers, strict=True) if p in performers],
        "strangers": STRANGERS, "chosen_on": CHOICE, "steps": trainer.step, "seed": options.seed,
        "batch": options.batch,
        "database": "CMU Graphics Lab Motion Capture Database, mocap.cs.cmu.edu, NSF EIA-0196217",
    }  # fmt: skip
    tables = {"references": body.references, "lengths": lengths, "body": learned.bodies.mean(0)}
    arrays = {name: value.cpu().numpy() for name, value in tables.items()}
    arrays |= {f"zeros.{name}": table for name, table in trainer.zero_weights()._asdict().items()}
    write(trainer.average, arrays, header, options.out / "universal.safetensors")
    print("final", json.dumps(trainer.check()))


def frames_of(table: PoseTable, performers: list[str], device: torch.device) -> Frames:
    """The frames of some performers, on the device."""
    names = table.performers
    own = {name: number for number, name in enumerate(performers)}
    picked = np.flatnonzero(np.isin(names[table.clip_of], performers))
    clip = table.clip_of[picked]
    begins = np.r_[True, clip[1:] != clip[:-1]]
    body = np.array([own[name] for name in names[clip]])
    bodies = np.stack([table.offsets[np.flatnonzero(names == name)[0]] for name in performers])
    counts = np.bincount(body, minlength=len(performers))
    shares = np.cumsum((counts ** (EVERY - 1.0))[body])
    moving = [0, *(table.joints.index(name) for name in layout.MOVING)]
    to = lambda array: torch.tensor(array, device=device)  # noqa: E731
    return Frames(
        to(table.rotations[picked][:, moving]), to(table.roots[picked]),
        to(np.arange(len(picked)) - ~begins), to(body), to(bodies), to(shares / shares[-1]),
    )  # fmt: skip


def references(table: PoseTable, held: set[str]) -> torch.Tensor:
    """Per joint, the mean rotation of the clips learned from and of their mirror images."""
    learned = np.flatnonzero(~np.isin(table.performers[table.clip_of], list(held)))[::10]
    found = torch.eye(3).repeat(len(table.joints), 1, 1)
    for name in layout.MOVING:
        other = name.replace("Left", "Right") if "Left" in name else name.replace("Right", "Left")
        other = {"LThumb": "RThumb", "RThumb": "LThumb"}.get(name, other)
        own, mirrored = (torch.tensor(table.rotations[learned, table.joints.index(n)]) for n in (name, other))
        turns = torch.cat([exponential(own), exponential(mirrored * torch.tensor([1.0, -1.0, -1.0]))])
        u, _, v = torch.linalg.svd(turns.double().mean(0))
        found[table.joints.index(name)] = (
            u @ torch.diag(torch.tensor([1, 1, torch.det(u @ v)]).double()) @ v
        ).float()
    for name, vector in STILL.items():
        found[table.joints.index(name)] = exponential(torch.tensor(vector))
    return found


class Trainer:
    """The network, its average over the last steps, and the optimiser."""

    def __init__(self, sampler: Sampler, checks: Sampler, options: argparse.Namespace) -> None:
        self.sampler, self.checks, self.options = sampler, checks, options
        self.device = sampler.points.device
        self.network = self.made()
        self.zeros = torch.zeros(len(sampler.frames.bodies), 1 + len(layout.MOVING), 3, device=self.device)
        self.zeros.requires_grad_(options.zeros > 0)
        self.average = copy.deepcopy(self.network).eval()
        self.rate = torch.tensor(0.0, device=self.device)
        self.optimiser = torch.optim.AdamW(
            [{"params": self.network.parameters()}, {"params": [self.zeros], "weight_decay": 0.0}],
            lr=self.rate, weight_decay=options.decay, betas=(0.9, 0.99), capturable=self.device.type == "cuda",
        )  # fmt: skip
        self.step, self.steps, self.finish_weight = 0, options.steps, torch.tensor(0.0, device=self.device)
        self.kept = options.out / "checkpoint.pt"
        self.losses = torch.zeros(5, device=self.device)

    def made(self) -> Network:
        """The network to train."""
        options = self.options
        return Network(options.width, options.blocks, options.dropped).to(self.device)

    def run(self) -> None:
        """All steps, with a bar."""
        self._resume()
        begun = saved = shown = time.monotonic()
        first = self.step
        once = self._captured() if self.device.type == "cuda" and not self.options.plain else self._once
        while self.step < self.steps:
            self._schedule()
            once()
            self.step += 1
            if self.options.minutes and self.step - first in (100, 500):
                begun = self._paced(begun, self.step - first)
            now = time.monotonic()
            if now - shown > self.options.show:
                shown = now
                self._bar(now - begun, first + 100)
            if now - saved > SAVE_S:
                saved = now
                self._save()
        self._save()

    def _paced(self, begun: float, done: int) -> float:
        """After some steps, how many fit into the minutes; when those began that are timed."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        now = time.monotonic()
        if done < 500:
            return now
        left = 60.0 * self.options.minutes - (now - _BEGUN)
        self.steps = self.step + max(0, int(left * 400 / (now - begun)))
        return begun

    def check(self, count: int = 4096) -> dict[str, dict[str, list[float]]]:
        """Of performers held out: degrees, centimetres, degrees without their zeros, shares of truths within 95 %."""
        shares, found = self.checks.frames.shares, {}
        picked = torch.rand(count, generator=torch.Generator().manual_seed(1)).double().to(self.device)
        chosen = torch.searchsorted(shares, picked).clamp_max(len(shares) - 1)
        zero_weights = self.zero_weights()
        with torch.no_grad():
            for name, preset, given in CHECKS:
                found[name] = {how: self._checked(chosen, preset, given, zero_weights, how) for how in WAYS}
        return found

    def zero_weights(self) -> ZeroWeights:
        """Joint zeros of all performers, and how bones predict them."""
        bodies, zeros = (x.detach().double().cpu().numpy() for x in (self.sampler.frames.bodies, self.zeros))
        return fitted_zeros(bodies, zeros)[0]

    # --- private ---------------------------------------------------------------------------------------------------

    def _checked(
        self, chosen: torch.Tensor, preset: int, given: bool, zero_weights: ZeroWeights, how: str
    ) -> list[float]:
        body, sampler = self.sampler.body, self.checks
        tasks = sampler.exact(chosen, preset, given=given)
        known = zero_weights.mean[None]
        if how != "mean":
            known = predicted_zeros(zero_weights, layout.figure(sampler.frames.bodies.double().cpu().numpy()))
        known = torch.tensor(known, device=self.device).float().expand(len(sampler.frames.bodies), -1)
        zeros = known[tasks.who].reshape(len(chosen), -1, 3)
        mean, variances, factors = self.average(tasks.inputs)
        pose = Pose.named(mean, tasks, zeros)
        if not given:
            tasks = sampler.again(tasks, pose.position, pose.root)
            mean, variances, factors = self.average(tasks.inputs)
            pose = Pose.named(mean, tasks, zeros)
        counted = freedoms_counted(tasks)
        if how == "spread":
            values, vectors = np.linalg.eigh(zero_weights.spread)
            low = torch.tensor(
                (vectors * np.sqrt(np.maximum(values, 0)))[:, -40:], device=self.device
            ).float()
            low = torch.nn.functional.pad(low, (0, 0, 3, 0)).expand(len(factors), -1, -1)
            factors = torch.cat([factors, low], -1)
        variances, factors = variances * counted, factors * counted[..., None]
        met = finished(body, pose, tasks, variances, factors, rounds=4)
        result = []
        for at in (pose, met):
            turns = body.local(at.maps).transpose(-1, -2) @ tasks.local
            angle = ((turns.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-1, 1).acos()
            places, _ = body.forward(at.position, at.root, body.local(at.maps), tasks.offsets)
            result += [math.degrees(angle.mean()), 100 * float((places - tasks.places).norm(dim=-1).mean())]
        apart = logarithm(turns)
        own = torch.zeros(len(sampler.frames.bodies), *apart.shape[1:], device=self.device)
        own = (
            own.index_add(0, tasks.who, apart)
            / tasks.who.bincount(minlength=len(own)).clamp_min(1)[:, None, None]
        )
        result.append(math.degrees((apart - own[tasks.who]).norm(dim=-1).mean()))
        gap = pose.gap(Pose(tasks.position, tasks.root, tasks.maps))
        spread = (variances + factors.square().sum(-1)).clamp_min(1e-9)
        inside = (gap.square() / spread)[:, 6:].reshape(len(gap), -1, 3).sum(-1) < 7.815
        return [round(x, 3) for x in (*result, float(inside.float().mean()))]

    def _once(self) -> None:
        sampler, body = self.sampler, self.sampler.body
        tasks = sampler.draw(self.options.batch)
        mean, variances, factors = self.network(tasks.inputs)
        zeros = self._zeros(tasks)
        counted = freedoms_counted(tasks)
        pose = Pose.named(mean, tasks, zeros)
        turn, place = errors(body, pose, tasks)
        nll = unlikeliness(pose, tasks, variances, factors)
        met = finished(body, pose, tasks, variances * counted, factors * counted[..., None])
        met_turn, met_place = errors(body, met, tasks)
        weight = self.finish_weight
        loss = (
            (turn + POSITIONS * place).mean() * (1 - 0.6 * weight) + 0.05 * nll.mean()
            + weight * (met_turn + POSITIONS * met_place).mean() + self.options.zeros * zeros.square().mean()
        )  # fmt: skip
        self.optimiser.zero_grad(set_to_none=False)
        loss.backward()
        for parameter in (*self.network.parameters(), *([self.zeros] if self.options.zeros else [])):
            parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        with torch.no_grad():
            decay = self.options.average
            for kept, new in zip(self.average.parameters(), self.network.parameters(), strict=True):
                kept.lerp_(new, 1 - decay)
            now = torch.stack([x.mean() for x in (turn, place, nll, met_turn, met_place)])
            self.losses.lerp_(now, 0.01)

    def _zeros(self, tasks: Tasks) -> torch.Tensor:
        """The performers' joint zeros, the root's first."""
        own = self.zeros[tasks.who]
        return torch.where(tasks.mirror, own[:, self.sampler.swap_maps] * -self.sampler.across, own)

    def _captured(self):
        """The step as one graph of the device, which costs no launches."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._once()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._once()
        return graph.replay

    def _schedule(self) -> None:
        """Warm-up, then a cosine; the finish joins in after a tenth."""
        share = self.step / max(self.steps, 1)
        warm = min(1.0, self.step / 500)
        self.rate.fill_(self.options.rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share))))
        self.finish_weight.fill_(min(1.0, max(0.0, (share - 0.1) / 0.2)))

    def _bar(self, seconds: float, first: int) -> None:
        turn, place, nll, met_turn, met_place = self.losses.tolist()
        if not math.isfinite(turn + nll + met_turn):
            raise SystemExit("the losses are not numbers; use a lower --rate")
        done = int(30 * self.step / self.steps)
        print(
            f"[{'#' * done}{'.' * (30 - done)}] {self.step}/{self.steps} {seconds / (self.step - first) * 1e3:.1f} ms "
            f"rot {turn:.4f} pos {place:.4f} nll {nll:.3f} met {met_turn:.4f} {met_place:.4f}",
            flush=True,
        )  # fmt: skip
        if self.options.verbose:
            print(self.check(), flush=True)

    def _save(self) -> None:
        state = {
            "network": self.network.state_dict(), "average": self.average.state_dict(), "steps": self.steps,
            "optimiser": self.optimiser.state_dict(), "zeros": self.zeros.detach(), "step": self.step,
            "random": torch.get_rng_state(),
        }  # fmt: skip
        part = self.kept.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.kept)

    def _resume(self) -> None:
        if self.kept.exists():
            state = torch.load(self.kept, map_location=self.device)
            self.network.load_state_dict(state["network"])
            self.average.load_state_dict(state["average"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.zeros.data.copy_(state["zeros"])
            self.step, self.steps = state["step"], max(state["steps"], self.options.steps)
            torch.set_rng_state(state["random"].cpu())


def write(network: Network, tables: dict[str, np.ndarray], header: dict, path: Path) -> None:
    """Matrices in bytes, all else as float32, in one safetensors file."""
    from safetensors.numpy import save_file

    arrays = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    kept = {name: array.astype(np.float32) for name, array in (arrays | tables).items()}
    for name, array in arrays.items():
        if array.ndim == 2:
            kept |= in_bytes(name, array)
    save_file({n: np.ascontiguousarray(a) for n, a in kept.items()}, path, {"universal": json.dumps(header)})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=15600)
    parser.add_argument("--minutes", type=float, default=0.0, help="as many steps as fit, instead of --steps")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument(
        "--dropped", type=float, default=0.1, help="share of values inside a block, while training"
    )
    parser.add_argument(
        "--zeros", type=float, default=0.1, help="how much joint zeros of performers cost; 0: none"
    )
    parser.add_argument("--average", type=float, default=0.9995)
    parser.add_argument("--show", type=float, default=10.0, help="seconds between lines of the bar")
    parser.add_argument(
        "--aside", type=int, default=0, help="keep every Nth performer aside, to choose settings with"
    )
    parser.add_argument(
        "--final",
        action="store_true",
        help="learn from the performers that settings were chosen on too, once all is chosen",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--plain", action="store_true", help="on CUDA, launch each step instead of replaying one graph"
    )
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


_BEGUN = time.monotonic()

if __name__ == "__main__":
    main()
