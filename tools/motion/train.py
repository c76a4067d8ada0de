"""Trains the motion prior: `python tools/motion/train.py --data ARCHIVE --out FOLDER`.

Deterministic by seed on one machine. A run that was stopped (`--seconds`) continues from its last checkpoint in
`--out`, or on another machine from the weights of `--begin`. CPU or CUDA.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from losses import NAMES, loss_of, measured  # noqa: E402
from network import Network  # noqa: E402
from tasks import SPLITS, Frames, Layout, Sampler, frames_of  # noqa: E402

from poise.priors.motion.layout import BONES, POINTS  # noqa: E402
from poise.priors.universal.recordings import CHOICE, STRANGERS, read_table  # noqa: E402

_BEGUN = time.monotonic()
WARM = 500  # steps until the full rate
BETWEEN, PAST = (5, 15, 30, 45), (10, 1)
PERIODS = (15, 30, 45)
TRACKED = {"head and hands": (1, 2, 3), "feet too": (1, 2, 3, 4, 5), "pelvis too": (0, 1, 2, 3, 4, 5)}
TRACKED_FRAMES = 48


def main() -> None:
    """Train, measure on performers held out, write the weights."""
    options = _options()
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table = read_table(options.data)
    strangers = sorted(name for draw in STRANGERS for name in draw)
    known = sorted(set(table.performers) - set(strangers) - (set() if options.final else set(CHOICE)))
    learned = frames_of(table, known, device)
    typical = learned.levers[:, [POINTS.index(name) for name in BONES]].norm(dim=-1).mean(0)
    print(
        f"{len(learned.roots)} frames of {len(known)} performers on {device}, {_elapsed():.0f} s", flush=True
    )
    chosen_on = Sampler(frames_of(table, list(CHOICE), device), typical, device)
    trainer = Trainer(Sampler(learned, typical, device, options.backwards, options.swing), options)
    trainer.run(
        lambda network: checked(
            network, chosen_on, argparse.Namespace(**vars(options) | {"windows": options.windows // 8})
        )
    )
    for name, people in (("strangers", strangers), ("choice", list(CHOICE)), ("known", known)):
        frames = frames_of(table, people, device)
        print(
            name, json.dumps(checked(trainer.average, Sampler(frames, typical, device), options)), flush=True
        )
    header = {
        "learned_from": learned.names, "strangers": STRANGERS, "chosen_on": CHOICE, "seed": options.seed,
        "steps": trainer.step, "batch": options.batch, "width": options.width, "blocks": options.blocks,
        "database": "CMU Graphics Lab Motion Capture Database, mocap.cs.cmu.edu, NSF EIA-0196217",
    }  # fmt: skip
    write(trainer.average, {"typical": typical}, header, options.weights / "motion.npz")
    write(trainer.network, {}, header, options.weights / "begin.npz")
    print(f"done after {_elapsed():.0f} s", flush=True)


class Trainer:
    """The network, its average over the last steps, and the optimisers."""

    def __init__(self, sampler: Sampler, options: argparse.Namespace) -> None:
        self.sampler, self.options, device = sampler, options, sampler.device
        self.rows = Layout(options.batch, SPLITS, device)
        self.network = Network(options.width, options.blocks, options.dropped).to(device)
        self.step = self.resumed = 0
        self.begun = 0.0  # seconds at the end of the first step, which compiles
        if options.begin:
            self._begin(options.begin)
        self.average = copy.deepcopy(self.network).eval()
        hidden = [w for w in self.network.blocks.parameters() if w.ndim == 2]
        ends = [self.network.first.weight, self.network.last.weight]
        flat = [w for w in self.network.parameters() if w.ndim == 1]
        self.optimisers = (
            torch.optim.Muon(hidden, options.rate, options.decay, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(
                [{"params": ends}, {"params": flat, "weight_decay": 0.0}],
                lr=options.rate, weight_decay=options.decay, betas=(0.9, 0.98), fused=True,
            ),
        )  # fmt: skip
        compiled = (lambda f: f) if options.plain else torch.compile
        self._draw = compiled(lambda: sampler.draw(self.rows))
        self._loss = compiled(
            lambda batch: loss_of(batch, self.network(batch.inputs, self.place, batch.mask))
        )
        self.place = self.rows.place.float()
        self.kept = options.out / "checkpoint.pt"

    def run(self, check: Callable[[Network], dict[str, list[float]]]) -> None:
        """All steps, or as many as fit into `--seconds`; every `--check` steps, errors on performers held out."""
        options, shown = self.options, time.monotonic()
        if self.kept.exists():
            self._resume()
        parts, since, timed = torch.zeros(len(NAMES), device=self.sampler.device), self.step, None
        while self.step < options.steps and not (options.seconds and _elapsed() > options.seconds):
            rate = self._rate()
            for optimiser in self.optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = rate
            batch = self._draw()
            loss, now = self._loss(batch)
            self.network.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            for optimiser in self.optimisers:
                optimiser.step()
            with torch.no_grad():
                decay = min(options.average, (1 + self.step - self.resumed) / (20 + self.step - self.resumed))
                torch._foreach_lerp_(
                    list(self.average.parameters()), list(self.network.parameters()), 1 - decay
                )
                parts += now
            self.step += 1
            self.begun = self.begun or _elapsed()
            if options.check and self.step % options.check == 0:
                print(self.step, json.dumps(check(self.average)), flush=True)
            if time.monotonic() - shown > options.show:
                values = (parts / (self.step - since)).tolist()  # waits for the device
                now_s = time.monotonic()
                speed = (now_s - (timed or shown)) / (self.step - since) * 1e3
                told = " ".join(f"{name} {value:.4f}" for name, value in zip(NAMES, values, strict=True))
                print(f"{self.step}/{options.steps} {speed:.1f} ms {_elapsed():.0f} s  {told}", flush=True)
                if not math.isfinite(sum(values)):
                    raise SystemExit("the losses are not numbers; use a lower --rate")
                shown = timed = now_s
                since = self.step
                parts.zero_()
                self._save()
        self._save()

    # --- private ---------------------------------------------------------------------------------------------------

    def _rate(self) -> float:
        """Warm-up, then a cosine."""
        warm = min(1.0, (self.step + 1) / WARM, (self.step - self.resumed + 1) / 100)
        share = self.step / self.options.steps
        if self.options.seconds and self.begun:
            share = max(share, (_elapsed() - self.begun) / (self.options.seconds - self.begun))
        return self.options.rate * warm * (0.005 + 0.995 * 0.5 * (1 + math.cos(math.pi * min(share, 1.0))))

    def _save(self) -> None:
        state = {
            "network": self.network.state_dict(), "average": self.average.state_dict(), "step": self.step,
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
        }  # fmt: skip
        part = self.kept.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.kept)

    def _resume(self) -> None:
        state = torch.load(self.kept, map_location=self.sampler.device)
        self.network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        for optimiser, stored in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(stored)
        self.step, self.resumed = state["step"], -(10**6)
        torch.manual_seed(self.options.seed + self.step)
        print(f"continues at step {self.step}", flush=True)

    def _begin(self, path: Path) -> None:
        """Weights of a run on another machine; the optimiser's moments begin again."""
        with np.load(path) as stored:
            state = {
                name: torch.tensor(stored[name].astype(np.float32)) for name in self.network.state_dict()
            }
            self.step = self.resumed = json.loads(str(stored["header"]))["steps"]
        self.network.load_state_dict(state)
        torch.manual_seed(self.options.seed + self.step)
        print(f"continues at step {self.step}, with new moments", flush=True)


