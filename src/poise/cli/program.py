"""The program itself: see that it works (`demo`), what is installed (`doctor`), compile ahead (`warm-up`)."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import installing

DEMO = App(
    name="demo",
    help_epilogue="""\
Writes a procedural motion as BVH, GLB and contact sheet, reads the files back
and compares them with the motion. Then poses a body with the universal prior:
the feet stay, the right hand goes up, and the body follows.

Examples:
  poise demo
  poise demo -o /tmp/poise --action walk --style sneaky
""",
)


@DEMO.default
def demo(
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"), help="The folder to write into.")] = Path(
        "out"
    ),
    action: Annotated[str, Parameter(help="The action; poise act --list shows all of them.")] = "throw",
    style: Annotated[str, Parameter(help="The style of the motion.")] = "energetic",
) -> None:
    """Write a motion and a pose, to see that everything works."""
    start = time.perf_counter()
    with terminal.steps() as step:
        step("loading and compiling")
        from poise.apps.demo import demo as run

        done = run(output, action=action, style=style, step=step)
    motion, height = done.motion, done.motion.skeleton.height
    print(
        f"{motion.name}: {motion.seconds:.1f} s, {len(motion)} frames at {motion.fps:g} Hz, {height:.2f} m tall"
    )
    print(f"  acted in {done.acting_seconds:.2f} s")
    for file in done.files:
        checked = (
            "" if file.difference_mm is None else f", read back within {max(file.difference_mm, 1e-4):.1g} mm"
        )
        print(f"  {file.path}  {terminal.size(file.bytes)}, {file.seconds:.2f} s{checked}")
    print(f"posed by three handles: {done.posed}")
    print(f"done in {time.perf_counter() - start:.1f} s; look at {done.files[-1].path} and {done.picture}")


DOCTOR = App(
    name="doctor",
    help_epilogue="""\
Run this first if something does not work, and add its output to bug reports.

Example:
  poise doctor
""",
)
FOR_DEVELOPERS = ("train", "bench")  # extras that no command needs
SOLVES = 200


@DOCTOR.default
def doctor() -> None:
    """Report the installation: versions, optional packages, the studio's page, the cache and speed."""
    from poise.evaluation.report import machine, versions

    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    for extra, packages in optional_packages().items():
        missing = [name for name in packages if not _is_installed(name)]
        remedy = f"missing {', '.join(missing)}: {installing(extra)}"
        print(f"  {extra:8s} {remedy if missing else 'installed: ' + ', '.join(packages)}")
    page = Path(str(resources.files("poise"))) / "studio" / "web" / "dist" / "index.html"
    print(f"  page     {'built' if page.is_file() else 'not built: run `make page` in the source folder'}")
    print(f"  cache    {_cache()}")
    for line in _speed():
        print(f"  {line}")


def optional_packages() -> dict[str, list[str]]:
    """The packages of each extra that a command may need."""
    found: dict[str, list[str]] = {}
    for requirement in metadata.requires("poise") or ():
        name, _, marker = requirement.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        if extra and extra[1] not in FOR_DEVELOPERS:
            package = re.match(r"[\w.-]+", name)
            found.setdefault(extra[1], []).append(package[0] if package else name)
    return found


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _cache() -> str:
    """Whether the cache folder is writable, its size, and its damaged models."""
    from poise.errors import PoiseError
    from poise.formats.files import make_folder
    from poise.motion.cache import cache_folder
    from poise.priors.model_file import load

    folder = cache_folder()
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, PoiseError) as error:
        return f"cannot be written ({error}); set POISE_CACHE to another folder"
    damaged = []
    for path in folder.rglob("*.poise"):
        try:
            load(path)
        except PoiseError:
            damaged.append(str(path))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    free = shutil.disk_usage(folder).free
    state = f"damaged, delete: {', '.join(damaged)}" if damaged else "healthy"
    return f"{state}; {size / 1e6:.0f} MB in {folder}, {free / 1e9:.0f} GB free"


def _speed() -> list[str]:
    """The time of the first pose, whether its compiled code came from the cache, and the rate of poses after it."""
    import poise

    start = time.perf_counter()
    prior = poise.UniversalPrior.of_people()
    poise.solve(prior, {"right_hand": (0.3, 1.5, 0.5)})
    first = time.perf_counter() - start
    start = time.perf_counter()
    for k in range(SOLVES):
        poise.solve(prior, {"right_hand": (0.3, 1.0 + 0.5 * k / SOLVES, 0.5)})
    rate = SOLVES / (time.perf_counter() - start)
    cached = "from the cache" if first < 5.0 else "compiled now; run `poise warm-up` once to compile the rest"
    return [
        f"first pose {first:.1f} s ({cached})",
        f"then {rate:.0f} poses a second, universal prior, one handle",
    ]


WARM_UP = App(
    name="warm-up",
    help_epilogue="""\
The first run takes about a minute. It is needed again only when Poise, Numba or
the processor changes. `make setup` runs it for you.

Example:
  poise warm-up
""",
)


@WARM_UP.default
def warm_up() -> None:
    """Compile the numerical kernels and cache them."""
    from poise.apps.warm_up import KERNELS, compile_all, pace_of

    start, pace = time.perf_counter(), pace_of()
    with terminal.watching(lambda: f"compiling: {pace.words}"):
        compile_all(pace)
    print(f"compiled {', '.join(KERNELS)} ({time.perf_counter() - start:.1f} s)")
