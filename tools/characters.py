"""Carries motions onto every character of a folder, measures the contacts, and draws them all on one page.

A contact is the time that one foot stands. Its end point is the mean place of the heel or the base of the toes, or of
both, whichever are down, over that time; the truth is the same mean of the source's foot, scaled by the legs, because a
recorded foot slides while it stands and ours must not. Of a hand that touches, the palm counts in every frame; the
truth is the same place on the thigh, head, other hand or floor there. The trunk is compared with the source's, and the
lowest skin of a foot that stands with the floor. Beside a character, NAME.truth.toml (written
as NAME.roles.toml) says which joint is which, to check what is found without help; else a VRM's humanoid map and the
published names of Mixamo and Unreal do. Run by `make characters FOLDER=... MOTIONS="..."`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

import poise
from poise.apps.planting import exact_floor, runs, slides
from poise.apps.retargeting import misses, open_character, read_roles
from poise.apps.skin import skin_of
from poise.errors import PoiseError
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.pictures import labels
from poise.pictures.scene import fitted, floor_under, render
from poise.pictures.subject import Subject, subject_of
from poise.skeleton.retarget import size_ratio
from poise.skeleton.roles import MAIN_ROLES, guess_roles
from poise.skeleton.skeleton import Skeleton

SUFFIXES = (".glb", ".gltf", ".vrm", ".fbx", ".usdc", ".usdz")
CELL = (150, 215)
MOMENTS = 2  # of each motion, drawn
TURN = np.radians(-35.0)
FARTHEST, MOST_SLIDE = 0.02, 0.01  # metres
MOST_LEAN, SOLE = np.radians(15.0), 0.01  # of a trunk from the source's; of a height


MIXAMO = {"pelvis": "Hips", "head": "Head"} | {
    f"{side.lower()}_{part}": f"{side}{name}"
    for side in ("Left", "Right")
    for part, name in (
        ("upper_arm", "Arm"), ("forearm", "ForeArm"), ("hand", "Hand"),
        ("thigh", "UpLeg"), ("shin", "Leg"), ("foot", "Foot"),
    )
}  # fmt: skip
UNREAL = {"pelvis": "pelvis", "head": "head"} | {
    f"{side}_{part}": f"{name}_{side[0]}"
    for side in ("left", "right")
    for part, name in (
        ("upper_arm", "upperarm"), ("forearm", "lowerarm"), ("hand", "hand"),
        ("thigh", "thigh"), ("shin", "calf"), ("foot", "foot"),
    )
}  # fmt: skip


@dataclass
class Carried:
    """The result of one character: its figures per motion in millimetres, or why there are none."""

    name: str
    wrong_roles: list[str] | None = None
    far: dict[str, float] = field(default_factory=dict)
    hands: dict[str, float] = field(default_factory=dict)
    slide: dict[str, float] = field(default_factory=dict)
    lean: dict[str, float] = field(default_factory=dict)
    sole: dict[str, float] = field(default_factory=dict)
    cells: list[Image.Image] = field(default_factory=list)
    refused: str = ""

    @property
    def words(self) -> str:
        """The figures as one line."""
        if self.refused:
            return self.refused
        wrong = self.wrong_roles
        roles = "not checked" if wrong is None else f"wrong: {', '.join(wrong)}" if wrong else "right"
        each = [
            f"{name} {1000 * far:.0f}, {1000 * self.hands[name]:.0f}, {1000 * self.slide[name]:.1f}, "
            f"{np.degrees(self.lean[name]):.0f}, {100 * self.sole[name]:.1f}"
            for name, far in self.far.items()
        ]
        return (
            f"roles {roles}; feet off, hands off, slide (mm), trunk off (degrees), soles off (% of height): "
            f"{'; '.join(each)}"
        )

    @property
    def farthest(self) -> float:
        """The largest distance of a foot or a hand from its contact."""
        return max((*self.far.values(), *self.hands.values()), default=np.inf)


def carry(path: Path, motions: dict[str, Motion]) -> Carried:
    """Every motion on one character."""
    found = Carried(path.stem)
    try:
        body = open_character(path)
        found.wrong_roles = wrong_roles(path, body)
        for name, motion in motions.items():
            moved = poise.retarget(motion, body)
            found.far[name] = farthest(moved, motion)
            found.hands[name] = max(misses(moved, motion), default=0.0)
            found.slide[name] = max(slides(moved, motion), default=0.0)
            found.lean[name], found.sole[name] = lean(moved, motion), sole(moved, motion)
            shown = subject_of(moved)
            found.cells += [drawn(shown, frame) for frame in telling(motion)]
    except PoiseError as error:
        found.refused = str(error)
    return found


def wrong_roles(path: Path, body: Motion) -> list[str] | None:
    """Main roles that were guessed wrong; None without a reference.

    The truth is the file beside the character, else the humanoid map in it (VRM), else the published names of its rig.
    """
    truth, skeleton = path.with_name(f"{path.stem}.truth.toml"), body.skeleton
    right = (
        read_roles(truth, skeleton) if truth.is_file() else dict(skeleton.given_roles) or published(skeleton)
    )
    guessed = guess_roles(skeleton)
    return [role for role in MAIN_ROLES if guessed.get(role) != right.get(role)] if right else None


def published(skeleton: Skeleton) -> dict[str, str]:
    """The main roles of a rig with the joint names of Mixamo or Unreal; empty for another."""
    by_name = {name.rpartition(":")[2].removeprefix("mixamorig"): name for name in skeleton.names}
    for names in (MIXAMO, UNREAL):
        if all(name in by_name for name in names.values()):
            return {role: by_name[name] for role, name in names.items()}
    return {}


def farthest(moved: Motion, source: Motion) -> float:
    """The largest horizontal distance of a contact's end point from the scaled truth, in metres."""
    down = foot_contacts(source).points
    ratio = size_ratio(source.skeleton, moved.skeleton)
    gap = (foot_positions(moved) - ratio * foot_positions(source))[..., [0, 2]]
    ends = [
        np.linalg.norm(gap[run, side][down[run, side]].mean(axis=0))
        for side in range(2)
        for run in runs(down[:, side].any(axis=-1))
    ]
    return float(max(ends, default=0.0))


