"""Scene files: one ZIP with the scene as JSON, its motion, its models and its photo.

In the store, the JSON is apart from its parts, which need not be written again. Version 1 had only the JSON; it is
still read. A reader of version `read_by` or newer can read a scene; it ignores unknown fields.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats.files import replacing
from poise.geometry import rotations
from poise.skeleton.skeleton import Pose, Skeleton
from poise.studio import messages
from poise.studio.layers import Correction, Layers
from poise.studio.models import PLAIN, Entry, ModelStore
from poise.studio.solving import typed_constraints, vec3
from poise.studio.state import MOST_HANDLES, MOST_PROPS, Placed, State, handles_on
from poise.studio.store import Store
from poise.studio.uploads import DAMAGED, Uploads

VERSION, READ_BY = 2, 2
SCENE = "scene.json"
LARGEST = 500_000_000  # largest unpacked size of a scene
LARGEST_TEXT = 50_000_000
MOST_PARTS = 200

Turn = Annotated[float, Meta(ge=-7.0, le=7.0)]


class SavedModel(msgspec.Struct):
    """A model by its id in the scene, its name and its part; for a character, its file's name and part too."""

    id: messages.Name
    name: messages.Name
    part: str
    character: messages.Name | None = None
    mesh: str | None = None


class SavedCorrection(msgspec.Struct):
    """A correction of one frame of the motion."""

    frame: messages.Frame
    ease: messages.Frame
    shift: messages.Vec3
    turns: list[tuple[Turn, Turn, Turn]]

    @classmethod
    def of(cls, made: Correction) -> SavedCorrection:
        """A correction as it is saved."""
        return cls(made.frame, made.ease, vec3(made.shift), [(a, b, c) for a, b, c in made.turns.tolist()])

    def correction(self, frames: int, joints: int) -> Correction:
        """The correction of a motion of so many frames."""
        if self.frame >= frames or len(self.turns) != joints:
            raise InvalidValueError(f"a correction of frame {self.frame} with {len(self.turns)} turns")
        return Correction(self.frame, self.ease, np.array(self.shift), np.array(self.turns))


class SavedPhoto(msgspec.Struct):
    """The photo and its points."""

    name: messages.Name
    part: str
    width: Annotated[int, Meta(ge=1, le=100_000)]
    height: Annotated[int, Meta(ge=1, le=100_000)]
    points: list[messages.PhotoPoint]


class SavedScene(msgspec.Struct, rename="camel", kw_only=True):
    """The JSON of a scene; joints are referenced by name."""

    poise: Literal["scene"] = "scene"
    version: int = VERSION
    read_by: int = READ_BY
    model: str
    weights: list[messages.Weight]
    handles: Annotated[list[messages.SceneHandle], Meta(max_length=MOST_HANDLES)]
    feet: messages.Feet
    bearing: messages.Bearing = msgspec.field(default_factory=messages.Bearing)
    look_at: messages.Vec3 | None
    constraints: messages.TomlText = ""
    anchors: dict[str, messages.Vec3]
    timeline: messages.Timeline
    joints: list[str]
    root: messages.Vec3
    turns: list[messages.Quaternion]
    models: Annotated[list[SavedModel], Meta(max_length=MOST_PARTS)] = []
    motion: str | None = None
    smooth: bool = True
    corrections: list[SavedCorrection] = []
    unmet: list[messages.Frame] = []
    photo: SavedPhoto | None = None
    props: Annotated[list[messages.Prop], Meta(max_length=MOST_PROPS)] = []
    hands: messages.Hands = msgspec.field(default_factory=messages.Hands)
    video: messages.Video | None = None

    @property
    def parts(self) -> list[str]:
        """All parts that it needs."""
        photo = [] if self.photo is None else [self.photo.part]
        motion = [] if self.motion is None else [self.motion]
        props = [prop.upload for prop in self.props if prop.upload is not None]
        meshes = [model.mesh for model in self.models if model.mesh is not None]
        videos = [] if self.video is None else [self.video.upload]
        return [*motion, *(model.part for model in self.models), *meshes, *photo, *props, *videos]

    @property
    def words(self) -> str:
        """A summary of its contents, for the list of saved scenes."""
        names = {model.id: model.name for model in self.models}
        what = self.timeline.clip or ("a motion" if self.motion else "a pose")
        edits = len(self.timeline.keys) or len(self.handles)
        kind = "key" if self.timeline.keys else "handle"
        model = names.get(self.model, self.model)
        said = [
            f"{self.timeline.frames / self.timeline.fps:.1f} s" if self.motion else "",
            f"{edits} {kind}{'' if edits == 1 else 's'}" if edits else "",
            "" if what.startswith(model) else model,
        ]
        return ", ".join([what, *filter(None, said)])


