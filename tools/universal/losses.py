"""The training losses: the named pose, the pose after the exact finish, and the Gaussian."""

from __future__ import annotations

import math

import torch
from body import Body, apply, exponential, from_columns, logarithm, times
from tasks import Tasks
from torch import Tensor

from poise.priors.universal import layout

POSITIONS = 8.0  # radians per metre of joint position
TAILS = 12.0  # degrees of freedom of the Student distribution: unseen people are far out
JITTER = 3e-6  # of a diagonal of ones
SOFT = 2e-6  # metres squared: variance of a handle in the finish


class Pose:
    """A batch of poses in F: root position, root rotation, maps."""

    def __init__(self, position: Tensor, root: Tensor, maps: Tensor) -> None:
        self.position, self.root, self.maps = position, root, maps

    @classmethod
    def named(cls, mean: Tensor, tasks: Tasks, zeros: Tensor) -> Pose:
        """The pose a mean names for performers with these joint zeros; a given root is F itself."""
        maps = mean[:, 9:].reshape(len(mean), -1, 3) + zeros[:, 1:]
        given = tasks.given
        position = torch.where(given, torch.zeros_like(mean[:, :3]), mean[:, :3])
        eye = torch.eye(3, device=mean.device)
        root = torch.where(given[..., None], eye, times(from_columns(mean[:, 3:9]), exponential(zeros[:, 0])))
        return cls(position, root, maps)

    def still(self) -> Pose:
        """The pose without gradients."""
        return Pose(self.position.detach(), self.root.detach(), self.maps.detach())

    def moved(self, step: Tensor) -> Pose:
        """The pose after a tangent step."""
        turn = exponential(step[:, 3:6])
        return Pose(
            self.position + step[:, :3],
            times(self.root, turn),
            self.maps + step[:, 6:].reshape(self.maps.shape),
        )

    def gap(self, other: Pose) -> Tensor:
        """The tangent step to another pose; of a map's two representations the nearer one."""
        size = other.maps.norm(dim=-1, keepdim=True).clamp_min(1e-6)
        wound = other.maps * (1 - 2 * math.pi / size)
        apart = lambda maps: (maps - self.maps.detach()).square().sum(-1, keepdim=True)  # noqa: E731
        near = torch.where(apart(wound) < apart(other.maps), wound, other.maps)
        turn = logarithm(times(self.root.transpose(-1, -2), other.root))
        return torch.cat([other.position - self.position, turn, (near - self.maps).flatten(1)], -1)


def finished(
    body: Body, pose: Pose, tasks: Tasks, variances: Tensor, factors: Tensor, rounds: int = 2
) -> Pose:
    """The most likely pose that meets the handles, by some steps in the dual form.

    Gradients take the last step's linearisation as it is; they flow through the mean and the covariance.
    """
    at = pose
    for _ in range(rounds):
        with torch.no_grad():
            rows, lacking = _linearised(body, at, tasks)
        wanted = lacking + apply(rows, pose.gap(at.still()))
        spread, low = rows * variances[:, None], rows @ factors
        gram = spread @ rows.transpose(-1, -2) + low @ low.transpose(-1, -2)
        pull = solved(gram + SOFT * torch.eye(gram.shape[-1], device=gram.device), wanted)[0]
        step = apply(spread.transpose(-1, -2), pull) + apply(factors, apply(low.transpose(-1, -2), pull))
        at = pose.moved(step * (4.0 / step.norm(dim=-1, keepdim=True).clamp_min(4.0)))
    return at


def _linearised(body: Body, at: Pose, tasks: Tasks) -> tuple[Tensor, Tensor]:
    """The Jacobian of the handles at a pose, and their residuals."""
    places, turns = body.forward(at.position, at.root, body.local(at.maps), tasks.offsets)
    joints, mask = tasks.handle_joints, tasks.handle_mask[..., None]
    held = apply(torch.take_along_dim(turns, joints[..., None, None], 1), tasks.handle_offsets)
    points = torch.take_along_dim(places, joints[..., None], 1) + held
    rows = body.jacobian(at.maps, places, turns, joints, points) * mask[..., None]
    return rows.flatten(1, 2), ((tasks.handle_targets - points) * mask).flatten(1)


