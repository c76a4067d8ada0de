"""The kernels of `covariance` at one query point against the active points, compiled for the solver (Eqs. 1, 20).

A kernel is a number (its kind) and four parameters: signal variance alpha, noise precision beta, inverse width gamma,
and one more that is the shape of the rational quadratic, the weight of rbf+linear's linear part, or the periodic
kernel's angular frequency. All but the linear one are alpha g(gamma s), with s a squared distance.
"""

import math

import numpy as np

from poise.compiled import compiled

Array = np.ndarray

RBF, MATERN32, MATERN52, RATIONAL_QUADRATIC, RBF_LINEAR, LINEAR, PERIODIC = range(7)


@compiled
def profile(kind: int, u: float, extra: float) -> tuple[float, float]:
    """g(u) of a kernel alpha g(u), u = gamma s, and dg/du."""
    if kind == MATERN32:
        r = math.sqrt(3.0 * u)
        decay = math.exp(-r)
        return (1.0 + r) * decay, -1.5 * decay
    if kind == MATERN52:
        r = math.sqrt(5.0 * u)
        decay = math.exp(-r)
        return (1.0 + r + r * r / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay
    if kind == RATIONAL_QUADRATIC:
        base = 1.0 + 0.5 * u / extra
        g = base**-extra
        return g, -0.5 * g / base
    g = math.exp(-0.5 * u)
    return g, -0.5 * g


@compiled
def bend(kind: int, u: float, extra: float) -> float:
    """d2g/du2 of a kernel's profile."""
    if kind == MATERN32:
        r = math.sqrt(3.0 * u) + 1e-12  # without bound at u = 0, where what it multiplies is zero
        return 2.25 * math.exp(-r) / r
    if kind == MATERN52:
        return 25.0 / 12.0 * math.exp(-math.sqrt(5.0 * u))
    if kind == RATIONAL_QUADRATIC:
        return float(0.25 * (extra + 1.0) / extra * (1.0 + 0.5 * u / extra) ** (-extra - 2.0))
    return 0.25 * math.exp(-0.5 * u)


@compiled
def kernel_vector(kind: int, parameters: Array, x: Array, actives: Array, k: Array, dk: Array) -> None:
    """Fill k (points,) with k(x, x_i), free of noise, and dk (points, latent) with its gradient in x (Eq. 20)."""
    alpha, gamma, extra = parameters[0], parameters[2], parameters[3]
    latent = len(x)
    for i in range(len(actives)):
        if kind == LINEAR:
            total = 0.0
            for a in range(latent):
                total += x[a] * actives[i, a]
                dk[i, a] = alpha * actives[i, a]
            k[i] = alpha * total
            continue
        squared = 0.0
        for a in range(latent):
            gap = x[a] - actives[i, a]
            if kind == PERIODIC:
                chord = 2.0 / extra * math.sin(0.5 * extra * gap)
                squared += chord * chord
                dk[i, a] = 2.0 / extra * math.sin(extra * gap)
            else:
                squared += gap * gap
                dk[i, a] = 2.0 * gap
        g, slope = profile(kind, gamma * squared, extra)
        k[i] = alpha * g
        for a in range(latent):
            dk[i, a] *= alpha * gamma * slope
        if kind == RBF_LINEAR:
            for a in range(latent):
                k[i] += extra * x[a] * actives[i, a]
                dk[i, a] += extra * actives[i, a]


@compiled
def weighed_bends(
    kind: int, parameters: Array, x: Array, actives: Array, weights: Array, hessian: Array
) -> None:
    """Add to `hessian` (latent, latent) the second derivatives in x of k(x, x_i), summed by weights."""
    if kind == LINEAR:
        return
    alpha, gamma, extra = parameters[0], parameters[2], parameters[3]
    latent = len(x)
    first, second = np.empty(latent), np.full(latent, 2.0)
    for i in range(len(actives)):
        squared = 0.0
        for a in range(latent):
            gap = x[a] - actives[i, a]
            if kind == PERIODIC:
                chord = 2.0 / extra * math.sin(0.5 * extra * gap)
                squared += chord * chord
                first[a], second[a] = 2.0 / extra * math.sin(extra * gap), 2.0 * math.cos(extra * gap)
            else:
                squared += gap * gap
                first[a] = 2.0 * gap
        _, slope = profile(kind, gamma * squared, extra)
        outer = weights[i] * alpha * gamma * gamma * bend(kind, gamma * squared, extra)
        inner = weights[i] * alpha * gamma * slope
        for a in range(latent):
            for b in range(latent):
                hessian[a, b] += outer * first[a] * first[b]
            hessian[a, a] += inner * second[a]


@compiled
def self_bend(kind: int, parameters: Array) -> float:
    """The second derivative of k(x, x) in each coordinate of x."""
    if kind == LINEAR:
        return float(2.0 * parameters[0])
    return float(2.0 * parameters[3]) if kind == RBF_LINEAR else 0.0


@compiled
def kernel_self(kind: int, parameters: Array, x: Array, slope: Array) -> float:
    """k(x, x) with its noise, alpha + 1 / beta for all stationary kernels, and its gradient in x."""
    alpha, noise = parameters[0], 1.0 / parameters[1]
    constant, weight = alpha, 0.0
    if kind == LINEAR:
        constant, weight = 0.0, alpha
    elif kind == RBF_LINEAR:
        weight = parameters[3]
    total = constant + noise
    for a in range(len(x)):
        total += weight * x[a] * x[a]
        slope[a] = 2.0 * weight * x[a]
    return total
