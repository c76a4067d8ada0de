"""Predicted marker positions: a constant-velocity Kalman filter per marker.

Two cameras determine a position. A marker seen by fewer relies on the body: its position in the pose that explains the
others, with an uncertainty that grows the longer no two cameras have seen it. With one camera, all depths come from
the body, and every marker relies on it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from poise.compiled import compiled
from poise.types import Array

AGILITY = 60.0  # metres per second squared: typical acceleration of the liveliest markers
BURST = 4.0  # times more, occasionally: throws and punches
FIRST_OFF = 0.08  # metres: standard deviation of markers from the layout of the first frame
BODY_OFF = 0.05  # metres: standard deviation of the body's marker just after it was seen
BODY_DRIFT = 0.5  # metres per second by which that grows, for the liveliest, while it is unseen
BODY_FAR = 0.25  # metres: its maximum
PIXEL_OFF = 0.7  # pixels: standard deviation of the centre of a still marker's blob: noise, partial occlusion
OUT_OF_STEP = 0.0007  # seconds: offset between shutters, which shifts moving markers


class Tracks:
    """Positions and velocities of all markers, with covariances."""

    def __init__(
        self, places: Float[Array, "markers 3"], *, liveliness: Float[Array, "markers"], alone: bool = False
    ) -> None:
        """`liveliness` is 1 for hands, less for what moves with the trunk; `alone`: one camera."""
        self._liveliness, self._alone, self._seconds = liveliness, alone, 0.0
        self.states = np.concatenate([places, np.zeros_like(places)], axis=1)
        self.covariances = np.zeros((len(places), 6, 6))
        self.unseen = np.zeros(len(places))
        self.covariances[:, :3, :3] = FIRST_OFF**2 * np.eye(3)
        self.covariances[:, 3:, 3:] = np.eye(3)

    @property
    def places(self) -> Float[Array, "markers 3"]:
        """The predicted marker positions."""
        return np.ascontiguousarray(self.states[:, :3])

    @property
    def spreads(self) -> Float[Array, "markers 3 3"]:
        """The covariances of these positions."""
        return np.ascontiguousarray(self.covariances[:, :3, :3])

    @property
    def noise(self) -> Float[Array, "markers"]:
        """Metres by which markers are off when a camera sees them, along their motion."""
        return np.asarray(OUT_OF_STEP * np.linalg.norm(self.states[:, 3:], axis=1))

    @property
    def burst(self) -> Float[Array, "markers"]:
        """Additional distance since the last moment in case of an unusual acceleration."""
        return np.asarray(BURST * AGILITY * self._liveliness * self._seconds**2)

    def carry_on(self, seconds: float, body: Float[Array, "markers 3"]) -> None:
        """Predict the next moment, with the body's markers at these positions."""
        self._seconds = seconds
        step, noise = _carrying(seconds)
        self.states = self.states @ step.T
        self.covariances = step @ self.covariances @ step.T + self._liveliness[:, None, None] ** 2 * noise
        self.unseen += seconds
        off = np.minimum(BODY_OFF + self._liveliness * BODY_DRIFT * self.unseen, BODY_FAR)
        for marker in np.flatnonzero((self.unseen > 1.5 * seconds) | self._alone):  # these lean on the body
            covariance = self.covariances[marker]
            gain = np.linalg.solve(covariance[:3, :3] + off[marker] ** 2 * np.eye(3), covariance[:3]).T
            self.states[marker] += gain @ (body[marker] - self.states[marker, :3])
            rest = covariance - gain @ covariance[:3]
            self.covariances[marker] = 0.5 * (rest + rest.T)

    def correct(
        self,
        matrices: Float[Array, "cameras 3 4"],
        straight: Float[Array, "cameras markers 2"],
        *,
        bursts: Bool[Array, "markers"],
    ) -> None:
        """Correct by undistorted pixels (NaN if unseen); some markers accelerate more than usual."""
        if self._seconds > 0:
            more = (bursts * BURST * self._liveliness) ** 2
            self.covariances += more[:, None, None] * _carrying(self._seconds)[1]
        _correct(self.states, self.covariances, matrices, np.ascontiguousarray(straight), self.noise)
        self.unseen[np.isfinite(straight[..., 0]).sum(axis=0) >= min(2, len(matrices))] = 0.0

    def exchange(self, first: int, second: int) -> None:
        """Exchange two tracks with swapped labels."""
        for values in (self.states, self.covariances, self.unseen):
            values[[first, second]] = values[[second, first]]

    def forget(self, marker: int, place: Float[Array, "3"]) -> None:
        """Restart a marker's track at a place."""
        self.states[marker, :3], self.states[marker, 3:] = place, 0.0
        self.covariances[marker] = np.diag(np.repeat((FIRST_OFF, 1.0), 3) ** 2)


def _carrying(seconds: float) -> tuple[Array, Array]:
    """The constant-velocity transition, and the covariance of unknown acceleration."""
    unit = np.eye(3)
    step = np.block([[unit, seconds * unit], [np.zeros((3, 3)), unit]])
    push = np.concatenate([0.5 * seconds**2 * unit, seconds * unit])
    return step, AGILITY**2 * push @ push.T


@compiled
def seen_from(matrix: Array, place: Array, pixel: Array, jacobian: Array) -> bool:
    """The pixel of a position and its Jacobian; return whether the position is in front of the camera."""
    depth = matrix[2, 3]
    for i in range(3):
        depth += matrix[2, i] * place[i]
    if depth < 0.05:
        return False
    for axis in range(2):
        along = matrix[axis, 3]
        for i in range(3):
            along += matrix[axis, i] * place[i]
        pixel[axis] = along / depth
        for i in range(3):
            jacobian[axis, i] = (matrix[axis, i] - pixel[axis] * matrix[2, i]) / depth
    return True


@compiled
def pixel_variance(jacobian: Array, noise: float) -> float:
    """Variance per axis of a blob's centre, for a marker with this position error."""
    scale = max(np.abs(jacobian[0]).max(), np.abs(jacobian[1]).max())
    return PIXEL_OFF**2 + (scale * noise) ** 2


@compiled
def inverse_of_two(matrix: Array, more: float) -> tuple[Array, float]:
    """The inverse and the determinant of a 2x2 matrix with `more` on its diagonal."""
    a, b, c, d = matrix[0, 0] + more, matrix[0, 1], matrix[1, 0], matrix[1, 1] + more
    determinant = a * d - b * c
    inverse = np.empty((2, 2))
    inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = d, -b, -c, a
    return inverse / determinant, determinant


@compiled
def _correct(states: Array, covariances: Array, matrices: Array, straight: Array, noise: Array) -> None:
    pixel, jacobian = np.empty(2), np.zeros((2, 6))
    for marker in range(len(states)):
        for camera in range(len(matrices)):
            seen = straight[camera, marker]
            if np.isnan(seen[0]) or not seen_from(matrices[camera], states[marker], pixel, jacobian):
                continue
            carried = jacobian @ covariances[marker]
            inverse, _ = inverse_of_two(carried @ jacobian.T, pixel_variance(jacobian, noise[marker]))
            gain = carried.T @ inverse
            states[marker] += gain @ (seen - pixel)
            rest = covariances[marker] - gain @ carried
            covariances[marker] = 0.5 * (rest + rest.T)  # against rounding errors
