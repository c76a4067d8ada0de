"""The network that is trained: a transformer encoder over frames with rotary positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from poise.priors.motion import layout

HEAD = 40  # width of an attention head
LONGEST = 200.0  # frames: the longest wave of the rotary positions


class Network(nn.Module):
    """One token a frame; (rows, frames, inputs) to (rows, frames, outputs), in float32 at both ends."""

    def __init__(self, width: int, blocks: int, dropped: float) -> None:
        super().__init__()
        self.first = nn.Linear(layout.WIDTH, width)
        self.blocks = nn.ModuleList(Block(width, dropped) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, layout.LEFT)
        nn.init.normal_(self.last.weight, std=1e-3)
        nn.init.zeros_(self.last.bias)
        self.register_buffer("scales", torch.tensor(layout.SCALES), persistent=False)

    def forward(self, inputs: Tensor, place: Tensor, mask: Tensor) -> Tensor:
        """The outputs, in their units; `place` is each frame's number in its segment."""
        x = self.first(inputs)
        waves = LONGEST ** -torch.linspace(0, 1, HEAD // 2, device=inputs.device)
        angle = place[:, None, :, None] * waves
        rotary = angle.cos(), angle.sin()
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=self.training):
            for block in self.blocks:
                x = block(x, rotary, mask)
        return self.last(self.norm(x.float())) * self.scales


class Block(nn.Module):
    """Attention, then a layer of hidden units; both add to the stream."""

    def __init__(self, width: int, dropped: float) -> None:
        super().__init__()
        self.heads = width // HEAD
        self.norm, self.inner = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropped)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """The stream after this block."""
        asked, keys, values = (
            self.mix(self.norm(x)).unflatten(-1, (3, self.heads, HEAD)).permute(2, 0, 3, 1, 4)
        )
        asked, keys = _rotated(asked, rotary), _rotated(keys, rotary)
        x = x + self.drop(self.out(_attended(asked, keys, values, mask).transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.inner(x)), approximate="tanh")))


def _attended(asked: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    if asked.is_cuda:
        return nn.functional.scaled_dot_product_attention(asked, keys, values, attn_mask=mask)
    scores = asked @ (keys * HEAD**-0.5).transpose(
        -1, -2
    )  # several times faster on a CPU, backwards above all
    return scores.masked_fill(~mask, -1e4).softmax(-1).to(values.dtype) @ values


def _rotated(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotary
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)
