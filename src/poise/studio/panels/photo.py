"""Posing from a photo: the person is detected, points can be moved, the body follows; alternatives are offered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poise.apps.image import explained, find_in_photo
from poise.capture.photos import (
    ALTERNATIVES,
    FEWEST,
    Explanation,
    Shot,
    View,
    explain,
    hides_legs,
    legs_at_rest,
    pose_from_shots,
    read_photo,
)
from poise.errors import InvalidValueError, PoiseError
from poise.geometry.cameras import Camera
from poise.priors.abilities import standing_pose
from poise.solvers.solve import Model, Solver, space_of
from poise.studio import messages
from poise.studio.arrays import packed, world_of_pose
from poise.studio.jobs import Done, Report
from poise.studio.messages import Photo, PhotoPoint
from poise.studio.models import PLAIN
from poise.studio.session import Answer, Panel, Session
from poise.studio.solving import planted
from poise.studio.state import Placed, State
from poise.vision.people.models import available

SEARCH = "movePoint"


class PhotoPanel(Panel):
    """One photo, its points, the estimated camera, and the poses that explain it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._camera: Camera | None = None
        self._upright: Camera | None = None  # the camera tilt estimated from the detected person
        self._found: Sequence[Explanation] = ()

    def open(self, message: messages.OpenPhoto) -> Answer:
        """Open a photo; the person in it is searched."""
        session = self._session
        photo = read_photo(session.path(message.upload))
        self._camera, self._upright, self._found = None, None, ()
        opened = Photo(upload=message.upload, width=photo.width, height=photo.height, points=[])
        answer = session.commit(session.state.with_(photo=opened))
        if available():
            self._find_person(message.upload)
        return answer

    def move_point(self, message: messages.MovePoint) -> Answer:
        """While a point moves the body follows it; at rest, all fitting poses are searched."""
        session, photo, skeleton = self._session, self._photo(), self._session.state.pose.skeleton
        x, y = message.point.pixel
        if not (0 <= x <= photo.width and 0 <= y <= photo.height):
            raise InvalidValueError(
                f"the point lies outside the photo of {photo.width} x {photo.height} pixels"
            )
        joint = skeleton.index(message.point.joint)
        others = [old for old in photo.points if skeleton.index(old.joint) != joint]
        state = self._with_points(photo, [*others, message.point])
        if message.last:
            return self._searched(session.commit(state))
        session.state = state
        return self._follow(state) or [session.scene()]

    def remove_point(self, message: messages.RemovePoint) -> Answer:
        """Remove a point."""
        photo = self._photo()
        left = [point for point in photo.points if point.joint != message.joint]
        if len(left) == len(photo.points):
            raise InvalidValueError(f"{message.joint} has no point in the photo")
        return self._searched(self._session.commit(self._with_points(photo, left)))

    def choose(self, message: messages.ChooseAlternative) -> Answer:
        """Select another pose that explains the points."""
        if not message.number < len(self._found):
            raise InvalidValueError(
                f"there are {len(self._found)} poses to choose from; got number {message.number}"
            )
        return self._taken(self._found[message.number])

    def close(self, _: messages.ClosePhoto) -> Answer:
        """Remove the photo; the pose stays."""
        self._camera, self._found = None, ()
        return self._session.commit(self._session.state.with_(photo=None))

    def _photo(self) -> Photo:
        if self._session.state.photo is None:
            raise InvalidValueError("open a photo first")
        return self._session.state.photo

    def _with_points(self, photo: Photo, points: list[PhotoPoint]) -> State:
        return self._session.state.with_(photo=photo.with_(points=points))

    def _model(self, state: State) -> Model:
        prior = self._session.poser.prior_of(state)
        return prior.space if state.model == PLAIN else prior

    def _follow(self, state: State) -> Answer:
        """The current pose updated to the points, with the camera found before."""
        session, points = self._session, _points(state)
        if self._camera is None or len(points) < FEWEST:
            return []
        solver = Solver(self._model(state), View(self._camera, points).constraints())
        if solver.runner is None or not solver.resumes:
            return []
        start = state.placed.in_space(solver.space)
        solver.resume(start)
        solver.dragging = True
        solution = solver.solve(start)
        session.solved = None
        pose = session.show(state.with_(placed=Placed(solution.pose, solution.q, solver.space)), fine=False)
        return [pose, self._seen(())]

    def _searched(self, answer: Answer) -> Answer:
        """Search all poses that explain the points in the background; with too few points the body stays unchanged."""
        session, state = self._session, self._session.state
        points, photo = _points(state), state.photo
        if photo is None or len(points) < FEWEST:
            return answer
        path, model = session.path(photo.upload), self._model(state)
        camera, start = self._upright, state.placed.in_space(space_of(model))
        standing = standing_pose(session.poser.prior_of(state))

        def work(report: Report) -> Done:
            report(0.1)
            if camera is None:
                found = pose_from_shots(model, [Shot(read_photo(path), points)], standing=standing)
            else:
                found = explain(model, [View(camera, points)], first=start)
                found = legs_at_rest(found, standing)[:ALTERNATIVES]

            def take() -> Answer:
                if session.state.photo is None or _points(session.state).keys() != points.keys():
                    return []
                self._found = found
                return self._taken(found[0])

            return Done(take)

        session.jobs.start_newest(SEARCH, "looking for poses that fit", work)
        return answer

    def _find_person(self, upload: str) -> None:
        """Detect the person in the opened photo in the background: movable points, and fitting poses."""
        session = self._session
        path, model = session.path(upload), self._model(session.state)
        joints = session.state.pose.skeleton.roles
        standing = standing_pose(session.poser.prior_of(session.state))

        def work(report: Report) -> Done:
            photo = read_photo(path)
            report(0.1)
            try:
                seen = find_in_photo(photo, number=1)
            except PoiseError:  # nobody, or too little of them: points are set by hand
                return Done(list)
            report(0.5)
            found = explained(model, photo, seen, standing=standing)

            def take() -> Answer:
                opened = session.state.photo
                if opened is None or opened.upload != upload or opened.points:
                    return []
                known = [(role, at) for role, at in seen.points.items() if role in joints]
                points = [
                    PhotoPoint(joint=joints[role], pixel=(float(x), float(y))) for role, (x, y) in known
                ]
                answer = session.commit(self._with_points(opened, points))
                self._found, self._upright = found, seen.body.cameras[0]
                if hides_legs(standing.skeleton, seen.points):
                    session.post(
                        messages.Remark(words="The photo does not show the legs: they stand at rest.")
                    )
                return [*answer, *self._taken(found[0])]

            return Done(take)

        session.jobs.start_newest(SEARCH, "looking for the person", work)

    def _taken(self, one: Explanation) -> Answer:
        session = self._session
        self._camera = one.views[0].camera
        pose = one.space.pose_from_q(one.q)
        session.solved = None
        state = session.state.with_(placed=Placed(pose, one.q, one.space), anchors=planted(pose))
        shown = session.show(state)
        session.history.amend(session.state)
        return [shown, self._seen(self._found)]

    def _seen(self, found: Sequence[Explanation]) -> messages.PhotoSolved:
        """The body in the photo, and the alternatives in their order."""
        assert self._camera is not None
        pixels = self._camera.project(self._session.state.pose.world[0])
        others = [world_of_pose(one.space.pose_from_q(one.q)) for one in found]
        return messages.PhotoSolved(pixels=packed(pixels), alternatives=others)


def _points(state: State) -> dict[str, np.ndarray]:
    points = state.photo.points if state.photo is not None else []
    return {point.joint: np.array(point.pixel) for point in points}
