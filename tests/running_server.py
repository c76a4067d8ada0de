"""`poise serve` in a thread, as tests connect to it."""

import threading

from poise.apps import serving


def served() -> int:
    """The port on which characters are posed until the tests end."""
    ready, ports = threading.Event(), list[int]()

    def bound(number: int) -> None:
        ports.append(number)
        ready.set()

    threading.Thread(target=lambda: serving.serve(0, ready=bound), daemon=True).start()
    assert ready.wait(60)
    return ports[0]
