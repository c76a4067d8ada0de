"""The `poise` program: run a command and turn every user's mistake into one clear line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from poise.cli.overview import COMMANDS, overview
from poise.errors import PoiseError, UnknownNameError

if TYPE_CHECKING:
    from cyclopts import CycloptsError

OK, BROKEN_PIPE, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of the arguments (by default the program's own); return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    tokens = [token for token in given if token not in ("--debug", "--overwrite")]
    debug = "--debug" in given or bool(os.environ.get("POISE_DEBUG"))
    try:
        if not _answer_at_once(tokens):
            return _run(tokens, debug=debug, overwrite="--overwrite" in given)
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed_pipe()
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK


def _answer_at_once(tokens: list[str]) -> bool:
    """Print help and version without slow imports; return whether that was requested."""
    if tokens in ([], ["--help"], ["-h"]):
        print(overview(), end="")
        return True
    if tokens == ["--version"]:
        import poise

        print(f"poise {poise.__version__}")
        return True
    return False


def _run(tokens: list[str], *, debug: bool, overwrite: bool) -> int:
    use_one_thread()
    from cyclopts import CycloptsError

    from poise.cli.app import app
    from poise.formats.files import OVERWRITING, existing_file

    before = OVERWRITING.set(overwrite)
    try:
        if tokens[0][:1] != "-" and tokens[0] not in COMMANDS:
            raise UnknownNameError("command", tokens[0], COMMANDS)
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        if (character := bound.arguments.get("onto")) is not None:
            existing_file(character)  # parsing checks names only; no work begins for a file that is missing
        command(*bound.args, **bound.kwargs)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (PoiseError, OSError, CycloptsError) as error:
        if debug:
            raise
        print(f"poise: {_one_line(error)}", file=sys.stderr)
        return USER_ERROR
    finally:
        OVERWRITING.reset(before)
    return OK


def _one_line(error: PoiseError | OSError | CycloptsError) -> str:
    chain = getattr(error, "command_chain", None)  # of cyclopts' own errors
    if chain is not None:
        return f"{_joined(str(error))} (see {' '.join(['poise', *chain])} --help)"
    if isinstance(error, OSError) and not isinstance(error, PoiseError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    flags = " ".join(f"--{setting}" for setting in getattr(error, "settings", ()))
    return f"{_joined(str(error))} (see {flags})" if flags else _joined(str(error))


def _joined(message: str) -> str:
    return " ".join(message.split())


def _closed_pipe() -> int:
    """The reader of our output has closed it (`poise data list | head`): exit quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def use_one_thread() -> None:
    """Limit every linear algebra library to one thread; this must happen before NumPy is first imported."""
    for name in _LIBRARIES:
        os.environ.setdefault(name, "1")