@torch.no_grad()
def checked(network: Network, sampler: Sampler, options: argparse.Namespace) -> dict[str, list[float]]:
    """By task: windows; centimetres, degrees and slide of interpolation, the answer and their ratio; and others."""
    found = {}
    for past in PAST:
        for between in BETWEEN:
            length = past + between + 1
            keys = torch.arange(length, device=sampler.device)
            found[f"{past} past, {between} between"] = _checked(
                network, sampler, options, length, (keys < past) | (keys == length - 1)
            )
    for period in PERIODS:
        length = 90 // period * period + 1
        keys = torch.arange(length, device=sampler.device) % period == 0
        found[f"keys every {period}"] = _checked(network, sampler, options, length, keys)
    for name, handles in TRACKED.items():
        there = torch.isin(torch.arange(6), torch.tensor(handles)).to(sampler.device)
        found[name] = _checked(network, sampler, options, TRACKED_FRAMES, there.expand(TRACKED_FRAMES, 6))
    return found


def _checked(
    network: Network, sampler: Sampler, options: argparse.Namespace, length: int, keys: torch.Tensor
) -> list[float]:
    """`keys` has frames that are given wholly, or (frames, handles) that are tracked."""
    frames: Frames = sampler.frames
    windows = [
        (clip, start)
        for clip, count in enumerate(frames.count.tolist())
        for start in range(0, count - length + 1, options.every)
    ]
    windows = windows[:: max(1, len(windows) // options.windows)]
    sums: dict[str, np.ndarray] = {}
    size = min(options.batch, 512)
    for at in range(0, len(windows), size):
        clip, start = torch.tensor(windows[at : at + size], device=sampler.device).T
        rows = Layout(len(clip), ((length,),), sampler.device)
        if keys.ndim == 1:
            batch = sampler.exact(rows, clip, start, keys.expand(len(clip), -1))
        else:  # tracked points; the last frame is the one that live use needs
            batch = sampler.follow(rows, clip, start, keys.expand(len(clip), -1, -1))
            batch.asked = batch.asked & (rows.place == length - 1)
        output = network(batch.inputs, rows.place.float(), batch.mask)
        for name, values in measured(batch, output).items():
            sums[name] = sums.get(name, 0.0) + np.array(values)
    asked, standing = sums["frames"], np.maximum(sums["standing"], 1.0)
    cm, deg, slide = sums["cm"] / asked, sums["deg"] / asked, sums["slide"] / standing
    bends = sums["bend"][:2] / max(sums["bend"][2], 1e-9)
    values = [
        len(windows), *cm[:2], cm[1] / cm[0], *deg[:2], deg[1] / deg[0], *slide, *bends,
        *sums["inside"] / asked, *sums["turns inside"] / asked,
    ]  # fmt: skip
    return [round(float(value), 3) for value in values]


def write(network: Network, tables: dict[str, torch.Tensor], header: dict, path: Path) -> None:
    """All weights in half precision, tables in single."""
    arrays = {
        name: value.detach().cpu().numpy().astype(np.float16) for name, value in network.state_dict().items()
    }
    arrays |= {name: value.cpu().numpy() for name, value in tables.items()}
    np.savez(path, header=json.dumps(header), **arrays)
    print(path.name, f"{path.stat().st_size / 2**20:.1f} MiB", flush=True)


def _elapsed() -> float:
    return time.monotonic() - _BEGUN


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument(
        "--weights", type=Path, help="folder for the weights; by default that of the checkpoint"
    )
    parser.add_argument("--begin", type=Path, help="weights of a run on another machine to continue")
    parser.add_argument("--steps", type=int, default=15000)
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="end by then, the cosine too; 0: after all steps"
    )
    parser.add_argument("--batch", type=int, default=512, help="rows of 96 frames")
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--dropped", type=float, default=0.05, help="share of values left out while training")
    parser.add_argument("--backwards", type=float, default=0.0, help="share of segments that run backwards")
    parser.add_argument("--swing", type=float, default=0.0, help="how much the width of movements varies")
    parser.add_argument("--average", type=float, default=0.9995)
    parser.add_argument(
        "--check",
        type=int,
        default=0,
        help="steps between measures on the performers that settings are chosen on",
    )
    parser.add_argument("--show", type=float, default=10.0, help="seconds between lines")
    parser.add_argument(
        "--every", type=int, default=15, help="frames between the starts of windows that are checked"
    )
    parser.add_argument("--windows", type=int, default=4000, help="at most about so many of them")
    parser.add_argument(
        "--final", action="store_true", help="learn from the performers that settings were chosen on too"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="compile nothing")
    options = parser.parse_args()
    options.weights = options.weights or options.out
    for folder in (options.out, options.weights):
        folder.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    main()
