"""L-BFGS for learning: from a start, within bounds, recording the value after every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from poise.types import Array, ShareProgress


def descend(
    loss: Callable[[Array], tuple[float, Array]],
    start: Float[Array, "unknowns"],
    *,
    bounds: Sequence[tuple[float | None, float | None]],
    steps: int,
    memory: int = 20,
    progress: ShareProgress = lambda _: None,
) -> tuple[Float[Array, "unknowns"], Float[Array, "steps"]]:
    """Minimise `loss` (value and gradient) in at most `steps` steps; return the unknowns and the loss per step."""
    from scipy.optimize import minimize  # only now: it takes half a second

    curve: list[float] = []

    def after_step(intermediate_result: object) -> None:
        curve.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        progress(min(1.0, len(curve) / steps))

    options = {"maxiter": steps, "maxcor": memory}
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=after_step, options=options
    )
    return found.x, np.array(curve or [float(found.fun)])