@dataclass(frozen=True, eq=False)
class SceneFiles:
    """Writes and reads the scenes of one session, with its own models and uploads."""

    store: Store
    models: ModelStore
    uploads: Uploads
    owner: str

    def saved(self, state: State) -> SavedScene:
        """A state as the JSON of a scene; its parts are stored on disk."""
        layers, photo = state.layers, None
        if state.photo is not None and (part := self._part_of(state.photo.upload)) is not None:
            name = self.uploads.find(state.photo.upload, owner=self.owner).name
            photo = SavedPhoto(name, part, state.photo.width, state.photo.height, state.photo.points)
        models = []
        for entry in self._used(state):
            file = entry.character
            mesh = (None, None) if file is None else (file.name, self._part_of(file.id))
            models.append(SavedModel(entry.id, entry.name, self.store.model(entry.prior), *mesh))
        return SavedScene(
            model=state.model, weights=list(state.weights), handles=list(state.handles), feet=state.feet,
            bearing=state.bearing, look_at=state.look_at, constraints=state.constraints,
            anchors=dict(state.anchors), timeline=state.timeline,
            joints=list(state.pose.skeleton.names), root=vec3(state.pose.root_position),
            turns=[(w, i, j, k) for w, i, j, k in state.pose.rotations.tolist()],
            models=models,
            motion=None if layers is None else self.store.motion(layers.base), smooth=state.smooth,
            corrections=[] if layers is None else [SavedCorrection.of(each) for each in layers.corrections],
            unmet=[] if layers is None else list(layers.unmet), photo=photo,
            props=[prop.with_(upload=self._part_of(prop.upload)) for prop in state.props], hands=state.hands,
            video=_with_file(state.video, self._part_of),
        )  # fmt: skip

    def write(self, state: State, path: Path) -> None:
        """A state as a scene file."""
        scene = self.saved(state)
        text = msgspec.json.format(encoded(scene), indent=1)
        with replacing(path, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(SCENE, text)
            for name in dict.fromkeys(scene.parts):
                archive.writestr(name, self.store.part(name))

    def opened(self, source: Path | bytes, now: State) -> State:
        """Load the state of a scene file, or of a scene from the store, with its own models."""
        path = source if isinstance(source, Path) else "the scene that was kept"
        try:
            if isinstance(source, bytes) or not zipfile.is_zipfile(source):
                return self._state_of(decoded(source), now)
            with self.store.writing():  # else another studio could remove the parts before they are used
                return self._state_of(self._unpacked(source), now)
        except ParseError:
            raise
        except PoiseError as error:
            raise ParseError(f"not a scene that can be opened: {error}", path=path) from error
        except DAMAGED as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged"
            raise ParseError(f"not a scene that can be opened: {words}", path=path) from error

    def _used(self, state: State) -> list[Entry]:
        """The models that a state names, one with its body, and all added in this page."""
        named = {state.model, *(weight.model for weight in state.weights)}
        named |= {weight.model for key in state.timeline.styles for weight in key.weights}
        if state.model == PLAIN:
            body = self.models.plain(state.pose.skeleton).source
            named |= {entry.id for entry in self.models.learned if entry.source is body}
        own = {entry.id for entry in self.models.own}
        return [entry for entry in self.models.learned if entry.id in named | own]

    def _part_of(self, upload: str | None) -> str | None:
        """An uploaded file as a part; empty if it was removed for newer uploads."""
        if upload is not None:
            with suppress(PoiseError, FileNotFoundError):
                return self.store.file(self.uploads.find(upload, owner=self.owner).path)
        return None

    def _unpacked(self, path: Path) -> SavedScene:
        """The scene of an archive, with all its parts stored on disk."""
        left = LARGEST
        with zipfile.ZipFile(path) as archive:
            with archive.open(SCENE) if SCENE in archive.namelist() else _missing(SCENE) as file:
                scene = decoded(file.read(LARGEST_TEXT + 1), path)
            names = set(archive.namelist())
            for name in dict.fromkeys(scene.parts[: 2 * MOST_PARTS]):
                if name not in names:
                    _missing(name)
                with archive.open(name) as file:
                    left -= self.store.take(name, file.read, left)
        return scene

    def _state_of(self, scene: SavedScene, now: State) -> State:
        ids = {saved.id: self._entry_of(saved).id for saved in scene.models}
        entry = self._model_of(scene, ids, now)
        skeleton, turns = entry.skeleton, np.array(scene.turns, dtype=np.float64).reshape(-1, 4)
        if len(turns) != len(skeleton) or not np.all(np.linalg.norm(turns, axis=1) > 0.5):
            raise InvalidValueError(
                f"{len(turns)} rotations for {len(skeleton)} joints, or some that are not valid rotations"
            )
        for handle in scene.handles:
            skeleton.index(handle.joint)
        if lost := handles_on(scene.timeline) - {handle.id for handle in scene.handles}:
            raise InvalidValueError(f"keys or pins of {min(lost)!r}, a handle that is not there")
        pose = Pose(skeleton, np.array(scene.root), rotations.normalize(turns))
        typed_constraints(scene.constraints)  # raises if they are invalid
        styles = [key.with_(weights=self._known(key.weights, ids)) for key in scene.timeline.styles]
        timeline = scene.timeline.with_(styles=[key for key in styles if key.weights])
        photo, saved = None, scene.photo
        if saved is not None:
            upload = self._uploaded(saved.part, saved.name) or ""
            photo = messages.Photo(upload=upload, width=saved.width, height=saved.height, points=saved.points)
        return State(
            PLAIN if scene.model == PLAIN else entry.id, Placed(pose), tuple(self._known(scene.weights, ids)),
            tuple(scene.handles), scene.feet, scene.look_at, dict(scene.anchors), timeline,
            layers=self._layers_of(scene, skeleton), smooth=scene.smooth, photo=photo,
            bearing=scene.bearing, constraints=scene.constraints, hands=scene.hands,
            video=_with_file(scene.video, lambda part: self._uploaded(part, part)),
            props=tuple(prop.with_(upload=self._uploaded(prop.upload, prop.upload)) for prop in scene.props),
        )  # fmt: skip

    def _entry_of(self, saved: SavedModel) -> Entry:
        """The model of a scene: an identical one here, else a new one."""
        for entry in self.models.learned:
            if entry.id == saved.id and self.store.model(entry.prior) == saved.part:
                return entry
        upload = self._uploaded(saved.mesh, saved.character)
        character = None if upload is None else self.uploads.find(upload, owner=self.owner)
        return self.models.add(self.store.read_model(saved.part), saved.name, character=character)

    def _model_of(self, scene: SavedScene, ids: dict[str, str], now: State) -> Entry:
        """The model with the scene's name, or the one in use, or the first: whichever has these joints."""
        wanted = {ids.get(scene.model, scene.model): 0, **dict.fromkeys(ids.values(), 1), now.model: 2}
        for entry in sorted(self.models.learned, key=lambda entry: wanted.get(entry.id, 3)):
            if list(entry.skeleton.names) == scene.joints:
                return entry
        raise InvalidValueError("no model here has its skeleton; open or learn one first")

    def _known(self, weights: list[messages.Weight], ids: dict[str, str]) -> list[messages.Weight]:
        """Weights by the local ids of models; empty if one is missing."""
        here = {entry.id for entry in self.models.learned}
        found = [each.with_(model=ids.get(each.model, each.model)) for each in weights]
        return found if all(each.model in here for each in found) else []

    def _layers_of(self, scene: SavedScene, skeleton: Skeleton) -> Layers | None:
        if scene.motion is None:
            return None
        base = self.store.read_motion(scene.motion, skeleton)
        if len(base) != scene.timeline.frames:
            raise InvalidValueError(f"{len(base)} frames on a timeline of {scene.timeline.frames}")
        made = [each.correction(len(base), len(skeleton)) for each in scene.corrections]
        if [each.frame for each in made] != sorted({each.frame for each in made}):
            raise InvalidValueError("corrections out of order")
        return Layers(base, tuple(made), tuple(frame for frame in scene.unmet if frame < len(base)))

    def _uploaded(self, part: str | None, name: str | None) -> str | None:
        """Restore a part as an upload under a name. A link of that name is replaced, never its file."""
        if part is None or name is None:
            return None
        arriving = self.uploads.arriving(name, owner=self.owner)
        arriving.path.write_bytes(self.store.part(part))
        return self.uploads.keep_arrived(arriving).id


def _with_file(video: messages.Video | None, file_of: Callable[[str], str | None]) -> messages.Video | None:
    """A video under another name; nothing without its file."""
    name = None if video is None else file_of(video.upload)
    return None if video is None or name is None else video.with_(upload=name)


def encoded(scene: SavedScene) -> bytes:
    """A scene as JSON."""
    return msgspec.json.encode(scene, enc_hook=float)  # converts NumPy numbers


def decoded(source: Path | bytes, path: str | Path = "the scene that was kept") -> SavedScene:
    """The JSON of a scene, from a file or as it was encoded; `path` is named in errors."""
    path = source if isinstance(source, Path) else path
    try:
        text = source.read_bytes() if isinstance(source, Path) else source
        if len(text) > LARGEST_TEXT:
            raise msgspec.DecodeError(f"more than {LARGEST_TEXT / 1e6:.0f} MB of text")
        scene = msgspec.json.decode(text, type=SavedScene)
    except OSError as error:
        raise ParseError(f"not a scene of the studio: {error.strerror}", path=path) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not a scene of the studio: {error}", path=path) from error
    if min(scene.version, scene.read_by) > VERSION:
        raise ParseError(f"written by a newer Poise (scene version {scene.version}); upgrade", path=path)
    return scene


def _missing(name: str) -> zipfile.ZipExtFile:
    raise InvalidValueError(f"it has no {name[:50]}")
