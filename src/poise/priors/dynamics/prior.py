"""The motion prior: a latent space of motion with dynamics and a moving root; for the solver, like a style."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.tables import Range
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.latent import Fit, annealed_kernel
from poise.gp.process import Posterior
from poise.motion.motion import Motion
from poise.priors.dynamics import simulation
from poise.priors.dynamics import structure as layouts
from poise.priors.dynamics.flow import (
    FLOW_ARRAYS,
    NO_SURFACE,
    Flow,
    Points,
    Ring,
    Surface,
    cyclic_surface,
    mixed,
    surface_through,
)
from poise.priors.dynamics.learning import Learned, learn_motion
from poise.priors.dynamics.likelihood import MotionLikelihood, recorded_accelerations
from poise.priors.dynamics.sequences import (
    RATE,
    ROOT_FEATURES,
    LearnedFrames,
    count_bodies,
    given_rhythm,
    poses_from_features,
    read_rhythms,
    root_features,
    rotation_from,
    sequences_of,
)
from poise.priors.dynamics.structure import Structure, structure_from_text
from poise.priors.latent.model import ACTIVE, LOGS, LatentModel
from poise.priors.latent.prior import SAMPLED, LatentPrior, declared, residual_correlation
from poise.priors.poses import limits_of, motion_hash
from poise.priors.registry import PriorOptions, Stored
from poise.priors.style.prior import StylePrior
from poise.priors.terms import Accelerations, Targets, Term, Unknowns
from poise.schema import Declared, Indices, Numbers, Schema, choice, flag, real, row, several, text, whole
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.skeleton import JointLimits, read_only
from poise.types import Array

# --- options ----------------------------------------------------------------------------------------------------------


CYLINDER = "transitions"  # the default model


@dataclass(frozen=True)
class DynamicsOptions(PriorOptions):
    """Transitions are detected at foot landings, given with the rhythm, or left out."""

    topology: Annotated[str | None, "the latent space (default: transitions)"] = None
    transitions: Annotated[Literal["auto", "none"] | None, "auto: where feet land; or none"] = None
    activities: Annotated[
        str | None, "the activity of each clip, as in walk,walk,run (default: found by the feet)"
    ] = None
    active: Annotated[
        int | None, Range(least=1), "the number of frames that it keeps (default: chosen by the data)"
    ] = None
    rhythm: Annotated[
        Path | None, "a file of poise phase with phases, activities and transitions, which you may correct"
    ] = None
    phase: Annotated[
        Literal["found", "learned"] | None,
        "whether phases are found (or given) or learned (default: as the topology says)",
    ] = None

    method: Annotated[
        Literal["cylinder", "urtasun2008"] | None,
        "our own changes to the models, or the models as Urtasun et al. 2008 published them",
    ] = None

    def arguments(self, motions: Sequence[Motion]) -> dict[str, Any]:
        """The latent space, and the rhythm file's data for the clips, by clip name."""
        if self.rhythm is not None and self.activities:
            raise InvalidValueError("the rhythm file already has the activities; change them there")
        arguments: dict[str, Any] = {"topology": self.structure(motions), "inducing": self.active}
        if self.activities:
            arguments["activities"] = [name.strip() for name in self.activities.split(",")]
        if self.rhythm is not None:
            given = given_rhythm(read_rhythms(self.rhythm), [motion.name for motion in motions], motions)
            arguments |= vars(given)
        return arguments

    def structure(self, motions: Sequence[Motion]) -> Structure:
        """The latent space for a motion model of these clips, as described.

        By default, clips of several bodies get one more axis, because people differ in several ways.
        """
        structure = structure_from_text(self.topology or CYLINDER)
        if self.topology is None and count_bodies(motions) > 1:
            structure = structure.with_another_axis()
        if self.transitions == "none":
            structure = structure.without_transitions()
        elif not structure.uses_transitions:
            structure = structure.with_transitions()
        if self.phase is not None:
            structure = replace(structure, learned_phase=self.phase == "learned")
        return structure.as_published() if self.method == "urtasun2008" else structure