def lean(moved: Motion, source: Motion) -> float:
    """The largest angle between the trunks, from the middle of the hips to the head, in radians."""
    ways = []
    for motion in (moved, source):
        hips = 0.5 * (motion.positions["left_thigh"] + motion.positions["right_thigh"])
        way = motion.positions["head"] - hips
        ways.append(way / np.linalg.norm(way, axis=-1, keepdims=True))
    return float(np.arccos(np.clip(np.sum(ways[0] * ways[1], axis=-1), -1.0, 1.0)).max())


def sole(moved: Motion, source: Motion) -> float:
    """The largest distance of the lowest skin of a standing foot from the floor, as a share of the height.

    NaN without a mesh.
    """
    skin, down = skin_of(moved), foot_contacts(source).points.any(axis=-1)
    if skin is None:
        return float("nan")
    floor = size_ratio(source.skeleton, moved.skeleton) * exact_floor(source, foot_contacts(source).floor)
    gaps = [foot.lowest(moved)[down[:, side]] - floor for side, foot in enumerate(skin.soles)]
    return float(np.abs(np.concatenate(gaps)).max(initial=0.0)) / moved.skeleton.height


def telling(motion: Motion) -> tuple[int, int]:
    """Two frames of a motion: the one most unlike the mean, and the one most unlike that."""
    at = (
        np.stack([motion.positions[role] for role in MAIN_ROLES], axis=1)
        - motion.positions["pelvis"][:, None]
    )
    first = int(np.argmax(np.linalg.norm(at - at.mean(axis=0), axis=(1, 2))))
    second = int(np.argmax(np.linalg.norm(at - at[first], axis=(1, 2))))
    return min(first, second), max(first, second)


def drawn(shown: Subject, frame: int) -> Image.Image:
    """One moment, on a floor at height 0."""
    figure = shown.figure(frame)
    view = fitted(figure.vertices, azimuth=shown.facing + TURN, elevation=0.12, size=CELL, lens=8.0)
    return Image.fromarray(render([figure], view, floor=floor_under([figure], 0.0)))


def page_of(all_found: list[Carried], cells: int) -> Image.Image:
    """Two characters a row, each with its figures above it."""
    width, height, title = cells * CELL[0], CELL[1] + 44, 44
    page = Image.new("RGB", (2 * width, -(-len(all_found) // 2) * height), "white")
    for number, found in enumerate(all_found):
        strip = Image.new("RGB", (width, height), "white")
        for column, cell in enumerate(found.cells):
            strip.paste(cell, (column * CELL[0], title))
        labels.write_title(strip, found.name, found.words, scale=0.7)
        page.paste(strip, (number % 2 * width, number // 2 * height))
    return page


def main() -> None:
    """Print a line per character, write the page, and report how many pass."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--motions", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, default=Path("out/characters.png"))
    given = parser.parse_args()
    motions = {path.stem: resample(poise.read(path), 30.0) for path in given.motions}
    files = sorted(path for path in given.folder.iterdir() if path.suffix.lower() in SUFFIXES)
    all_found = []
    for path in files:
        all_found.append(carry(path, motions))
        print(f"{all_found[-1].name}: {all_found[-1].words}", flush=True)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    page_of(all_found, len(motions) * MOMENTS).save(given.output)
    hold = [not each.refused and each.farthest <= FARTHEST for each in all_found]
    stay = [not each.refused and max(each.slide.values()) <= MOST_SLIDE for each in all_found]
    right = sum(each.wrong_roles == [] for each in all_found)
    print(f"{len(files)} characters: roles right in {right}, contacts within 2 cm in {sum(hold)},")
    upright = [not each.refused and max(each.lean.values()) <= MOST_LEAN for each in all_found]
    flat = [not each.refused and max(each.sole.values()) <= SOLE for each in all_found]
    print(f"slide at most 1 cm in {sum(stay)}, trunk within 15 degrees in {sum(upright)},")
    print(f"soles within 1 % of the height in {sum(flat)}; {given.output}")


if __name__ == "__main__":
    main()
