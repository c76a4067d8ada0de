"""Poise: a few handles in, a natural whole-body pose or motion out.

```python
poise.pose({"right_hand": (0.2, 1.4, 0.3)}).save("pose.png")
model = poise.learn(["walk_1.bvh", "walk_2.bvh"], kind="style")
solution = poise.solve(model, {"right_hand": (0.2, 1.4, 0.3)})
```

The names below are imported when first used, so that `import poise` is quick and brings in nothing compiled.
"""

from typing import TYPE_CHECKING, Any

from poise.lazy import lazily

if TYPE_CHECKING:
    from poise import apps, capture, engine, geometry, library, motion, performer, pictures, skeleton, vision
    from poise.apps.animate import animate
    from poise.apps.inbetweening import PoseKey, Walk
    from poise.apps.keyframing import inbetween, keyframe
    from poise.apps.learning import learn
    from poise.apps.outputs import save, show
    from poise.apps.posing import pose
    from poise.apps.repairing import clean, repair
    from poise.apps.retargeting import retarget
    from poise.apps.simulating import simulate
    from poise.apps.virtual_markers import virtual_markers
    from poise.capture.performance import Performance
    from poise.capture.setup import perform
    from poise.errors import PoiseError
    from poise.evaluation.report import register_protocol
    from poise.formats import Format, read, register_format, write
    from poise.geometry.cameras import Camera
    from poise.motion import Motion
    from poise.motion.markers import Markers
    from poise.priors.blend import BlendPrior
    from poise.priors.dynamics.prior import DynamicsPrior
    from poise.priors.gaussian import GaussianPrior
    from poise.priors.local.prior import LocalPrior
    from poise.priors.model_file import load
    from poise.priors.registry import register_prior
    from poise.priors.style.prior import StylePrior
    from poise.priors.universal.prior import UniversalPrior
    from poise.skeleton import JointLimits, Pose, Skeleton
    from poise.skeleton.pose_space import Handle
    from poise.solvers.constraints import (
        Against,
        Apart,
        CentreOfMass,
        Distance,
        HalfSpace,
        Line,
        LookAt,
        Orientation,
        Pinned,
        Plane,
        Position,
        Projection,
        register_constraint,
    )
    from poise.solvers.corrections import Corrections
    from poise.solvers.measured import MeasuredConstraint
    from poise.solvers.problem import Settings
    from poise.solvers.solution import MotionSolution, Solution, Status
    from poise.solvers.solve import Solver, solve, solve_batch, track
    from poise.studio.notebook import view

    __version__: str

__all__ = [
    "Against", "Apart", "BlendPrior", "Camera", "CentreOfMass", "Corrections", "Distance", "DynamicsPrior", "Format",
    "GaussianPrior", "HalfSpace", "Handle", "JointLimits", "Line", "LocalPrior", "LookAt", "Markers",
    "MeasuredConstraint", "Motion", "MotionSolution", "Orientation", "Performance", "Pinned", "Plane", "PoiseError",
    "Pose", "PoseKey", "Position", "Projection", "Settings", "Skeleton", "Solution", "Solver", "Status", "StylePrior",
    "UniversalPrior", "Walk", "__version__", "animate", "apps", "capture", "clean", "engine", "geometry", "inbetween",
    "keyframe", "learn", "library", "load", "motion", "perform", "performer", "pictures", "pose", "read",
    "register_constraint", "register_format", "register_prior", "register_protocol", "repair", "retarget", "save",
    "show", "simulate", "skeleton", "solve", "solve_batch", "track", "view", "virtual_markers", "vision", "write",
]  # fmt: skip

_HOMES = {
    "": "apps capture engine geometry library motion performer pictures skeleton vision",
    "apps.animate": "animate",
    "apps.inbetweening": "PoseKey Walk",
    "apps.keyframing": "inbetween keyframe",
    "apps.learning": "learn",
    "apps.outputs": "save show",
    "apps.posing": "pose",
    "apps.repairing": "clean repair",
    "apps.retargeting": "retarget",
    "apps.simulating": "simulate",
    "apps.virtual_markers": "virtual_markers",
    "capture.performance": "Performance",
    "capture.setup": "perform",
    "errors": "PoiseError",
    "evaluation.report": "register_protocol",
    "formats": "Format read register_format write",
    "geometry.cameras": "Camera",
    "motion.markers": "Markers",
    "motion.motion": "Motion",
    "priors.blend": "BlendPrior",
    "priors.dynamics.prior": "DynamicsPrior",
    "priors.gaussian": "GaussianPrior",
    "priors.local.prior": "LocalPrior",
    "priors.model_file": "load",
    "priors.registry": "register_prior",
    "priors.style.prior": "StylePrior",
    "priors.universal.prior": "UniversalPrior",
    "skeleton.pose_space": "Handle",
    "skeleton.skeleton": "JointLimits Pose Skeleton",
    "solvers.constraints": "Against Apart CentreOfMass Distance HalfSpace Line LookAt Orientation Pinned Plane "
    "Position Projection register_constraint",
    "solvers.corrections": "Corrections",
    "solvers.measured": "MeasuredConstraint",
    "solvers.problem": "Settings",
    "solvers.solution": "MotionSolution Solution Status",
    "solvers.solve": "Solver solve solve_batch track",
    "studio.notebook": "view",
}
_find = lazily(__name__, _HOMES, explaining=True)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("poise")
    return _find(name)


def __dir__() -> list[str]:
    return __all__
