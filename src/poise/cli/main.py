"""The `poise` program: the list of its commands; run one, and turn every user's mistake into one clear line.

The program's own help is plain text, so that `poise --help` is instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper
from typing import TYPE_CHECKING

from poise.errors import PoiseError, UnknownNameError

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

COMMANDS = {
    "demo": "see that everything works: pose a body, write and draw a motion",
    "studio": "pose, keyframe and explore styles in the browser",
    "act": "make a procedural motion: walk, throw, box and others",
    "learn": "learn a model of poses from motion files",
    "pose": "pose a whole body from a few handles",
    "correct": "learn from your corrections of solved poses",
    "keyframe": "make a motion from the paths of a few handles",
    "inbetween": "make the motion between poses, by the motion prior",
    "image": "pose a whole body from points in a photo",
    "video": "get motion from ordinary video, without markers",
    "phase": "find and correct the phase, steps and transitions of clips",
    "simulate": "let a motion model walk and run on its own",
    "animate": "make a motion from foot contacts, paths and keyframes",
    "edit": "change the path of a handle in a clip; the body follows",
    "markers": "solve a body from optical markers, or fill their gaps",
    "fuse": "combine markers, cameras, inertial sensors and keys into a motion",
    "perform": "drive a body with a few markers, sensors or a webcam, also live",
    "model": "check and describe model files",
    "blend": "blend models, such as two styles, into one",
    "latent": "draw the latent space of a style",
    "sample": "make random poses of a style",
    "info": "show what is in motion files: joints, frames, height, units",
    "render": "draw a motion as a contact sheet or an animation",
    "retarget": "put a motion on your own character",
    "character": "show and correct the roles of a character's joints",
    "repair": "mend a motion: jitter, sliding feet, a sunk floor, missing frames",
    "clean": "the old name of repair",
    "convert": "convert between file formats; trim, resample, mirror",
    "library": "build and search a library of many clips",
    "serve": "pose characters of other programs over a local socket",
    "mcp": "let agents pose, animate and draw, by the Model Context Protocol",
    "export": "write the learned priors for other programs, as ONNX",
    "stream": "send a motion live over OSC (VMC): Blender, Unreal, VTuber tools",
    "cameras": "calibrate cameras with a printed board; simulate cameras",
    "evaluate": "measure all methods under the same protocol: errors and time",
    "data": "list and download public recordings",
    "doctor": "report what is installed and missing, and how fast this machine is",
    "warm-up": "compile the numerical code ahead of its first use",
}
"""Command to description, in the order of the help."""
MODULES = {
    "program": "demo doctor warm-up",
    "pose": "pose correct image",
    "motion": "act keyframe inbetween animate simulate edit repair clean",
    "capture": "markers video fuse",
    "perform": "perform",
    "cameras": "cameras",
    "learn": "learn phase",
    "models": "model blend latent sample export",
    "files": "info render retarget character convert",
    "library": "library data",
    "studio": "studio serve mcp stream",
    "evaluate": "evaluate",
}
"""Modules to commands; the module holds an `App` by the command's name."""

HELP = """\
Usage: poise COMMAND ...

A few handles in, a natural whole-body pose or motion out.

Commands (see poise COMMAND --help):
{commands}

Options:
  --help, -h  show this
  --version   show the version
  --install-completion  complete commands with the Tab key in this shell
  --overwrite replace existing files that a command writes beside its output
  --debug     show the traceback of an error (POISE_DEBUG=1 does the same)

Exit codes: 0 done; 1 done, but a handle is missed by more than 1 cm, or the
output was closed; 2 a mistake, named in one line; 130 interrupted.

Examples:
  poise demo                                 see what it does
  poise act walk --style tired -o walk.bvh   a procedural motion
  poise info walk.bvh                        show what is in a file
  poise render walk.bvh -o walk.png          draw it
  poise convert walk.bvh walk.glb            for Blender and game engines
  poise retarget walk.bvh me.glb -o out.glb  on your own character
"""

OK, BROKEN_PIPE, MISSED, USER_ERROR, INTERRUPTED = 0, 1, 1, 2, 130
_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def sentence(text: str) -> str:
    """Words as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def overview() -> str:
    """The text of `poise --help`."""
    return HELP.format(commands="\n".join(f"  {name:10s}  {what}" for name, what in COMMANDS.items()))


@cache
def program() -> App:
    """All commands. The module of a command is imported on use: none waits for the imports of another."""
    from cyclopts import App, Parameter

    app = App(
        name="poise",
        help="A few handles in, a natural whole-body pose or motion out.",
        help_format="plaintext",
        help_epilogue="",
        default_parameter=Parameter(negative=()),
        result_action="return_none",
        suppress_keyboard_interrupt=False,
    )
    module_of = {name: module for module, names in MODULES.items() for name in names.split()}
    for name, what in COMMANDS.items():
        place = f"poise.cli.{module_of[name]}:{name.replace('-', '_')}"
        app.command(place, name=name, help=sentence(what))
    app.register_install_completion_command()
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of the arguments (by default the program's own); return the exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream, TextIOWrapper):  # that must show names that are not UTF-8, too
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    tokens = [token for token in given if token not in ("--debug", "--overwrite")]
    debug = "--debug" in given or bool(os.environ.get("POISE_DEBUG"))
    from importlib.metadata import version

    try:
        if tokens in ([], ["--help"], ["-h"]):  # without slow imports
            print(overview(), end="")
        elif tokens == ["--version"]:
            print(f"poise {version('poise')}")
        else:
            return _run(tokens, debug=debug, overwrite="--overwrite" in given)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has closed it (`poise data list | head`): exit quietly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK


def _run(tokens: list[str], *, debug: bool, overwrite: bool) -> int:
    use_one_thread()
    from cyclopts import CycloptsError

    from poise.cli import terminal
    from poise.formats.files import OVERWRITING, existing_file

    before = OVERWRITING.set(overwrite)
    try:
        if tokens[0][:1] != "-" and tokens[0] not in COMMANDS:
            raise UnknownNameError("command", tokens[0], COMMANDS)
        with terminal.waiting(tokens[0]):
            command, bound, _ = program().parse_args(tokens, exit_on_error=False, print_error=False)
            if (character := bound.arguments.get("onto")) is not None:
                existing_file(
                    character
                )  # parsing checks names only; no work begins for a file that is missing
            code = command(*bound.args, **bound.kwargs)
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
    return code or OK


def _one_line(error: PoiseError | OSError | CycloptsError) -> str:
    message, chain = " ".join(str(error).split()), getattr(error, "command_chain", None)
    if chain is not None:  # of cyclopts' own errors
        return f"{message} (see {' '.join(['poise', *chain])} --help)"
    if isinstance(error, OSError) and not isinstance(error, PoiseError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    flags = " ".join(f"--{setting}" for setting in getattr(error, "settings", ()))
    return f"{message} (see {flags})" if flags else message


def use_one_thread() -> None:
    """Limit every linear algebra library to one thread; this must happen before NumPy is first imported."""
    for name in _LIBRARIES:
        os.environ.setdefault(name, "1")
