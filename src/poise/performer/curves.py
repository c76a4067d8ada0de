"""Published joint-angle curves of walking and running, as truncated Fourier series over the stride.

Walking: thigh, knee and ankle in the sagittal plane after Winter (1991), "The Biomechanics and Motor Control of Human
Gait", natural cadence; trunk, pelvis and arm amplitudes after Murray, Drought and Kory (1964), "Walking patterns of
normal men", and Murray, Sepic and Barnard (1967). Running: Novacheck (1998), "The biomechanics of running". The
tables below are read off the published shapes every 5 % of the stride from foot strike and are not recordings.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.types import Array

_HARMONICS = 6


@dataclass(frozen=True)
class LegCurves:
    """Degrees at 0, 5, ... 95 % of the stride from foot strike, and the share of the stride at which the toes leave.

    The thigh's angle is from the vertical, forward positive (hip flexion less the pelvis' forward tilt); the knee's is
    flexion and the ankle's dorsiflexion.
    """

    thigh: tuple[float, ...]
    knee: tuple[float, ...]
    ankle: tuple[float, ...]
    toe_off: float

    def at(self, phase: Float[Array, "frames"]) -> tuple[Array, Array, Array]:
        """Thigh, knee and ankle angles in radians at these phases of the stride (1 is one stride)."""
        return tuple(_series(np.radians(table), phase) for table in (self.thigh, self.knee, self.ankle))  # type: ignore[return-value]


WALK = LegCurves(
    thigh=(27, 26, 23, 18, 12, 6, 0, -6, -12, -17, -21, -22, -18, -9, 2, 13, 21, 26, 28.5, 28.5),
    knee=(4, 10, 16, 19, 18.5, 16, 12.5, 9, 7, 7.5, 11, 20, 34, 50, 61, 63, 56, 42, 24, 9),
    ankle=(0, -4, -5, -2, 2, 4.5, 6, 7.5, 9, 9.5, 7, -1, -13, -19, -15, -7, -2, 0.5, 1.5, 1),
    toe_off=0.61,
)
RUN = LegCurves(
    thigh=(27, 26, 22, 15, 7, -2, -12, -21, -27, -26, -18, -6, 7, 20, 31, 38, 41, 40, 36, 31),
    knee=(18, 27, 37, 42, 41, 35, 27, 20, 18, 25, 41, 62, 82, 95, 97, 87, 67, 43, 23, 15),
    ankle=(6, 9, 14, 19, 21, 18, 8, -8, -22, -22, -15, -9, -5, -2, 0, 2, 4, 6, 7, 7),
    toe_off=0.38,
)


def _series(table: Array, phase: Float[Array, "frames"]) -> Float[Array, "frames"]:
    """The Fourier series through a periodic table, cut after the sixth harmonic, by Horner's rule."""
    coefficients = 2.0 * np.fft.rfft(table)[: _HARMONICS + 1] / len(table)
    turn = np.exp(2j * np.pi * np.asarray(phase))
    total = np.full_like(turn, coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        total = total * turn + coefficient
    return coefficients[0].real / 2.0 + (total * turn).real
