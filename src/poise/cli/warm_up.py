"""`poise warm-up`: compile once, at install, and not in the middle of a person's work."""

import time

from cyclopts import App

from poise.cli import terminal

app = App(
    name="warm-up",
    help_epilogue="""\
The first time takes some seconds; after that there is nothing left to do
until Poise, Numba or the processor changes. `make setup` does it for you.

Example:
  poise warm-up
""",
)


@app.default
def warm_up() -> None:
    """Compile the numerical kernels and keep them."""
    from poise.apps.warm_up import KERNELS, compile_all

    start = time.perf_counter()
    with terminal.counting("compiling") as report:
        compile_all(report)
    print(f"compiled {', '.join(KERNELS)} ({time.perf_counter() - start:.1f} s)")
