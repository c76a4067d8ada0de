"""Covariance functions, or kernels, of Gaussian processes: one per class, with gradients and a compiled form.

All have the form (Rasmussen and Williams 2006, chapter 4)

    k(a, b) = alpha g(gamma s(a, b)) + v a'b,      K = k(X, X) + (1 / beta) I,

with a profile g and a squared distance s. Kinds differ in these, and in which of alpha, gamma and v they have. `RBF`
is Eq. 1 of Grochow et al. (2004). A profile is written once, with its first two derivatives: NumPy runs it on matrices
for learning, the compiled functions at the end run it on numbers, at one query point. Parameters are logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.errors import InvalidValueError, UnknownNameError
from poise.skeleton.skeleton import read_only
from poise.types import Array

JITTER = 1e-6  # of the signal variance, added to a kernel matrix's diagonal: duplicate points stay invertible

RBF_, LAPLACIAN, MATERN32, MATERN52, RATIONAL_QUADRATIC, RBF_LINEAR, LINEAR, PERIODIC = range(8)
_SHORTEST = 1e-6  # distance below which rough kernels are smoothed, so that their slopes fall to zero
_VARIANCES = {"signal_variance": 1.0, "linear_variance": 1.0, "noise_precision": -1.0}


# --- profiles: g, dg/du and d2g/du2 at u = gamma s --------------------------------------------------------------------


@compiled
def rbf(u: Any, _: Any) -> tuple[Any, Any, Any]:
    """g = exp(-u / 2)."""
    g = np.exp(-0.5 * u)
    return g, -0.5 * g, 0.25 * g


@compiled
def laplacian(u: Any, _: Any) -> tuple[Any, Any, Any]:
    """g = exp(-r), r^2 = u: Eq. 8 of Huang et al. (2017), with a width of 1 / sqrt(gamma)."""
    r = np.sqrt(u)
    g, bounded = np.exp(-r), np.maximum(r, _SHORTEST)
    return g, -0.5 * g / bounded, 0.25 * g * (1.0 + r) / (bounded * bounded * bounded)


@compiled
def matern32(u: Any, _: Any) -> tuple[Any, Any, Any]:
    """g = (1 + r) exp(-r), r^2 = 3 u."""
    r = np.sqrt(3.0 * u)
    decay = np.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay, 2.25 * decay / np.maximum(r, _SHORTEST)


@compiled
def matern52(u: Any, _: Any) -> tuple[Any, Any, Any]:
    """g = (1 + r + r^2 / 3) exp(-r), r^2 = 5 u."""
    r = np.sqrt(5.0 * u)
    decay = np.exp(-r)
    return (1.0 + r + 5.0 / 3.0 * u) * decay, -5.0 / 6.0 * (1.0 + r) * decay, 25.0 / 12.0 * decay


@compiled
def rational_quadratic(u: Any, shape: Any) -> tuple[Any, Any, Any]:
    """g = (1 + u / (2 shape))^-shape: a mixture of RBF kernels of many widths."""
    base = 1.0 + 0.5 / shape * u
    g = base**-shape
    slope = -0.5 * g / base
    return g, slope, -0.5 * (shape + 1.0) / shape * slope / base


# --- kernels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Kernel:
    """A covariance function with its parameters, kept as logarithms in the order of `names`."""

    logs: Float[Array, "parameters"]

    kind: ClassVar[str]
    number: ClassVar[int]  # the kind's number in the compiled functions
    profile: ClassVar[Any] = staticmethod(rbf)  # one of the profiles above
    names: ClassVar[tuple[str, ...]] = ("signal_variance", "noise_precision", "inverse_width")

    def __post_init__(self) -> None:
        object.__setattr__(self, "logs", read_only(self.logs))
        if self.logs.shape != (len(self.names),) or not np.all(np.isfinite(self.logs)):
            raise InvalidValueError(
                f"a {self.kind} kernel has {len(self.names)} finite log-parameters ({', '.join(self.names)}); "
                f"got {self.logs}"
            )

    def __reduce__(self) -> tuple[type[Kernel], tuple[Array]]:
        """Rebuild the same kernel in another process."""
        return type(self), (self.logs,)

    @staticmethod
    def of(kind: str, logs: Float[Array, "parameters"] | None = None) -> Kernel:
        """The kernel with this name; all its parameters are one unless given."""
        if kind not in KERNELS:
            raise UnknownNameError("kernel", kind, KERNELS)
        return KERNELS[kind](np.zeros(len(KERNELS[kind].names)) if logs is None else logs)

    @cached_property
    def parameters(self) -> Float[Array, "4"]:
        """Alpha, beta, gamma and the kind's own parameter (one if there is none), for the compiled functions."""
        full = np.ones(4)
        full[: len(self.logs)] = np.exp(self.logs)
        return read_only(full)

    @property
    def signal_variance(self) -> float:
        """Alpha; for the linear kernel v."""
        return float(self.parameters[0])

    @property
    def noise_variance(self) -> float:
        """1 / beta."""
        return float(1.0 / self.parameters[1])

    @property
    def inverse_width(self) -> float:
        """Gamma."""
        return float(self.parameters[2])

    @cached_property
    def weights(self) -> tuple[float, float]:
        """Alpha of the profile and v of the linear part; zero if the kind has none."""
        alpha, linear = _plain(_weights)(self.number, self.parameters)
        return float(alpha), float(linear)

    def towards(self, other: Kernel, share: float) -> Kernel:
        """Parameters interpolated linearly: (1 - share) of this and share of the other's."""
        if other.kind != self.kind:
            raise InvalidValueError(f"a {self.kind} kernel cannot be blended with a {other.kind} kernel")
        return type(self)(np.log((1.0 - share) * np.exp(self.logs) + share * np.exp(other.logs)))

    def rescaled(self, factor: float) -> Kernel:
        """The kernel with all variances scaled by a factor (outputs scaled by its square root)."""
        return type(self)(
            self.logs + np.log(factor) * np.array([_VARIANCES.get(name, 0.0) for name in self.names])
        )

    def matrix(self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
        """k(a_i, b_j), without noise."""
        return KernelMatrix(self, a, b).K

    def noisy(self, x: Float[Array, "n inputs"]) -> Float[Array, "n n"]:
        """K with noise and jitter on its diagonal."""
        return NoisyMatrix(self, x).K

    def at(self, x: Float[Array, "n inputs"]) -> NoisyMatrix:
        """K of points, with the terms that its gradients need."""
        return NoisyMatrix(self, x)

    def diagonal(self, x: Float[Array, "n inputs"]) -> Float[Array, "n"]:
        """k(x_i, x_i) with noise."""
        alpha, linear = self.weights
        return alpha + self.noise_variance + linear * np.einsum("na,na->n", x, x)

    def diagonal_slopes(self, x: Float[Array, "n inputs"]) -> Float[Array, "n inputs"]:
        """dk(x_i, x_i)/dx_i: zero for stationary kernels."""
        return 2.0 * self.weights[1] * x

    def slopes_in_x(
        self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m inputs"]]:
        """The matrix and dk(a_i, b_j)/da_i (Grochow et al. 2004, Eq. 20)."""
        found, (alpha, linear) = KernelMatrix(self, a, b), self.weights
        slopes = (alpha * self.inverse_width * found.slope)[:, :, None] * self.turned(a[:, None, :] - b)
        return found.K, slopes + linear * b if linear else slopes

    def squared(self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
        """s(a_i, b_j): the squared distance."""
        return squared_distances(a, b)

    def turned(self, gaps: Float[Array, "n m inputs"]) -> Float[Array, "n m inputs"]:
        """ds/da of gaps a - b."""
        return 2.0 * gaps

    def through_distance(
        self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"], in_squared: Float[Array, "n m"]
    ) -> tuple[Float[Array, "n inputs"], Float[Array, "m inputs"]]:
        """Gradients by both sets of points, from that by s."""
        in_a = 2.0 * (in_squared.sum(axis=1)[:, None] * a - in_squared @ b)
        return in_a, in_a if a is b else 2.0 * (in_squared.sum(axis=0)[:, None] * b - in_squared.T @ a)

    def in_own(self, found: KernelMatrix, dK: Float[Array, "n m"], in_squared: Float[Array, "n m"]) -> float:
        """The gradient by the logarithm of the kind's own parameter (the last of `names`)."""
        del found, dK, in_squared
        return 0.0


class RBF(Kernel):
    """alpha exp(-gamma |a - b|^2 / 2)."""

    kind, number = "rbf", RBF_


class Laplacian(Kernel):
    """alpha exp(-sqrt(gamma) |a - b|), the Matern kernel of degree 1/2: rough, and robust far from the data."""

    kind, number, profile = "laplacian", LAPLACIAN, staticmethod(laplacian)


class Matern32(Kernel):
    """The Matern kernel of degree 3/2: its functions have one derivative."""

    kind, number, profile = "matern32", MATERN32, staticmethod(matern32)


class Matern52(Kernel):
    """The Matern kernel of degree 5/2: its functions have two derivatives."""

    kind, number, profile = "matern52", MATERN52, staticmethod(matern52)


class RationalQuadratic(Kernel):
    """A mixture of RBF kernels of many widths: the smaller its shape, the more of them."""

    kind, number, profile = "rational-quadratic", RATIONAL_QUADRATIC, staticmethod(rational_quadratic)
    names = (*Kernel.names, "shape")

    def in_own(self, found: KernelMatrix, dK: Float[Array, "n m"], in_squared: Float[Array, "n m"]) -> float:
        """dg/d ln shape = shape g (p / (1 + p) - ln(1 + p)), p = u / (2 shape)."""
        del in_squared
        alpha, shape = self.parameters[0], self.parameters[3]
        part = 0.5 / shape * found.u
        return float(alpha * shape * np.vdot(dK, found.g * (part / (1.0 + part) - np.log1p(part))))


@compiled
def chord(gap: float, frequency: float) -> tuple[float, float, float]:
    """(2 / f sin(f gap / 2))^2 and its first two derivatives: the squared chord that an angle f gap spans."""
    half = 2.0 / frequency * np.sin(0.5 * frequency * gap)
    return half * half, 2.0 / frequency * np.sin(frequency * gap), 2.0 * np.cos(frequency * gap)


class Periodic(Kernel):
    """An RBF kernel of chords: every coordinate is an angle, frequency times x (MacKay 1998)."""

    kind, number = "periodic", PERIODIC
    names = (*Kernel.names, "frequency")

    def squared(self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
        """The squared chords between angles (see `chord`)."""
        chords = 2.0 / self.parameters[3] * np.sin(0.5 * self.parameters[3] * (a[:, None, :] - b))
        return np.einsum("nma,nma->nm", chords, chords)

    def turned(self, gaps: Float[Array, "n m inputs"]) -> Float[Array, "n m inputs"]:
        """ds/da of gaps a - b."""
        return np.asarray(2.0 / self.parameters[3] * np.sin(self.parameters[3] * gaps))

    def through_distance(
        self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"], in_squared: Float[Array, "n m"]
    ) -> tuple[Float[Array, "n inputs"], Float[Array, "m inputs"]]:
        """Gradients by both sets of points, from that by s."""
        turned = self.turned(a[:, None, :] - b)
        return np.einsum("nm,nma->na", in_squared, turned), -np.einsum("nm,nma->ma", in_squared, turned)

    def in_own(self, found: KernelMatrix, dK: Float[Array, "n m"], in_squared: Float[Array, "n m"]) -> float:
        """ds/d ln frequency = gap ds/da - 2 s."""
        del dK
        gaps = found.a[:, None, :] - found.b
        along = np.einsum("nm,nma,nma->", in_squared, gaps, self.turned(gaps))
        return float(along - 2.0 * np.vdot(in_squared, found.u) / self.inverse_width)


class Linear(Kernel):
    """v a'b: linear functions through the origin."""

    kind, number = "linear", LINEAR
    names = ("linear_variance", "noise_precision")


class RBFLinear(Kernel):
    """The sum of an RBF and a linear kernel: a linear function, and deviations from it."""

    kind, number = "rbf+linear", RBF_LINEAR
    names = (*Kernel.names, "linear_variance")


KERNELS: Mapping[str, type[Kernel]] = {
    each.kind: each
    for each in (RBF, Laplacian, Matern32, Matern52, RationalQuadratic, RBFLinear, Linear, Periodic)
}


# --- kernel matrices and their gradients ------------------------------------------------------------------------------


class KernelMatrix:
    """K = k(a, b) with u, g(u) and dg/du, and the gradients of a loss through it (Grochow et al., Eqs. 20-23)."""

    def __init__(self, kernel: Kernel, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]) -> None:
        self.kernel, self.a, self.b = kernel, a, b
        alpha, linear = kernel.weights
        self.u = kernel.inverse_width * kernel.squared(a, b)
        self.g, self.slope, _ = _plain(kernel.profile)(self.u, kernel.parameters[3])
        self.K = alpha * self.g
        if linear:
            self.K += linear * (a @ b.T)

    def gradients(
        self, dK: Float[Array, "n m"]
    ) -> tuple[Float[Array, "parameters"], Float[Array, "n inputs"], Float[Array, "m inputs"]]:
        """Gradients by the log-parameters, a and b of a loss whose gradient by K is dK (symmetric if a is b)."""
        kernel, (alpha, linear) = self.kernel, self.kernel.weights
        in_squared = dK * self.slope
        in_squared *= alpha * kernel.inverse_width
        in_a, in_b = kernel.through_distance(self.a, self.b, in_squared)
        along = linear * (dK @ self.b) if linear else np.zeros_like(self.a)
        across = linear * (dK.T @ self.a) if linear else np.zeros_like(self.b)
        in_logs = {
            "signal_variance": alpha * np.vdot(dK, self.g),
            "noise_precision": 0.0,
            "inverse_width": np.vdot(in_squared, self.u) / kernel.inverse_width,
            "linear_variance": np.vdot(self.a, along),
        }
        own = kernel.in_own(self, dK, in_squared)
        return np.array([in_logs.get(name, own) for name in kernel.names]), in_a + along, in_b + across


class NoisyMatrix(KernelMatrix):
    """K = k(x, x) with jitter and, by default, noise on its diagonal."""

    def __init__(self, kernel: Kernel, x: Float[Array, "n inputs"], *, noise: bool = True) -> None:
        super().__init__(kernel, x, x)
        self._noise = kernel.noise_variance if noise else 0.0
        np.einsum("ii->i", self.K)[:] += self._noise + JITTER * kernel.signal_variance

    def in_logs_and_x(
        self, dK: Float[Array, "n n"]
    ) -> tuple[Float[Array, "parameters"], Float[Array, "n inputs"]]:
        """Gradients by the log-parameters and x of a loss whose gradient by K (symmetric) is dK."""
        in_logs, in_a, in_b = self.gradients(dK)
        trace = np.trace(dK)
        in_logs[:2] += JITTER * self.kernel.signal_variance * trace, -self._noise * trace
        return in_logs, in_a + in_b


def squared_distances(a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
    """|a_i - b_j|^2, by one matrix product."""
    squared = -2.0 * (a @ b.T)
    squared += np.einsum("na,na->n", a, a)[:, None]
    squared += np.einsum("ma,ma->m", b, b)
    if a is b:  # rough kernels would see the square root of rounding errors
        np.fill_diagonal(squared, 0.0)
    return np.maximum(squared, 0.0, out=squared)


# --- compiled: one query point against many ---------------------------------------------------------------------------


class Curves(NamedTuple):
    """Work arrays for k(x, x_i) and its derivatives by x; points last, so that loops over them vectorise."""

    rows: Array  # (1 + inputs, points): k without noise, and its gradient
    firsts: Array  # (inputs, points): ds/dx
    seconds: Array  # (inputs, points): d2s/dx2
    bends: Array  # (2, points): d2k/ds2, dk/ds


@compiled
def curves_of(points: Array) -> Curves:
    """Allocate work arrays for the kernel between a query point and these points."""
    count, inputs = points.shape
    return Curves(
        np.empty((1 + inputs, count)),
        np.empty((inputs, count)),
        np.empty((inputs, count)),
        np.empty((2, count)),
    )


@compiled
def kernel_curves(kind: int, parameters: Array, x: Array, points: Array, out: Curves) -> None:
    """Compute k(x, x_i) and its derivatives by x."""
    (alpha, linear), gamma, own = _weights(kind, parameters), parameters[2], parameters[3]
    k, outer, inner = out.rows[0], out.bends[0], out.bends[1]
    k[:] = 0.0
    for a in range(len(x)):
        for i in range(len(points)):
            square, out.firsts[a, i], out.seconds[a, i] = _distance(kind, x[a] - points[i, a], own)
            k[i] += square
    for i in range(len(points)):
        g, slope, bend = profile_of(kind, gamma * k[i], own)
        k[i], outer[i], inner[i] = alpha * g, alpha * gamma * gamma * bend, alpha * gamma * slope
    for a in range(len(x)):
        for i in range(len(points)):
            out.rows[1 + a, i] = inner[i] * out.firsts[a, i]
        if linear != 0.0:
            for i in range(len(points)):
                k[i] += linear * x[a] * points[i, a]
                out.rows[1 + a, i] += linear * points[i, a]


@compiled
def weighed_bends(curves: Curves, weights: Array, hessian: Array) -> None:
    """Add to `hessian` (inputs, inputs) the weighted sum of the second derivatives of k(x, x_i) by x."""
    outer, inner = weights * curves.bends[0], weights * curves.bends[1]
    for a in range(len(hessian)):
        scaled = outer * curves.firsts[a]
        for b in range(a + 1):
            bend = np.dot(scaled, curves.firsts[b])
            hessian[a, b] += bend
            hessian[b, a] += bend if b < a else np.dot(inner, curves.seconds[a])


@compiled
def kernel_self(kind: int, parameters: Array, x: Array, slope: Array) -> float:
    """k(x, x) with noise, and its gradient by x."""
    alpha, linear = _weights(kind, parameters)
    total = alpha + 1.0 / parameters[1]
    for a in range(len(x)):
        total += linear * x[a] * x[a]
        slope[a] = 2.0 * linear * x[a]
    return total


@compiled
def self_bend(kind: int, parameters: Array) -> float:
    """The second derivative of k(x, x) by each coordinate of x."""
    return 2.0 * _weights(kind, parameters)[1]


@compiled
def profile_of(kind: int, u: float, own: float) -> tuple[float, float, float]:
    """The profile of a kind, with its derivatives."""
    if kind == LAPLACIAN:
        return laplacian(u, own)
    if kind == MATERN32:
        return matern32(u, own)
    if kind == MATERN52:
        return matern52(u, own)
    if kind == RATIONAL_QUADRATIC:
        return rational_quadratic(u, own)
    return rbf(u, own)


@compiled
def _distance(kind: int, gap: float, own: float) -> tuple[float, float, float]:
    """The contribution of one coordinate to s, with derivatives."""
    if kind == PERIODIC:
        return chord(gap, own)
    return gap * gap, 2.0 * gap, 2.0


@compiled
def _weights(kind: int, parameters: Array) -> tuple[float, float]:
    """Alpha and v."""
    if kind == LINEAR:
        return 0.0, parameters[0]
    return parameters[0], parameters[3] if kind == RBF_LINEAR else 0.0


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The plain Python version of a compiled function, for NumPy arrays."""
    return getattr(function, "py_func", function)
