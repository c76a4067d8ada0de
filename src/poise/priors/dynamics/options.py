"""Options of learning a motion model: its latent space, activities, rhythm and phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from poise.errors import InvalidValueError
from poise.formats.tables import Range
from poise.motion.motion import Motion
from poise.priors.dynamics.description import structure_from_text
from poise.priors.dynamics.rhythm import given_rhythm, read_rhythms
from poise.priors.dynamics.sequences import count_bodies
from poise.priors.dynamics.structure import Structure
from poise.priors.registry import PriorOptions

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
