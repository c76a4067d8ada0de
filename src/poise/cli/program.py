"""The program itself: see that it works (`demo`), what is installed (`doctor`), compile ahead (`warm-up`)."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated

from poise.cli import terminal
from poise.cli.options import about, command
from poise.errors import installing


@command("""\
Poses a body with the universal prior, five times, from two to four handles
each, and draws the poses on one page. Then writes a procedural motion as BVH,
GLB and contact sheet, reads the files back and compares them with the motion.

Examples:
  poise demo
  poise demo -o /tmp/poise --action walk --style sneaky
""")
def demo(
    *,
    output: Annotated[Path, about("The folder to write into.", "--output", "-o")] = Path("out"),
    action: Annotated[str, about("The action; poise act --list shows all of them.")] = "throw",
    style: Annotated[str, about("The style of the motion.")] = "energetic",
) -> None:
    """Draw poses and write a motion, to see that everything works."""
    start = time.perf_counter()
    terminal.compiled_first()
    with terminal.steps() as step:
        step("loading and compiling")
        from poise.apps.demo import demo as run

        done = run(output, action=action, style=style, step=step)
    met = sum(solution.reached for solution in done.poses.values())
    fastest = min(solution.microseconds for solution in done.poses.values()) / 1000.0
    print(f"the universal prior, from a few handles each: {', '.join(done.poses)}")
    print(f"  {met} of {len(done.poses)} meet all handles; a pose takes {fastest:.1f} ms or more")
    print(f"  {done.picture}  {terminal.file_size(done.picture)}")
    motion, height = done.motion, done.motion.skeleton.height
    print(
        f"{motion.name}: {motion.seconds:.1f} s, {len(motion)} frames at {motion.fps:g} Hz, {height:.2f} m tall"
    )
    print(f"  acted in {done.acting_seconds:.2f} s")
    for file in done.files:
        off = file.difference_mm
        checked = "" if off is None else f", read back within {max(off, 1e-4):.1g} mm"
        print(f"  {file.path}  {terminal.size(file.bytes)}, {file.seconds:.2f} s{checked}")
    print(f"done in {time.perf_counter() - start:.1f} s; look at {done.picture} and {done.files[-1].path}")


FOR_DEVELOPERS = ("train", "bench")  # extras that no command needs
SOLVES = 200


@command("""\
Run this first if something does not work, and add its output to bug reports.

Example:
  poise doctor
""")
def doctor() -> None:
    """Report the installation: versions, optional packages, the studio's page, the cache and speed."""
    import poise
    from poise.evaluation.report import machine, versions
    from poise.formats.files import make_folder
    from poise.motion.cache import cache_folder
    from poise.priors.model_file import load

    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    for extra, packages in optional_packages().items():
        missing = [name for name in packages if not _is_installed(name)]
        remedy = f"missing {', '.join(missing)}: {installing(extra)}"
        print(f"  {extra:8s} {remedy if missing else 'installed: ' + ', '.join(packages)}")
    page = Path(str(resources.files("poise"))) / "studio" / "web" / "dist" / "index.html"
    print(f"  page     {'built' if page.is_file() else 'not built: run `make page` in the source folder'}")

    folder, damaged = cache_folder(), list[str]()
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, poise.PoiseError) as error:
        print(f"  cache    cannot be written ({error}); set POISE_CACHE to another folder")
    else:
        for path in folder.rglob("*.poise"):
            try:
                load(path)
            except poise.PoiseError:
                damaged.append(str(path))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        state = f"damaged, delete: {', '.join(damaged)}" if damaged else "healthy"
        free = shutil.disk_usage(folder).free
        print(f"  cache    {state}; {size / 1e6:.0f} MB in {folder}, {free / 1e9:.0f} GB free")

    start = time.perf_counter()
    prior = poise.UniversalPrior.of_people()
    poise.solve(prior, {"right_hand": (0.3, 1.5, 0.5)})
    first = time.perf_counter() - start
    cached = "from the cache" if first < 5.0 else "compiled now; run `poise warm-up` once to compile the rest"
    print(f"  first pose {first:.1f} s ({cached})")
    start = time.perf_counter()
    for k in range(SOLVES):
        poise.solve(prior, {"right_hand": (0.3, 1.0 + 0.5 * k / SOLVES, 0.5)})
    rate = SOLVES / (time.perf_counter() - start)
    print(f"  then {rate:.0f} poses a second, universal prior, one handle")


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
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


@command("""\
The first run takes about a minute. It is needed again only when Poise, Numba or
the processor changes. `make setup` runs it for you.

Example:
  poise warm-up
""")
def warm_up() -> None:
    """Compile the numerical kernels and cache them."""
    from poise.apps.warm_up import KERNELS, compile_all, pace_of

    start, pace = time.perf_counter(), pace_of()
    with terminal.watching(lambda: f"compiling: {pace.words}"):
        compile_all(pace)
    print(f"compiled {', '.join(KERNELS)} ({time.perf_counter() - start:.1f} s)")
