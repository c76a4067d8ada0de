"""Kernels of the style prior under one interface (Eq. 1 and beyond), with gradients in log-parameters and in x.

The paper has the RBF kernel and names others, chosen by the data, as future work. All but the linear kernel are
alpha g(gamma s), s a squared distance; they differ in g. Every kernel ends in white noise of variance 1 / beta.
`compiled_covariance` has the same kernels for one query point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.priors.style import compiled_covariance as kinds
from poise.skeleton.skeleton import read_only

Array = np.ndarray

JITTER = 1e-6  # of the signal variance, added to a kernel matrix's diagonal: duplicate points stay invertible

_SHARED = ("signal_variance", "noise_precision", "inverse_width")  # alpha, beta, gamma
PARAMETER_NAMES: dict[str, tuple[str, ...]] = {
    "rbf": _SHARED,
    "matern32": _SHARED,
    "matern52": _SHARED,
    "rational-quadratic": (*_SHARED, "shape"),
    "rbf+linear": (*_SHARED, "linear_variance"),
    "linear": _SHARED[:2],
    "periodic": (*_SHARED, "frequency"),
}
_NUMBERS = {
    "rbf": kinds.RBF,
    "matern32": kinds.MATERN32,
    "matern52": kinds.MATERN52,
    "rational-quadratic": kinds.RATIONAL_QUADRATIC,
    "rbf+linear": kinds.RBF_LINEAR,
    "linear": kinds.LINEAR,
    "periodic": kinds.PERIODIC,
}


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel with its parameters, kept as logarithms in the order of `PARAMETER_NAMES`."""

    kind: str
    logs: Float[Array, "parameters"]

    def __post_init__(self) -> None:
        if self.kind not in PARAMETER_NAMES:
            raise UnknownNameError("kernel", self.kind, PARAMETER_NAMES)
        object.__setattr__(self, "logs", read_only(self.logs))
        names = PARAMETER_NAMES[self.kind]
        if self.logs.shape != (len(names),) or not np.all(np.isfinite(self.logs)):
            raise InvalidValueError(
                f"a {self.kind} kernel has {len(names)} finite log-parameters ({', '.join(names)}); got {self.logs}"
            )

    def __reduce__(self) -> tuple[type[Kernel], tuple[str, Array]]:
        """What another process makes the same kernel from."""
        return Kernel, (self.kind, self.logs)

    @classmethod
    def start(cls, kind: str) -> Kernel:
        """All parameters one, as learning starts (appendix B)."""
        if kind not in PARAMETER_NAMES:
            raise UnknownNameError("kernel", kind, PARAMETER_NAMES)
        return cls(kind, np.zeros(len(PARAMETER_NAMES[kind])))

    @property
    def number(self) -> int:
        """The kind as the compiled kernels take it."""
        return _NUMBERS[self.kind]

    @cached_property
    def parameters(self) -> Float[Array, "4"]:
        """Alpha, beta, gamma and one more (one where the kind has none), as the compiled kernels take them."""
        full = np.ones(4)
        full[: len(self.logs)] = np.exp(self.logs)
        return read_only(full)

    @property
    def signal_variance(self) -> float:
        """Alpha."""
        return float(self.parameters[0])

    @property
    def noise_variance(self) -> float:
        """1 / beta."""
        return float(1.0 / self.parameters[1])

    def towards(self, other: Kernel, share: float) -> Kernel:
        """Parameters interpolated linearly, (1 - share) of this and share of the other's (section 6.2)."""
        if other.kind != self.kind:
            raise InvalidValueError(f"a {self.kind} kernel does not blend into a {other.kind} kernel")
        return Kernel(self.kind, np.log((1.0 - share) * np.exp(self.logs) + share * np.exp(other.logs)))

    def rescaled(self, factor: float) -> Kernel:
        """All variances times a factor; with scales times its root, L_GP and L_IK stay as they are."""
        logs = self.logs.copy()
        logs[0] += np.log(factor)
        logs[1] -= np.log(factor)
        if self.kind == "rbf+linear":
            logs[3] += np.log(factor)
        return Kernel(self.kind, logs)

    def matrix(self, a: Float[Array, "n latent"], b: Float[Array, "m latent"]) -> Float[Array, "n m"]:
        """k(a_i, b_j) without noise."""
        alpha, _, gamma, extra = self.parameters
        if self.kind == "linear":
            return np.asarray(alpha * (a @ b.T))
        g, _ = _profile(self.kind, gamma * _squared(self, a, b), extra)
        g *= alpha
        return g + extra * (a @ b.T) if self.kind == "rbf+linear" else g

    def diagonal(self, x: Float[Array, "n latent"]) -> Float[Array, "n"]:
        """k(x_i, x_i) with noise."""
        constant = 0.0 if self.kind == "linear" else self.signal_variance
        return constant + self.noise_variance + self._linear_variance * np.einsum("na,na->n", x, x)

    def diagonal_slopes(self, x: Float[Array, "n latent"]) -> Float[Array, "n latent"]:
        """dk(x_i, x_i)/dx_i: zero for stationary kernels."""
        return 2.0 * self._linear_variance * x

    @property
    def _linear_variance(self) -> float:
        return float({"linear": self.parameters[0], "rbf+linear": self.parameters[3]}.get(self.kind, 0.0))

    def noisy(self, x: Float[Array, "n latent"]) -> Float[Array, "n n"]:
        """The kernel matrix K of Eq. 1, its diagonal with noise and jitter."""
        K = self.matrix(x, x)
        np.einsum("ii->i", K)[:] += self.noise_variance + JITTER * self.signal_variance
        return K

    def at(self, x: Float[Array, "n latent"]) -> KernelMatrix:
        """The kernel matrix of points, kept with what its gradients need."""
        return KernelMatrix(self, x)

    def slopes_in_x(
        self, a: Float[Array, "n latent"], b: Float[Array, "m latent"]
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m latent"]]:
        """The matrix and dk(a_i, b_j)/da_i (Eq. 20)."""
        alpha, _, gamma, extra = self.parameters
        if self.kind == "linear":
            slopes = np.broadcast_to(alpha * b, (len(a), *b.shape))
            return self.matrix(a, b), slopes
        g, slope = _profile(self.kind, gamma * _squared(self, a, b), extra)
        gaps = a[:, None, :] - b[None, :, :]
        turned = np.sin(extra * gaps) / extra if self.kind == "periodic" else gaps
        slopes = (2.0 * alpha * gamma) * slope[:, :, None] * turned
        if self.kind == "rbf+linear":
            return alpha * g + extra * (a @ b.T), slopes + extra * b
        return alpha * g, slopes


class KernelMatrix:
    """K of some points, and the gradients of a loss through it (Eqs. 20 to 23)."""

    def __init__(self, kernel: Kernel, x: Float[Array, "n latent"]) -> None:
        self.kernel, self.x = kernel, x
        alpha, _, gamma, extra = kernel.parameters
        if kernel.kind == "linear":
            self.K = kernel.noisy(x)
            return
        self._u = gamma * _squared(kernel, x, x)
        self._g, self._slope = _profile(kernel.kind, self._u, extra)
        self.K = alpha * self._g
        if kernel.kind == "rbf+linear":
            self.K += extra * (x @ x.T)
        np.einsum("ii->i", self.K)[:] += kernel.noise_variance + JITTER * alpha

    def gradients(
        self, dK: Float[Array, "n n"]
    ) -> tuple[Float[Array, "parameters"], Float[Array, "n latent"]]:
        """Gradients in the log-parameters and in x of a loss whose gradient in K (symmetric) is dK."""
        kernel, x = self.kernel, self.x
        alpha, _, gamma, extra = kernel.parameters
        on_diagonal = np.trace(dK)
        noise, jitter = -kernel.noise_variance * on_diagonal, JITTER * on_diagonal
        if kernel.kind == "linear":
            linear, linear_x = _linear_gradients(x, dK)
            return np.array([alpha * (linear + jitter), noise]), alpha * linear_x
        in_squared = dK * self._slope
        in_squared *= alpha * gamma
        signal = alpha * (np.vdot(dK, self._g) + jitter)
        if kernel.kind == "periodic":
            in_x, frequency = _periodic_gradients(x, in_squared, extra)
            return np.array([signal, noise, np.vdot(in_squared, self._u) / gamma, frequency]), in_x
        in_x = 4.0 * (in_squared.sum(axis=1)[:, None] * x - in_squared @ x)
        logs = [signal, noise, 0.5 * np.vdot(x, in_x)]  # gaps grow with x as with the root of gamma
        if kernel.kind == "rbf+linear":
            linear, linear_x = _linear_gradients(x, dK)
            return np.array([*logs, extra * linear]), in_x + extra * linear_x
        if kernel.kind == "rational-quadratic":
            logs.append(alpha * np.vdot(dK, _shape_gradient(self._g, self._u, extra)))
        return np.array(logs), in_x


def _profile(
    kind: str, u: Float[Array, "n m"], extra: float
) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
    """g(u) and dg/du."""
    if kind == "matern32":
        r = np.sqrt(3.0 * u)
        decay = np.exp(-r)
        return (1.0 + r) * decay, -1.5 * decay
    if kind == "matern52":
        r = np.sqrt(5.0 * u)
        decay = np.exp(-r)
        return (1.0 + r + 5.0 / 3.0 * u) * decay, -5.0 / 6.0 * (1.0 + r) * decay
    if kind == "rational-quadratic":
        base = 1.0 + 0.5 / extra * u
        g = base**-extra
        return g, -0.5 * g / base
    g = np.exp(-0.5 * u)
    return g, -0.5 * g


def _squared(kernel: Kernel, a: Float[Array, "n latent"], b: Float[Array, "m latent"]) -> Float[Array, "n m"]:
    """Squared distances; chords of the circle instead of gaps for the periodic kernel."""
    if kernel.kind == "periodic":
        frequency = kernel.parameters[3]
        chords = 2.0 / frequency * np.sin(0.5 * frequency * (a[:, None, :] - b[None, :, :]))
        return np.einsum("nma,nma->nm", chords, chords)
    squared = -2.0 * (a @ b.T)
    squared += np.einsum("na,na->n", a, a)[:, None]
    squared += np.einsum("ma,ma->m", b, b)
    return np.maximum(squared, 0.0, out=squared)


def _linear_gradients(
    x: Float[Array, "n latent"], dK: Float[Array, "n n"]
) -> tuple[float, Float[Array, "n latent"]]:
    weighted = dK @ x
    return float(np.vdot(weighted, x)), 2.0 * weighted


def _periodic_gradients(
    x: Float[Array, "n latent"], slope: Float[Array, "n n"], frequency: float
) -> tuple[Float[Array, "n latent"], float]:
    """In x, and in the log-frequency, given the gradient in the squared chords."""
    gaps = x[:, None, :] - x[None, :, :]
    chords = 2.0 / frequency * np.sin(0.5 * frequency * gaps)
    in_x = 4.0 / frequency * np.einsum("nm,nma->na", slope, np.sin(frequency * gaps))
    in_log = 2.0 * chords * (gaps * np.cos(0.5 * frequency * gaps) - chords)
    return in_x, float(np.einsum("nm,nma->", slope, in_log))


def _shape_gradient(g: Float[Array, "n n"], u: Float[Array, "n n"], shape: float) -> Float[Array, "n n"]:
    """The rational quadratic's dg/d ln shape."""
    part = 0.5 / shape * u
    return np.asarray(shape * g * (part / (1.0 + part) - np.log1p(part)))
