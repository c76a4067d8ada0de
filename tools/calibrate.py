"""Prints the held-out records that come with Poise: the universal prior's, and that of models without one of their own.

python tools/calibrate.py

The universal prior is tried on the performers that its settings were chosen on, other models on the splits `sport` and
`other-gaits`. No clip of the figures in docs/uncertainty.md is among them.
"""

from poise.evaluation.methods import learner_named
from poise.evaluation.splits import load_split
from poise.priors.held_out import HeldOut
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.calibration import Tried, record_of, tries

LEARNED = ("gaussian-100", "local", "style")


def _of_people() -> HeldOut:
    (fold,) = load_split("choice")
    people = UniversalPrior.of_people()
    tried = [one for part in range(10) for one in tries(people, fold.test[part::10])]
    return record_of(tried, fold.test[0].skeleton)


def _of_others() -> HeldOut:
    tried: list[Tried] = []
    for split in ("sport", "other-gaits"):
        for fold in load_split(split):
            for method in LEARNED:
                tried += tries(learner_named(method)(fold.train), fold.test)
    return record_of(tried, fold.test[0].skeleton)


def _rounded(record: HeldOut) -> str:
    slope, typical, factor, *multiples = (f"{n:.3g}" for n in (*record[:3], *record.multiples))
    parts = ", ".join(f'"{part}": {wider:.2g}' for part, wider in sorted(record.parts.items()))
    return f"HeldOut({slope}, {typical}, {factor}, ({', '.join(multiples)}), {{{parts}}})"


if __name__ == "__main__":
    print("UniversalPrior.held_out =", _rounded(_of_people()))
    print("OF_OTHERS =", _rounded(_of_others()))
