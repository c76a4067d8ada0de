"""What the tests check every call of Poise with: the annotated types and array shapes, by beartype and jaxtyping."""

from collections.abc import Callable
from pathlib import Path

from beartype import BeartypeConf, beartype

SOURCE = Path(__file__).parents[1] / "src"

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(function: Callable[..., object]) -> Callable[..., object]:
    """Check a function's calls; constructors are left to their own checks, which say more and take array-likes."""
    return function if function.__name__ == "__init__" else _check(function)


def checked_modules() -> list[str]:
    """Every module but the compiled ones: Numba cannot compile a function that a checker has wrapped."""
    files = (file for file in (SOURCE / "poise").rglob("*.py") if file.name != "__init__.py")
    return [
        ".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in files if not _is_compiled(file)
    ]


def _is_compiled(file: Path) -> bool:
    source = file.read_text(encoding="utf-8")
    return "from numba import" in source or "@compiled" in source
