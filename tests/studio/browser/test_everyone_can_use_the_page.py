"""Labels, focus and contrast: everything in the page has a name, can be reached by Tab, and can be read."""

import pytest

from studio_page import StudioPage

WORKSPACES = ("Pose", "Animate", "Photo", "Capture", "Learn")

CONTROLS = """() => [...document.querySelectorAll("button, input, select, textarea, a[href], [tabindex='0']")]
  .filter((element) => !element.disabled && element.getClientRects().length && element.tabIndex >= 0)"""

NAMELESS = f"""() => ({CONTROLS})().filter((element) => {{
  const labels = [...(element.labels ?? [])].map((label) => label.innerText).join("");
  return !(element.ariaLabel || labels || element.innerText || "").trim();
}}).map((element) => element.outerHTML.slice(0, 120))"""

# What Tab reaches is told apart by a number that the page is given for the time of the test.
NUMBER_THEM = f"""() => {{
  const controls = ({CONTROLS})();
  controls.forEach((element, at) => (element.dataset.at = at));
  return controls.length;
}}"""

FOCUSED = """() => {
  const { activeElement } = document;
  const around = [activeElement, activeElement.nextElementSibling, activeElement.closest("label")].filter(Boolean);
  const ringed = around.some((element) => getComputedStyle(element).outlineStyle !== "none");
  return [activeElement.dataset.at ?? null, ringed];
}"""

FAINT = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (below, colour) => {
    pen.clearRect(0, 0, 1, 1);
    for (const paint of [below, colour]) { pen.fillStyle = paint; pen.fillRect(0, 0, 1, 1); }
    const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
    return `rgb(${r}, ${g}, ${b})`;
  };
  const light = (colour) => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((value) => value / 255);
    const [r, g, b] = parts.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const above = [];
    for (let at = element; at; at = at.parentElement) above.unshift(getComputedStyle(at).backgroundColor);
    return above.reduce(over, "white");
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest(":disabled, [aria-hidden], canvas")) continue;
    const style = getComputedStyle(element), back = behind(element);
    const [a, b] = [light(over(back, style.color)), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${element.className} ${element.innerText.slice(0, 40)}`);
  }
  return faint;
}"""


@pytest.fixture
def studio(studio: StudioPage) -> StudioPage:
    """With a handle whose numbers are shown."""
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    return studio


def test_everything_has_a_name_and_can_be_read_in_both_themes(studio: StudioPage) -> None:
    for _theme in range(2):
        for workspace in WORKSPACES:
            studio.work_in(workspace)
            studio.page.mouse.move(400, 630)
            assert studio.page.evaluate(NAMELESS) == [], workspace
            studio.until(
                lambda: studio.page.evaluate(FAINT) == [],
                f"contrast in {workspace}: {studio.page.evaluate(FAINT)}",
            )
        studio.page.keyboard.press("t")


@pytest.mark.parametrize("workspace", ["Pose", "Animate", "Capture"])
def test_tab_reaches_everything_and_shows_where_it_is(studio: StudioPage, workspace: str) -> None:
    studio.work_in(workspace)
    studio.page.wait_for_timeout(100)
    count = studio.page.evaluate(NUMBER_THEM)
    studio.page.evaluate("document.activeElement.blur()")
    reached, ringless = [], []
    for _ in range(count + 2):
        studio.page.keyboard.press("Tab")
        number, ring = studio.page.evaluate(FOCUSED)
        if number is not None:
            reached.append(int(number))
            if not ring:
                ringless.append(number)
    assert set(reached) == set(range(count))
    assert ringless == []
    first = reached.index(0)
    in_order = reached[first : first + count]
    assert in_order == sorted(in_order)
