"""Read files with a compiled library in a separate process, where it may crash, hang or exhaust memory.

A child is a script beside this one, `NAME_child.py FILE OUT.npz ARGUMENTS`. It imports nothing from Poise except
`named_files`, through which it opens what its file names. It writes its arrays to OUT.npz, or exits with
`sys.exit("refused what is wrong with the file")`.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import MissingExtraError, ParseError
from poise.formats.files import scratch_folder

_SECONDS = 120
_REFUSED = "refused "
_LIMITED = """
import os, runpy, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
except (ImportError, ValueError, OSError):  # Windows has no such limits, macOS not this one
    pass
del sys.argv[0]
sys.path.append(os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def arrays_of(
    child: str, file: Path, *arguments: str, reason: str, said_of: Path | None = None
) -> dict[str, Any]:
    """Return the arrays that a child read; raise a ParseError with the child's message, else with this reason.

    The error names `said_of` if the file is one that Poise made of it.
    """
    named = said_of or file
    with scratch_folder() as folder:
        out = folder / "content.npz"
        script = str(Path(__file__).with_name(f"{child}_child.py"))
        # -I: no imports from its own folder; -O: the asserts of the package c3d only concern metadata.
        command = [
            sys.executable,
            "-I",
            "-O",
            "-c",
            _LIMITED,
            script,
            str(file.resolve()),
            str(out),
            *arguments,
        ]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, text=True)
        except subprocess.TimeoutExpired:
            raise ParseError(f"{reason}: not read within {_SECONDS} s", path=named) from None
        if not out.is_file():
            said = [line for line in ended.stderr.splitlines() if line.startswith(_REFUSED)]
            raise ParseError(said[-1].removeprefix(_REFUSED) if said else reason, path=named)
        with np.load(out) as found:
            return {name: found[name] for name in found.files}


def need(package: str, *, module: str, extra: str, purpose: str) -> None:
    """Raise an error that names the extra if the child's library is not installed."""
    if find_spec(module) is None:
        raise MissingExtraError(package, extra=extra, purpose=purpose)
