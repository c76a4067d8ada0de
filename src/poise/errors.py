"""Exceptions for a user's mistakes: each is a `PoiseError` that says what was found, expected and what to do."""

import difflib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path


class PoiseError(Exception):
    """A mistake that the user can correct; the message says how, and `settings` names the settings to change."""

    def __init__(self, *message: object, settings: tuple[str, ...] = ()) -> None:
        super().__init__(*message)
        self.settings = settings


class ParseError(PoiseError):
    """A file that cannot be read; the message starts with the place, `run.bvh:41:`."""

    def __init__(self, message: str, *, path: str | Path = "<data>", line: int | None = None) -> None:
        self.path, self.line, self.message = Path(path), line, message
        place = f"{self.path.name}:{line}" if line is not None else self.path.name
        super().__init__(f"{place}: {message}")


class UnknownNameError(PoiseError):
    """A name (joint, role, action, format, ...) that does not exist; the message lists close matches."""

    def __init__(self, kind: str, name: str, valid: Iterable[str], *, hint: str = "") -> None:
        self.name, self.valid = name, tuple(valid)
        if not hint:
            folded = {candidate.casefold(): candidate for candidate in self.valid}
            close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
            meant = " or ".join(folded[match] for match in close)
            hint = f"did you mean {meant}?" if close else f"valid: {', '.join(self.valid)}"
        super().__init__(f"no {kind} {name!r}; {hint}")


class SkeletonError(PoiseError):
    """A skeleton that is not a single tree, or two skeletons that are not compatible."""


class InvalidValueError(PoiseError):
    """A number or an array that is out of range, not finite or of the wrong shape."""


class MissingExtraError(PoiseError):
    """An optional dependency is needed but not installed."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}; install it with: {installing(extra)}")


def installing(extra: str) -> str:
    """The command that adds an extra: to a checkout by its folder, to a wheel the packages, wherever it came from."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():
        return f"pip install -e '{checkout}[{extra}]'"
    packages = [one.partition(";")[0].strip() for one in requires("poise") or () if f"'{extra}'" in one]
    return " ".join(["pip install", *(f"'{package}'" for package in packages)])
