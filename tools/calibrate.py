"""Prints the held-out records that come with Poise: the universal prior's, and that of models without one of their own.

python tools/calibrate.py

The universal prior is tried on the performers that it was learned from, each with the joint zeros that the bones of all
others foretell of him: but for those, it is as far off on them as on strangers. Other models are tried on the splits
`sport` and `other-gaits`. No clip of the figures in docs/uncertainty.md is among them.
"""

from poise.evaluation.methods import learner_named
from poise.evaluation.splits import load_split
from poise.priors.evidence import HeldOut
from poise.priors.universal.body import Zeros
from poise.priors.universal.network import TABLES, read_arrays, shipped
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.calibration import Tried, record_of, tries

LEARNED = ("gaussian-100", "local", "style")


def _of_people() -> HeldOut:
    tables, header = read_arrays(TABLES)
    clips, tried = load_split("strangers")[0].train, []
    for who, unseen in zip(header["performers"], tables["unseen"], strict=True):
        own = [clip for clip in clips if clip.name.startswith(f"{who}_")]
        zeros = Zeros(unseen.astype(float), shipped().zeros.spread)
        tried += tries(UniversalPrior(own[0].skeleton, zeros), own)
    return record_of(tried)


def _of_others() -> HeldOut:
    tried: list[Tried] = []
    for split in ("sport", "other-gaits"):
        for fold in load_split(split):
            for method in LEARNED:
                tried += tries(learner_named(method)(fold.train), fold.test)
    return record_of(tried)


def _rounded(record: HeldOut) -> str:
    slope, typical, factor, *multiples = (f"{n:.3g}" for n in (*record[:3], *record.multiples))
    return f"HeldOut({slope}, {typical}, {factor}, ({', '.join(multiples)}))"


if __name__ == "__main__":
    print("UniversalPrior.held_out =", _rounded(_of_people()))
    print("OF_OTHERS =", _rounded(_of_others()))
