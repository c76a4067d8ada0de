"""The network: residual blocks, and heads for the mean and the covariance."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from poise.priors.universal import layout

FLOOR = 2e-5  # radians or metres squared: no freedom is surer


class Block(nn.Module):
    """One residual block."""

    def __init__(self, width: int, dropped: float) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)
        self.dropout = nn.Dropout(dropped)
        nn.init.normal_(self.down.weight, std=0.3 * width**-0.5)
        nn.init.zeros_(self.down.bias)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.down(self.dropout(nn.functional.silu(self.up(self.norm(h)))))


class Network(nn.Module):
    """From inputs to the heads' outputs."""

    def __init__(self, width: int = 512, blocks: int = 3, dropped: float = 0.1) -> None:
        super().__init__()
        inputs = sum(rows * columns for _, rows, columns in layout.INPUTS)
        self.first = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(Block(width, dropped) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.mean = _head(width, layout.MEAN)
        self.spread = _head(width, layout.FREEDOMS * (1 + layout.RANK))
        with torch.no_grad():
            self.mean.bias[3] = self.mean.bias[7] = 1.0
            self.spread.bias[: layout.FREEDOMS] = -3.5

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variances and factors."""
        h = self.first(inputs)
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda, cache_enabled=False):
            for block in self.blocks:
                h = block(h)
        return self.heads(self.norm(h.float()))

    def heads(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variances and factors from the last layer's values."""
        spread = self.spread(h)
        variances = spread[:, : layout.FREEDOMS].clamp(-14.0, 3.0).exp() + FLOOR
        factors = 0.3 * spread[:, layout.FREEDOMS :].reshape(-1, layout.FREEDOMS, layout.RANK)
        return self.mean(h), variances, factors


def _head(width: int, outputs: int) -> nn.Linear:
    head = nn.Linear(width, outputs)
    nn.init.normal_(head.weight, std=0.1 * width**-0.5)
    nn.init.zeros_(head.bias)
    return head