def solved(matrix: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K^-1 b, b' K^-1 b and log det K; the matrix is first scaled to a diagonal of ones, for single precision."""
    scale = matrix.diagonal(dim1=-2, dim2=-1).rsqrt()
    even = matrix * scale[..., :, None] * scale[..., None, :]
    x, square, volume = Solved.apply(even + JITTER * torch.eye(b.shape[-1], device=b.device), b * scale)
    return x * scale, square, volume - 2 * scale.log().sum(-1)


class Solved(torch.autograd.Function):
    """K^-1 b, b' K^-1 b and log det K of positive definite matrices, with gradients by the inverse."""

    @staticmethod
    def forward(ctx, matrix: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        lower = torch.linalg.cholesky_ex(matrix).L
        eye = torch.eye(matrix.shape[-1], device=b.device).expand_as(matrix)
        root = torch.linalg.solve_triangular(lower, eye, upper=False)
        sound = torch.isfinite(root).all(-1).all(-1)[:, None, None]
        root, lower = torch.where(sound, root, 0.0), torch.where(sound, lower, eye)
        half = apply(root, b)
        x = apply(root.transpose(-1, -2), half)
        ctx.save_for_backward(root, x)
        return x, half.square().sum(-1), 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx, to_x: Tensor, to_square: Tensor, to_volume: Tensor) -> tuple[Tensor, Tensor]:
        root, x = ctx.saved_tensors
        y = apply(root.transpose(-1, -2), apply(root, to_x))
        to_b = y + 2 * to_square[:, None] * x
        outer = -(y + to_square[:, None] * x)[..., :, None] * x[..., None, :]
        return outer + to_volume[:, None, None] * (root.transpose(-1, -2) @ root), to_b


def errors(body: Body, pose: Pose, tasks: Tasks) -> tuple[Tensor, Tensor]:
    """Per task: the mean chord of joint rotations (about radians), the mean distance of joints in metres."""
    local = body.local(pose.maps)
    places, _ = body.forward(pose.position, pose.root, local, tasks.offsets)
    chords = _length((local - tasks.local).flatten(-2)) / math.sqrt(2.0)
    root = _length((pose.root - tasks.root).flatten(-2)) / math.sqrt(2.0)
    return (chords.sum(1) + 2 * root) / (chords.shape[1] + 2), _length(places - tasks.places).mean(1)


def unlikeliness(pose: Pose, tasks: Tasks, variances: Tensor, factors: Tensor) -> Tensor:
    """Per task, minus the log density of the truth, of Student's distribution, per freedom."""
    gap = pose.gap(Pose(tasks.position, tasks.root, tasks.maps))
    counted = freedoms_counted(tasks)
    gap, factors = gap * counted, factors * counted[..., None]
    variances = torch.where(counted > 0, variances, torch.ones_like(variances))
    scaled = factors / variances[..., None]
    inner = torch.eye(layout.RANK, device=gap.device) + factors.transpose(-1, -2) @ scaled
    _, along, volume = solved(inner, apply(scaled.transpose(-1, -2), gap))
    square = (gap.square() / variances).sum(-1) - along
    volume = volume + variances.log().sum(-1)
    count = counted.sum(-1)
    return (0.5 * volume + 0.5 * (TAILS + count) * torch.log1p(square.clamp_min(0) / TAILS)) / count


def freedoms_counted(tasks: Tasks) -> Tensor:
    """Per task and degree of freedom 1, or 0 for a given root."""
    counted = torch.ones(len(tasks.inputs), layout.FREEDOMS, device=tasks.inputs.device)
    counted[:, :6] = 1.0 - tasks.given.float()
    return counted


def _length(v: Tensor) -> Tensor:
    return (v.square().sum(-1) + 1e-8).sqrt()
