"""`poise warm-up`: compile once, at installation, and not during work."""

import time

from cyclopts import App

from poise.cli import terminal

app = App(
    name="warm-up",
    help_epilogue="""\
The first run takes about a minute. It is needed again only when Poise, Numba or
the processor changes. `make setup` runs it for you.

Example:
  poise warm-up
""",
)


@app.default
def warm_up() -> None:
    """Compile the numerical kernels and cache them."""
    from poise.apps.warm_up import KERNELS, compile_all, pace_of

    start, pace = time.perf_counter(), pace_of()
    with terminal.watching(lambda: f"compiling: {pace.words}"):
        compile_all(pace)
    print(f"compiled {', '.join(KERNELS)} ({time.perf_counter() - start:.1f} s)")
