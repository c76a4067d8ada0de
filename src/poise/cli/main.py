"""The `poise` program: runs a command and turns every user's mistake into one clear line."""

import os
import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from poise.cli.app import app
from poise.errors import PoiseError

OK, BROKEN_PIPE, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments (else the program's own) name; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    tokens = [token for token in given if token != "--debug"]
    debug = tokens != given or bool(os.environ.get("POISE_DEBUG"))
    try:
        app(tokens, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed_pipe()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (PoiseError, OSError, CycloptsError) as error:
        if debug:
            raise
        print(f"poise: {_one_line(error)}", file=sys.stderr)
        return USER_ERROR
    return OK


def _one_line(error: PoiseError | OSError | CycloptsError) -> str:
    if isinstance(error, CycloptsError):
        return f"{_joined(str(error))} (see poise {' '.join(error.command_chain or ())} --help)".replace(
            "  ", " "
        )
    if isinstance(error, OSError) and not isinstance(error, PoiseError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return _joined(str(error))


def _joined(message: str) -> str:
    return " ".join(message.split())


def _closed_pipe() -> int:
    """The reader of our output has gone (`poise data list | head`): leave quietly, the interpreter too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
