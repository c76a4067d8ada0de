"""The style prior's solve, compiled: Gauss-Newton on the latent point and the pose together, from smooth to fine.

Each step asks the style for its shape (see `style.local_gaussian`), takes the shared dual step with it, and moves
the latent point by what the rows' pull implies. Stages follow section 6.2 of Grochow et al. 2004: first the annealed
model, then the one between, then the model itself; hard constraints are met by the shared finish in the last metric.
"""

import math

import numpy as np

from poise.compiled import compiled
from poise.priors.style.compiled_covariance import kernel_vector
from poise.priors.style.local_gaussian import Shape, StyleArrays, latent_step, local_shape, objective, room
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, matrix_from_wxyz
from poise.solvers.core import (
    BROKEN,
    STEP_TOLERANCE,
    bring_inside,
    finish,
    included_rows,
    map_step,
)
from poise.solvers.dual_step import Workspace, workspace
from poise.solvers.rows import Blocks, Body

Array = np.ndarray

FREE_ROOT = 1.0  # metres and radians squared: no opinion about where the root is and which way it faces
_LATENT_REACH = 0.5  # of a kernel's width that the latent point may go in one step


@compiled
def solve_style(
    q: Array,
    x: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    styles: tuple[StyleArrays, ...],
    steps: Array,
    base: Array,
    ups: Array,
    contrasts: Array,
    free: Array,
    limits: Array,
    settings: Array,
    errors: Array,
) -> tuple[int, int, float]:
    """Move q and x to a solution through the stages; how it ended, the steps it took, and L_IK there.

    `steps` bounds the steps of each stage; `base`, `ups` and `contrasts` are those of the frame (`observed.Frame`).
    """
    bring_inside(q, limits)
    work = workspace(len(errors), limits.shape[1])
    maps, latent = len(base), len(x)
    local = room(maps, latent)
    covariance = np.zeros((limits.shape[1], limits.shape[1]))
    aims = np.concatenate((np.zeros(ups.shape[1]), contrasts))
    total = 0
    for stage in range(len(styles)):
        style = styles[stage]
        reach = _LATENT_REACH / math.sqrt(style.parameters[2])
        shorten, last = 1.0, np.inf
        for k in range(steps[stage]):
            _aim_up(q, ups, aims)
            variance = local_shape(style, base, aims, q[ROOT_SIZE:], x, local)
            _metric(q, style, x, ups, variance, local, free, covariance, work)
            length, remaining = map_step(
                q, body, blocks, rows, covariance, limits, settings, errors, work, shorten
            )
            gone = _move_latent(x, local, work.pull[ROOT_FREEDOMS:], shorten, reach)
            total += 1
            if length < settings[STEP_TOLERANCE] and gone < 0.02 * reach:
                break
            if k > 1 and remaining > last:
                shorten = max(0.5 * shorten, 0.1)
            last = remaining
    included = included_rows(rows, False)
    status, more = finish(q, body, blocks, rows, covariance, limits, settings, errors, included, work)
    for i in range(len(q)):
        if not math.isfinite(q[i]):
            status = BROKEN
    _aim_up(q, ups, aims)
    return status, total + more, objective(styles[len(styles) - 1], base, aims, q[ROOT_SIZE:], x)


@compiled
def _aim_up(q: Array, ups: Array, aims: Array) -> None:
    """The scaled up features of the root as it is, less what is expected without k(x): the first of the aims."""
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    for i in range(ups.shape[1]):
        aims[i] = ups[0, i] * (m[3 + i] - ups[1, i])


@compiled
def _metric(
    q: Array,
    style: StyleArrays,
    x: Array,
    ups: Array,
    variance: float,
    local: Shape,
    free: Array,
    covariance: Array,
    work: Workspace,
) -> None:
    """Gap and covariance of all freedoms: the maps' local shape, the root's tilt, and nothing for what is held."""
    gap, own, maps = work.gap, local.covariance, len(local.mean)
    gap[:] = 0.0
    for i in range(maps):
        gap[ROOT_FREEDOMS + i] = local.mean[i] - q[ROOT_SIZE + i]
        for j in range(maps):
            covariance[ROOT_FREEDOMS + i, ROOT_FREEDOMS + j] = own[i, j]
    for i in range(ROOT_FREEDOMS, len(gap)):
        if not free[i]:
            gap[i], covariance[i, :], covariance[:, i] = 0.0, 0.0, 0.0
    for i in range(ROOT_FREEDOMS):
        covariance[i, i] = FREE_ROOT if free[i] else 0.0
    if free[3] and ups.shape[1] == 3:
        _tilt(q, style, x, ups, variance, covariance, gap)


@compiled
def _tilt(
    q: Array, style: StyleArrays, x: Array, ups: Array, variance: float, covariance: Array, gap: Array
) -> None:
    """The root leans as the style expects: a turn by expected x actual up, known across it and free about it."""
    k, dk = np.empty(len(style.actives)), np.empty(style.actives.shape)
    kernel_vector(style.kind, style.parameters, x, style.actives, k, dk)
    expected = np.dot(k, np.ascontiguousarray(style.checks[:, :3]))
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    up = np.array([m[3], m[4], m[5]])
    for i in range(3):
        expected[i] = expected[i] / ups[0, i] + ups[1, i]
    expected /= max(math.sqrt(np.dot(expected, expected)), 1e-9)
    turn = np.array(
        [
            expected[1] * up[2] - expected[2] * up[1],
            expected[2] * up[0] - expected[0] * up[2],
            expected[0] * up[1] - expected[1] * up[0],
        ]
    )
    across = min(3.0 * variance / np.dot(ups[0], ups[0]), FREE_ROOT)
    for i in range(3):
        gap[3 + i] = turn[i]
        for j in range(3):
            along = up[i] * up[j]
            covariance[3 + i, 3 + j] = FREE_ROOT * along + across * ((1.0 if i == j else 0.0) - along)


@compiled
def _move_latent(x: Array, local: Shape, pull: Array, shorten: float, reach: float) -> float:
    """Take the latent step, no further than the reach; how far it went."""
    step = latent_step(local, pull)
    length = math.sqrt(np.dot(step, step))
    scale = shorten * min(1.0, reach / max(length, 1e-300))
    x += scale * step
    return scale * length