# --- the prior --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RootModel:
    """The root's height and steps over the same latent space: mean + k(x) K^-1 outputs."""

    mean: Float[Array, "4"]
    scales: Float[Array, "4"]
    outputs: Float[Array, "active 4"]

    def __post_init__(self) -> None:
        for name in ("mean", "scales", "outputs"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


class ExpectedFeatures(NamedTuple):
    """A motion model's prediction of all features at latent points, the root's last, with its variance."""

    features: Float[Array, "n features"]
    slopes: Float[Array, "n latent features"]
    variance: Float[Array, "n"]
    in_variance: Points  # gradient of the variance


def _declared(header: Mapping[str, Any], lengths: Mapping[str, int]) -> Declared:
    """The arrays of the latent space, the root, the training frames and every activity's flow."""
    phases = str(len(Structure.restored(header["structure"]).phases))
    found: dict[str, Numbers | Indices] = {
        **declared(header, lengths),
        "root.mean": Numbers(axes="4"),
        "root.scales": Numbers(axes="4", least=1e-9, most=1e9),
        "root.outputs": Numbers(axes="active 4"),
        "frames.lengths": Indices(axes="sequences", least=1),
    }
    found |= {f"phase.{name}": Numbers(axes="poses") for name in header["phases"]}
    for number in range(header["transition_sets"]):
        found[f"transitions.{number}"] = Indices(axes=f"points.{number}", below="poses", empty=True)
    for number, (_, _, order, _) in enumerate(header["flows"]):
        flow, steps = f"flow.{number}", f"steps.{number}"
        inputs = "latent" if order == 1 else "both"
        found |= {
            f"{flow}.kernel": replace(LOGS, axes=f"parameters.{number}"),
            f"{flow}.inputs": Numbers(axes=f"{steps} {inputs}"),
            f"{flow}.outputs": Numbers(axes=f"{steps} latent"),
            f"{flow}.turn": Numbers(axes="latent latent"),
            f"{flow}.home": Numbers(axes="latent"),
            f"{flow}.beat": Numbers(axes=phases, empty=True),
            f"{flow}.advances": Numbers(axes=f"{steps} {phases}", empty=True),
        }
    return found


class DynamicsPrior(LatentPrior):
    """A model of motion of one skeleton: a latent space with dynamics, and the root's motion."""

    kind = "dynamics"
    learned_more = StylePrior.learned_more  # as a style, without dynamics
    learns_again = False  # without parts of its clips, for a held-out record: too slow
    about = (
        "a latent space of motion, such as a cylinder of walks and runs, for poise simulate and poise animate"
    )
    Options = DynamicsOptions
    schema = Schema(
        {
            **LatentPrior.schema.header,
            "structure": layouts.HEADER,
            "activities": several(text(), least=1),
            "phases": several(text(), most=64),
            "transition_sets": whole(0, 10_000),
            "flows": several(row(text(), choice(*KERNELS), whole(1, 2), real(0.0, 1e6)), most=1000),
        },
        _declared,
        LatentPrior.schema.longest,
        later={**LatentPrior.schema.later, "limit_cycles": (flag, False)},
    )

    def __init__(
        self,
        model: LatentModel,
        *,
        root: RootModel,
        flows: tuple[Flow, ...],
        frames: LearnedFrames,
        structure: Structure,
        limits: JointLimits | None = None,
        correlation: Float[Array, "maps maps"] | None = None,
    ) -> None:
        super().__init__(model, limits=limits, correlation=correlation)
        self.root, self.flows, self.frames, self.structure = root, flows, frames, structure

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        progress: Callable[[float], None] = lambda _: None,
        topology: str | Structure = CYLINDER,
        activities: Sequence[str] | None = None,
        phases: Sequence[Float[Array, "_frames"]] | None = None,
        transitions: Sequence[Int[Array, "_points"]] | None = None,
        **options: Any,
    ) -> DynamicsPrior:
        """Learn from clips of one topology, with the latent space given by `topology` (see `description`)."""
        sequences = sequences_of(motions, activities=activities, phases=phases, transitions=transitions)
        structure = structure_from_text(topology) if isinstance(topology, str) else topology
        learned = learn_motion(sequences, structure, progress=progress, **options)
        prior = cls.of_learned(learned)
        prior.clips = tuple((motion.name, motion_hash(motion)) for motion in motions)
        return prior

    @property
    def summary(self) -> str:
        """A short description of the learned model."""
        labels = ", ".join(each.label for each in self.structure.dimensions)
        doing = ", ".join(
            f"{self.frames.activities.count(name)} x {name}" for name in self.frames.activity_names
        )
        return f"({labels}), {doing}, {len(self.model.active)} of {len(self.model.latents)} poses active"

    @classmethod
    def of_learned(cls, learned: Learned) -> DynamicsPrior:
        """Create the prior from a learned model; features without variation are stiff and stay at their mean."""
        sequences, count = learned.sequences, learned.sequences.features.dimension
        mean, scales = sequences.mean, sequences.all_scales(learned.scales)
        recorded = sequences.y - mean
        recorded[learned.active] = 0.0
        recorded[np.ix_(learned.active, sequences.varying)] = learned.outputs
        of_pose = np.flatnonzero(sequences.varying[:count])
        fit = Fit(learned.kernel, scales[of_pose], learned.latents, learned.active, learned.curve)
        model = LatentModel(
            features=sequences.features,
            kernel=learned.kernel,
            mean=mean[:count],
            scales=scales[:count],
            latents=learned.latents,
            active=learned.active,
            recorded=recorded[:, :count],
            speakers=ACTIVE,
            annealed=annealed_kernel(recorded[:, of_pose], fit, rng=np.random.default_rng(0)),
            learning_curve=learned.curve,
        )
        maps = sequences.y[:, : sequences.space.size - ROOT_SIZE]
        prior = cls(
            model,
            root=RootModel(mean[count:], scales[count:], recorded[learned.active, count:]),
            flows=learned.flows,
            frames=LearnedFrames(
                sequences.lengths, sequences.activities, dict(sequences.phases), sequences.transitions
            ),
            structure=learned.structure,
            limits=limits_of(sequences.space, maps),
            correlation=residual_correlation(model, maps),
        )
        chosen = np.arange(0, len(maps), max(1, len(maps) // SAMPLED))  # of the poses, each at its own tilt
        q = np.zeros((len(chosen), prior.space.size))
        q[:, ROOT_SIZE:] = maps[chosen]
        ups = sequences.y[chosen, maps.shape[1] : maps.shape[1] + 3]
        q[:, 3:ROOT_SIZE] = rotation_from(ups, np.zeros(len(chosen)))
        likelihoods = [prior.log_likelihood(pose) for pose in q]
        prior.quantiles = read_only(np.percentile(likelihoods, np.arange(101)))
        return prior

    # --- motion ----------------------------------------------------------------------------------------------------

    def predict_all(self, x: Points) -> Float[Array, "n features"]:
        """All features at latent points: the pose's, and the root's height and steps."""
        return self.all_mean + self.process.mean(x)

    @cached_property
    def process(self) -> Posterior:
        """The posterior of all features minus their mean, the root's last."""
        known = self.model.posterior
        return replace(known, weights=np.hstack([known.weights, known.inverse @ self.root.outputs]))

    @cached_property
    def all_mean(self) -> Float[Array, "features"]:
        """The mean of all features, the root's last."""
        return np.concatenate([self.model.mean, self.root.mean])

    @cached_property
    def all_scales(self) -> Float[Array, "features"]:
        """The scales of all features, the root's last."""
        return np.concatenate([self.model.scales, self.root.scales])

    def features_of(self, q: Float[Array, "frames size"], fps: float) -> Float[Array, "frames features"]:
        """All features of the frames of a motion, the root's last."""
        return np.hstack([self.model.features.of_frames(q, fps), root_features(q, fps)])

    def expected(self, x: Points) -> ExpectedFeatures:
        """The prediction of all features at latent points, with its gradients."""
        process = self.process
        k, dk = process.kernel.slopes_in_x(x, process.inputs)
        slopes = np.stack([dk[:, :, a] @ process.weights for a in range(x.shape[1])], axis=1)
        return ExpectedFeatures(
            self.all_mean + k @ process.weights, slopes, *process.variance_slopes(x, k, dk)
        )

    def advance(self, now: Points, before: Points) -> tuple[Points, Float[Array, "n"]]:
        """The next latent points after one step of the dynamics (1/30 s), and their variance."""
        return mixed(self.flows, now, before)[:2]

    def advance_slopes(self, now: Points, before: Points) -> Float[Array, "n latent latent"]:
        """The Jacobian of the next points by the current ones."""
        slopes = np.stack([flow.slopes(now, before)[0] for flow in self.flows])
        return np.asarray(np.einsum("nf,fnab->nab", mixed(self.flows, now, before)[2], slopes))

    @property
    def paths(self) -> list[Float[Array, "frames latent"]]:
        """The latent paths of the training motions."""
        return [self.latents[first:end] for first, end in self.frames.bounds()]

    def motion_of(
        self,
        latents: Float[Array, "frames latent"],
        *,
        fps: float = RATE,
        at: tuple[float, float] = (0.0, 0.0),
        yaw: float = 0.0,
        pace: float = 1.0,
        name: str = "",
    ) -> Motion:
        """The motion along a latent path, with the root as the model predicts, scaled by `pace`."""
        features = self.predict_all(latents)
        features[:, -ROOT_FEATURES + 1 :] *= pace
        frames = self.space.frames_from_q(self.poses_of(features, fps=fps, at=at, yaw=yaw))
        return Motion(self.space.skeleton, fps, *frames, name=name)

    def poses_of(
        self,
        features: Float[Array, "frames features"],
        *,
        fps: float = RATE,
        at: tuple[float, float] = (0.0, 0.0),
        yaw: float = 0.0,
    ) -> Float[Array, "frames size"]:
        """Pose vectors of features, with the root's steps summed from a position and a yaw."""
        return poses_from_features(self.space, features, fps, at=at, yaw=yaw)

    @cached_property
    def surface(self) -> Surface:
        """The surface through its training points, if it has phases: a cylinder, a torus."""
        return surface_through(self.structure, self.model.latents, dict(self.frames.phases))

    @property
    def unrolled(self) -> tuple[Ring, int] | None:
        """For a cylinder: the ring through the training points, by angle around its centre, and the other dimension."""
        if self.model.dimensions != 3 or len(self.structure.phases) != 1:
            return None
        (source,) = self.structure.phases
        own = self.structure.places_of(source)
        around = self.model.latents[:, own] - self.model.latents[:, own].mean(axis=0)
        angles = np.arctan2(around[:, 1], around[:, 0])
        (ring,) = surface_through(self.structure, self.model.latents, {source: angles}).rings
        (along,) = set(range(3)) - set(own)
        return ring, along

    def motion_start(
        self, targets: Targets, *, frames: int, fps: float, rng: np.random.Generator
    ) -> Unknowns:
        """Poses and latent points near the targets, from simulations."""
        return simulation.motion_start(self, targets, frames=frames, fps=fps, rng=rng)

    def motion_terms(self, targets: Targets, *, frames: int, fps: float) -> list[Term]:
        """The likelihood of a motion, and accelerations as recorded (not as published)."""
        del targets
        if frames < 2:
            raise InvalidValueError(f"a motion model needs at least 2 frames; got {frames}")
        likelihood = MotionLikelihood(self, fps)
        if self.structure.published:
            return [likelihood]
        return [likelihood, Accelerations((fps**2 / recorded_accelerations(self)) ** 2)]

    def start_in(self, activity: str | None = None) -> int:
        """The index of a training frame to start from: the first of an activity."""
        names = self.frames.activity_names
        if activity is None:
            return 0
        if activity not in names:
            raise UnknownNameError("activity", activity, names)
        return int(np.argmax(self.frames.activity_of == names.index(activity)))

    # --- files -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """The learned arrays, by name."""
        frames = self.frames
        own = {
            "root.mean": self.root.mean,
            "root.scales": self.root.scales,
            "root.outputs": self.root.outputs,
            "frames.lengths": np.array(frames.lengths),
            **{f"phase.{name}": radians for name, radians in frames.phases.items()},
            **{f"transitions.{number}": points for number, points in enumerate(frames.transitions)},
        }
        for number, flow in enumerate(self.flows):
            own[f"flow.{number}.kernel"] = flow.kernel.logs
            own |= {f"flow.{number}.{name}": getattr(flow, name) for name in FLOW_ARRAYS}
        return {**super().arrays(), **own}

    def header(self) -> dict[str, Any]:
        """The clips it was learned from, and the settings."""
        return {
            **super().header(),
            "structure": self.structure.header(),
            "activities": self.frames.activities,
            "phases": list(self.frames.phases),
            "transition_sets": len(self.frames.transitions),
            "limit_cycles": True,
            "flows": [[flow.name, flow.kernel.kind, flow.order, flow.pace] for flow in self.flows],
        }

    @classmethod
    def restored(cls, stored: Stored) -> DynamicsPrior:
        """Create the prior from the contents of `arrays` and `header`."""
        arrays, header = stored.arrays, stored.header
        _check_together(arrays, header)
        structure = Structure.restored(header["structure"])
        phases = {name: arrays[f"phase.{name}"] for name in header["phases"]}
        surface = cyclic_surface(structure, arrays["latents"], phases)
        flows = tuple(
            Flow(
                name=name,
                kernel=Kernel.of(kind, arrays[f"flow.{number}.kernel"]),
                order=int(order),
                pace=float(pace),
                **{each: arrays[f"flow.{number}.{each}"] for each in FLOW_ARRAYS},
                surface=surface if header["limit_cycles"] else NO_SURFACE,
                beside=structure.beside,
            ).about(surface)
            for number, (name, kind, order, pace) in enumerate(header["flows"])
        )
        frames = LearnedFrames(
            tuple(int(length) for length in arrays["frames.lengths"]),
            tuple(header["activities"]),
            phases,
            tuple(arrays[f"transitions.{number}"] for number in range(header["transition_sets"])),
        )
        prior = cls(
            LatentModel.restored(stored.space, arrays=arrays, header=header),
            root=RootModel(*(arrays[f"root.{name}"] for name in ("mean", "scales", "outputs"))),
            flows=flows,
            frames=frames,
            structure=structure,
            limits=stored.limits,
            correlation=arrays["correlation"],
        )
        prior.quantiles, prior.clips = read_only(arrays["quantiles"]), tuple(map(tuple, header["clips"]))
        return prior


def _check_together(arrays: Mapping[str, Array], header: Mapping[str, Any]) -> None:
    """Check that the arrays and the header of a model are consistent."""
    structure, (poses, latent) = Structure.restored(header["structure"]), arrays["latents"].shape
    lengths, activities = arrays["frames.lengths"], dict.fromkeys(header["activities"])
    agree = {
        f"frames.lengths must add up to the {poses} poses": lengths.sum() == poses,
        f"there must be {len(lengths)} activities": len(header["activities"]) == len(lengths),
        f"structure.dimensions must be {latent}": len(structure.dimensions) == latent,
        "a phase must have one cosine and one sine": all(
            len(structure.places_of(source)) == 2 for source in structure.phases
        ),
        "every phase of the structure must be among phases": set(structure.phases) <= set(header["phases"]),
        f"flows must be those of {', '.join(activities)}": [flow[0] for flow in header["flows"]]
        == [*activities],
        f"inputs of a flow of the second order must be {2 * latent}": all(
            arrays[f"flow.{number}.inputs"].shape[1] == flow[2] * latent
            for number, flow in enumerate(header["flows"])
        ),
    }
    for message, holds in agree.items():
        if not holds:
            raise InvalidValueError(message)
