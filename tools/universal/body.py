"""Kinematics of many bodies at once, in PyTorch: rotations, forward kinematics and the Jacobian of points."""

from __future__ import annotations

import torch
from torch import Tensor


def skew(v: Tensor) -> Tensor:
    """The matrices of cross products."""
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).reshape(*v.shape[:-1], 3, 3)


def times(a: Tensor, b: Tensor) -> Tensor:
    """Products of small matrices, element by element: libraries for large ones are slow for millions of these."""
    return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)


def apply(a: Tensor, v: Tensor) -> Tensor:
    """Small matrices times vectors."""
    return (a * v[..., None, :]).sum(-1)


def exponential(v: Tensor) -> Tensor:
    """Rotation matrices of rotation vectors."""
    square = (v * v).sum(-1)[..., None, None] + 1e-12
    angle, k = square.sqrt(), skew(v)
    eye = torch.eye(3, device=v.device)
    return eye + torch.sin(angle) / angle * k + (1 - torch.cos(angle)) / square * times(k, k)


def right_jacobian(v: Tensor) -> Tensor:
    """d log / d v of a rotation vector, in the rotated body's axes."""
    square = (v * v).sum(-1)[..., None, None] + 1e-6
    angle, k = square.sqrt(), skew(v)
    eye = torch.eye(3, device=v.device)
    return (
        eye
        - (1 - torch.cos(angle)) / square * k
        + (angle - torch.sin(angle)) / (square * angle) * times(k, k)
    )


def logarithm(m: Tensor) -> Tensor:
    """Rotation vectors of rotation matrices, by quaternions: valid up to half a turn."""
    t = m.diagonal(dim1=-2, dim2=-1)
    w = (1 + t.sum(-1)).clamp_min(0)
    x = (1 + t[..., 0] - t[..., 1] - t[..., 2]).clamp_min(0)
    y = (1 - t[..., 0] + t[..., 1] - t[..., 2]).clamp_min(0)
    z = (1 - t[..., 0] - t[..., 1] + t[..., 2]).clamp_min(0)
    a, b, c = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    d, e, f = m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0], m[..., 2, 1] + m[..., 1, 2]
    rows = torch.stack(
        [torch.stack(r, -1) for r in ((w, a, b, c), (a, x, d, e), (b, d, y, f), (c, e, f, z))], dim=-2
    )
    largest = torch.stack([w, x, y, z], -1).argmax(-1)
    q = torch.take_along_dim(rows, largest[..., None, None], dim=-2)[..., 0, :]
    q = q / q.norm(dim=-1, keepdim=True)
    q = torch.where(q[..., :1] < 0, -q, q)
    sine = q[..., 1:].norm(dim=-1, keepdim=True)
    scale = torch.where(sine > 1e-6, 2 * torch.atan2(sine, q[..., :1]) / sine.clamp_min(1e-6), 2.0)
    return scale * q[..., 1:]


def from_columns(six: Tensor) -> Tensor:
    """Rotation matrices from their first two columns, made orthonormal."""
    a = torch.nn.functional.normalize(six[..., :3], dim=-1)
    b = six[..., 3:] - (a * six[..., 3:]).sum(-1, keepdim=True) * a
    b = torch.nn.functional.normalize(b, dim=-1)
    return torch.stack([a, b, torch.linalg.cross(a, b)], dim=-1)


def columns(m: Tensor) -> Tensor:
    """The first two columns of matrices."""
    return torch.cat([m[..., 0], m[..., 1]], dim=-1)


class Body:
    """One topology; poses are a root and exponential maps of the moving joints about references."""

    def __init__(self, parents: list[int], moving: list[int], references: Tensor) -> None:
        self.parents, self.moving, self.references = parents, moving, references
        ancestors = torch.zeros(len(parents), len(moving))
        for joint in range(len(parents)):
            at = joint
            while at > 0:
                if at in moving:
                    ancestors[joint, moving.index(at)] = 1.0
                at = parents[at]
        self.ancestors = ancestors.to(references.device)
        others = [joint for joint in range(len(parents)) if joint not in moving]
        self._tree(others, references.device)

    def _tree(self, others: list[int], device: torch.device) -> None:
        """The levels of the tree: joints, and the index of their parents in the level above."""

        def index(numbers: list[int]) -> Tensor:
            return torch.tensor(numbers, device=device)

        listed = [*self.moving, *others]
        self.moving, self.others = index(self.moving), index(others)
        self.order = index([listed.index(joint) for joint in range(len(self.parents))])
        level, self.levels, stored = [0], [], [0]
        while below := [joint for joint, parent in enumerate(self.parents) if parent in level]:
            above = index([level.index(self.parents[joint]) for joint in below])
            self.levels.append((index(below), above))
            stored += below
            level = below
        self.back = index([stored.index(joint) for joint in range(len(self.parents))])

    def local(self, maps: Tensor) -> Tensor:
        """Local rotations of the moving joints: references times maps."""
        return times(self.references[self.moving], exponential(maps))

    def forward(
        self, position: Tensor, root: Tensor, local: Tensor, offsets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Positions and rotations of every joint, one level of the tree at a time."""
        still = self.references[self.others].expand(len(local), -1, -1, -1)
        every = torch.cat([local, still], dim=1)[:, self.order]
        turns, places = root[:, None], position[:, None]
        all_turns, all_places = [turns], [places]
        for joints, above in self.levels:
            bases = turns[:, above]
            places = places[:, above] + apply(bases, offsets[:, joints])
            turns = times(bases, every[:, joints])
            all_turns.append(turns)
            all_places.append(places)
        return torch.cat(all_places, 1)[:, self.back], torch.cat(all_turns, 1)[:, self.back]

    def jacobian(self, maps: Tensor, places: Tensor, turns: Tensor, joints: Tensor, points: Tensor) -> Tensor:
        """(batch, handles, 3, freedoms) of points on joints; freedoms are root position, root turn, maps."""
        lever = points[:, :, None, None, :] - places[:, None, self.moving, None, :]
        axes = times(turns[:, self.moving], right_jacobian(maps)).transpose(-1, -2)[:, None]
        own = torch.linalg.cross(axes, lever) * self.ancestors[joints][..., None, None]
        about = torch.linalg.cross(turns[:, :1].transpose(-1, -2), (points - places[:, :1])[:, :, None])
        along = torch.eye(3, device=maps.device).expand_as(about)
        return torch.cat([along, about, own.flatten(2, 3)], dim=2).transpose(-1, -2)
