"""Two latent variable models in GPyTorch, learned until they stall; not a benchmark by itself.

GPyTorch's own GPLVM has point estimates of x, inducing points and Adam. The exact one, which its library does not have,
is written with its kernel and its Cholesky solver: one factorisation for all features, L-BFGS with a strong Wolfe line
search. Both start where ours does, in double precision, on one thread.
"""

from __future__ import annotations

from collections.abc import Callable

import gpytorch
import numpy as np
import torch
from gpytorch.models.gplvm import BayesianGPLVM, PointLatentVariable
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from benchmarks.latent_models import LatentModel, stalled

CHUNK = 20  # L-BFGS steps between two checks of the objective
RATE = 0.05  # of Adam
JITTER = 1e-6  # on the diagonal of the inducing points' kernel matrix

Array = np.ndarray


def exact(scaled: Array, start: Array) -> LatentModel:
    """The maximum likelihood over x and the kernel, exact over all frames."""
    torch.set_num_threads(1)
    y, x = torch.tensor(scaled), torch.nn.Parameter(torch.tensor(start))
    kernel, likelihood = _kernel(), gpytorch.likelihoods.GaussianLikelihood().double()

    def objective() -> torch.Tensor:
        noisy = kernel(x).add_diagonal(likelihood.noise)
        fit, volume = noisy.inv_quad_logdet(inv_quad_rhs=y, logdet=True)
        return 0.5 * (fit + y.shape[1] * volume) / len(y)

    unknowns = [x, *kernel.parameters(), *likelihood.parameters()]
    optimiser = torch.optim.LBFGS(
        unknowns, max_iter=CHUNK, history_size=20, line_search_fn="strong_wolfe", tolerance_change=0.0
    )
    steps = _minimise(optimiser, objective, CHUNK)
    latents = x.detach().numpy() / kernel.base_kernel.lengthscale.item()
    return LatentModel(latents, latents, scaled, kernel.outputscale.item(), likelihood.noise.item(), steps)


def inducing(scaled: Array, start: Array, points: int) -> LatentModel:
    """GPyTorch's own GPLVM: the maximum of a lower bound, with learned inducing points."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    y, model = torch.tensor(scaled), _Inducing(scaled, start, points).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    unknowns = [*model.parameters(), *likelihood.parameters()]
    optimiser = torch.optim.Adam(unknowns, lr=RATE)
    steps = _minimise(optimiser, lambda: -bound(model(model.sample_latent_variable()), y.T).sum(), 1)
    return model.in_one_form(likelihood.noise.item(), steps)


class _Inducing(BayesianGPLVM):  # type: ignore[misc]
    """One kernel for all features, as in the other models."""

    def __init__(self, scaled: Array, start: Array, points: int) -> None:
        frames, features = scaled.shape
        spread = np.linspace(0, frames - 1, points).round().astype(int)
        x = PointLatentVariable(frames, start.shape[1], torch.nn.Parameter(torch.tensor(start)))
        outputs = CholeskyVariationalDistribution(points, batch_shape=torch.Size([features]))
        super().__init__(x, VariationalStrategy(self, torch.tensor(start[spread]), outputs))
        self.mean, self.kernel = gpytorch.means.ZeroMean(), _kernel()

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The process at x, before any data."""
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def in_one_form(self, noise: float, steps: int) -> LatentModel:
        """The equivalent exact process over the inducing points."""
        self.eval()
        active = self.variational_strategy.inducing_points
        expected, K = self(active).mean.T, self.kernel(active).to_dense() + JITTER * torch.eye(len(active))
        outputs = expected + noise * torch.linalg.solve(K, expected)
        width, variance = self.kernel.base_kernel.lengthscale.item(), self.kernel.outputscale.item()
        latents, active = ((each / width).numpy() for each in (self.X(), active))
        return LatentModel(latents, active, outputs.numpy(), variance, noise, steps)


def _kernel() -> gpytorch.kernels.ScaleKernel:
    return gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()


def _minimise(optimiser: torch.optim.Optimizer, objective: Callable[[], torch.Tensor], chunk: int) -> int:
    """Minimise until the objective stalls; return the number of steps."""
    curve: list[float] = []

    def evaluate() -> torch.Tensor:
        optimiser.zero_grad()
        value = objective()
        value.backward()
        return value

    while not stalled(curve):
        curve += [float(optimiser.step(evaluate).detach())] * chunk
    return len(curve)
