"""What the page suggests while the hand rests: which handle to pin, what else is possible, which model fits."""

import math

import pytest

from poise.performer import act
from studio_page import StudioPage


@pytest.fixture
def studio(studio: StudioPage) -> StudioPage:
    """After the tour: nothing is suggested beside it."""
    studio.press("Skip the tour")
    return studio


def test_the_next_handle_is_suggested_and_pinned_by_a_click(studio: StudioPage) -> None:
    studio.drag_joint("right_hand", (-30, -40))
    studio.settled()
    offer = studio.page.get_by_role("note", name="Suggestion")
    studio.until(lambda: offer.count() == 1, "a suggestion")
    assert "next." in offer.inner_text()
    joint = studio.page.evaluate("() => document.querySelector('.advice').innerText").split(" next.")[0]
    offer.get_by_role("button", name="Pin it").click()
    studio.wait("window.poise.state.handles.value.length === 2")
    added = studio.ask("state.labelOf(state.handles.value[1].joint)")
    assert joint == f"Place the {added}"
    studio.until(lambda: offer.count() == 1 and added not in offer.inner_text(), "the next one")
    offer.get_by_role("button", name="Dismiss the suggestion").click()
    studio.until(lambda: offer.count() == 0, "the suggestion to be gone")


def test_what_else_is_possible_is_shown_while_nothing_moves(studio: StudioPage) -> None:
    ghosts = (
        "stage.scene.children.filter(({ isSkinnedMesh, visible }) => isSkinnedMesh && visible).length - 1"
    )
    studio.drag_joint("right_hand", (-30, -40))
    studio.settled()
    assert studio.ask(ghosts) == 0
    studio.page.keyboard.press("u")
    studio.until(lambda: studio.ask(ghosts) == 5, "other poses")
    studio.drag_joint("right_hand", (5, -10), release=False)
    studio.until(lambda: studio.ask(ghosts) == 0, "no others under the hand")
    studio.page.mouse.up()
    studio.until(lambda: studio.ask(ghosts) == 5, "others again")
    studio.page.keyboard.press("u")
    studio.until(lambda: studio.ask(ghosts) == 0, "none")


def test_a_model_that_fits_is_offered_and_taken(studio: StudioPage) -> None:
    studio.page.get_by_role("button", name="From recordings").click()
    studio.wait("window.poise.state.model.value.kind === 'gaussian'")
    studio.page.get_by_role("button", name="Free", exact=True).click()
    stride = act("walk", seconds=2.0, fps=20)[5]
    for role in ("left_foot", "right_foot", "left_hand", "head"):
        joint = stride.skeleton.roles[role]
        studio.page.get_by_label("Add a handle").select_option(joint)
        studio.wait(f"window.poise.state.selectedHandle.value?.joint === '{joint}'")
        for axis, value in zip("XYZ", stride.positions[role], strict=True):
            field = studio.page.get_by_label(f"{axis} in centimetres")
            field.fill(f"{100 * value:.1f}")
            field.press("Enter")
    offer = studio.page.get_by_role("note", name="Suggestion").filter(has_text="looks like walk")
    studio.until(lambda: offer.count() == 1, "the walk to be offered")
    offer.get_by_role("button", name="Use it").click()
    studio.wait("window.poise.state.model.value.name === 'walk'")
    studio.until(lambda: offer.count() == 0, "the offer to be gone")


def test_another_kind_of_pose_is_pointed_at_taken_and_undone(studio: StudioPage) -> None:
    studio.page.get_by_role("button", name="General").click()
    studio.wait("window.poise.state.model.value.kind === 'universal'")
    joint = studio.ask("state.body.value.joints.find(({ role }) => role === 'left_hand').name")
    studio.page.get_by_label("Add a handle").select_option(joint)
    studio.wait(f"window.poise.state.selectedHandle.value?.joint === '{joint}'")
    for axis, value in zip("XYZ", (20, 25, 35), strict=True):  # near the floor: kneel, crouch or bend?
        field = studio.page.get_by_label(f"{axis} in centimetres")
        field.fill(str(value))
        field.press("Enter")
    kinds = studio.page.get_by_role("group", name="Other kinds of poses")
    studio.until(lambda: kinds.count() == 1, "other kinds of poses")
    buttons, hips = kinds.get_by_role("button"), studio.joint("pelvis")
    shares = [int(words.rstrip(" %")) for words in buttons.all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    box = kinds.bounding_box()
    assert box is not None
    under = "document.elementFromPoint({}, {}).localName"
    assert studio.ask(under.format(box["x"] + 20, box["y"] + box["height"] / 2)) == "canvas"  # can be dragged
    ghosts = "stage.scene.children.filter(({ isSkinnedMesh, visible }) => isSkinnedMesh && visible).length"
    bodies = studio.ask(ghosts)
    buttons.first.hover()
    studio.until(lambda: studio.ask(ghosts) == bodies + 1, "the kind that is pointed at")
    studio.page.mouse.move(box["x"] + box["width"] + 100, box["y"] - 100)
    studio.until(lambda: studio.ask(ghosts) == bodies, "nothing pointed at")
    buttons.first.click()
    studio.until(lambda: math.dist(studio.joint("pelvis"), hips) > 0.05, "the other kind")
    studio.page.keyboard.press("Control+z")
    studio.until(lambda: math.dist(studio.joint("pelvis"), hips) < 1e-3, "the former pose")
    assert list(studio.handles()) == [joint]
