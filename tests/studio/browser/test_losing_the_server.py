"""A page whose server dies says so, comes back by itself, and goes on."""

from pathlib import Path

from playwright.sync_api import Browser

from studio_page import Server, StudioPage


def test_the_page_recovers_from_a_killed_server(chromium_browser: Browser, models: list[Path]) -> None:
    server = Server(models)
    try:
        context = chromium_browser.new_context(viewport={"width": 1000, "height": 640})
        studio = StudioPage(context.new_page(), server.address)
        server.kill()
        studio.until(lambda: studio.page.get_by_text("Connection lost").is_visible(), "the loss to be said")
        studio.page.keyboard.press("m")
        studio.until(lambda: studio.page.get_by_role("alert").is_visible(), "words about it")
        server.start_again()
        studio.until(
            lambda: not studio.page.get_by_text("Connection lost").is_visible(), "the line to be back"
        )
        studio.drag_joint("right_hand", (-30, -40))
        studio.settled()
        assert list(studio.handles()) == ["RightHand"]
        context.close()
    finally:
        server.kill()
