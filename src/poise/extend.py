"""All that a prior, constraint, format or protocol from outside needs, in one import."""

from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.evaluation.report import Protocol, ProtocolOptions, register_protocol
from poise.formats import Format, register_format
from poise.formats.files import replacing
from poise.formats.tables import Range
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.priors.learned import LearnedPrior
from poise.priors.predicting import PredictingGuide
from poise.priors.prior import Gaussian, Guide, Plan, Start
from poise.priors.registry import PriorOptions, Stored, register_prior
from poise.priors.terms import MotionModel, Term, WindowGaussian
from poise.schema import Indices, Numbers, Schema
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers.constraints import Constraint, register_constraint
from poise.solvers.measured import MeasuredConstraint, PoseView

__all__ = [
    "Constraint", "Format", "Gaussian", "Guide", "Handles", "Indices", "InvalidValueError", "LearnedPrior", "Markers",
    "MeasuredConstraint", "Motion", "MotionModel", "Numbers", "ParseError", "Plan", "PoiseError", "PoseSpace",
    "PoseView", "PredictingGuide", "PriorOptions", "Protocol", "ProtocolOptions", "Range", "Schema", "Start", "Stored",
    "Term", "WindowGaussian", "register_constraint", "register_format", "register_prior", "register_protocol",
    "replacing",
]  # fmt: skip
