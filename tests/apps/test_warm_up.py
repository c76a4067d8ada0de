"""What is compiled ahead, and that nothing is left to compile or load while a studio is in use."""

import subprocess
import sys

import numpy as np
import pytest
from numba import typeof

from poise.apps.warm_up import AFTER, KERNELS, SECONDS, learn_a_style
from poise.performer import act
from poise.priors.dynamics.prior import DynamicsPrior

BLENDS = """
import gc, itertools

import numpy as np
from numba.core.dispatcher import Dispatcher

from poise.apps.warm_up import learn_a_style, warm_up
from poise.performer import act
from poise.priors.blend import BlendPrior
from poise.priors.registry import learn
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.constraints import Position
from poise.solvers.solve import Solver

def loaded():
    ours = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return sorted((one.py_func.__module__, one.py_func.__qualname__, len(one.overloads)) for one in ours)

walk = [act("walk", seconds=1.0, fps=30)]
body = walk[0].skeleton
priors = [learn_a_style(), UniversalPrior(body), *(learn(walk, kind) for kind in ("dynamics", "gaussian", "local"))]
warm_up(["kinematics", "solver", "people", "styles", "performances", "blends"])
before = loaded()
for pair in itertools.permutations(priors, 2):
    solver = Solver(BlendPrior(pair, (0.7, 0.3)), [Position("left_hand", (0.0, 0.0, 0.0))])
    for place in ((0.3, 0.9, 0.2), (0.3, 1.0, 0.2), (-0.4, 0.2, 0.5)):
        solver.solve(targets=np.array([place]))
assert loaded() == before, sorted(set(loaded()) - set(before))
"""


def test_every_set_of_kernels_has_a_time_and_follows_known_sets() -> None:
    assert SECONDS.keys() == KERNELS.keys()
    assert KERNELS.keys() >= AFTER.keys() | {name for names in AFTER.values() for name in names}


def test_a_style_starts_from_points_that_its_kernels_already_know() -> None:
    """Read-only latent points would compile the kernels of a style again."""
    style, place = learn_a_style(), np.array([[0.3, 0.9, 0.2]])
    q = np.concatenate([[0.0, 0.9, 0.0, 1.0, 0.0, 0.0, 0.0], style.mean])
    starts = style.guide(style.space.handles(["left_hand"])).starts(q, place, free_root=True)
    assert starts
    assert all(start.state.flags.writeable for start in starts)


def test_styles_and_motion_models_share_their_kernels() -> None:
    """Arrays in another memory order would compile the solver again."""
    priors = learn_a_style(), DynamicsPrior.learn([act("walk", seconds=1.0, fps=30)])
    assert len({typeof(stage.arrays) for prior in priors for stage in prior.observed(fps=None, known=0)}) == 1


@pytest.mark.slow
def test_blends_use_no_kernel_that_was_not_compiled_ahead() -> None:
    subprocess.run([sys.executable, "-c", BLENDS], check=True)
