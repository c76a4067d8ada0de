"""The list of commands. They are named by module and imported when used, so that `poise --help` stays quick."""

from cyclopts import App, Parameter

COMMANDS = {
    "demo": "Act, write, draw and read back: the whole way in a few seconds.",
    "act": "Have the procedural performer act, and write the motion.",
    "info": "Show what is in motion files: joints, frames, height, units.",
    "render": "Draw a motion as a contact sheet or an animation.",
    "convert": "Convert between file formats; trim, resample, mirror.",
    "data": "List and fetch public recordings.",
    "warm-up": "Compile the numerical kernels, so that nothing waits later.",
}
"""Command to what it does, in the order of the help; its `app` is in the module of that name beside this file."""

EPILOGUE = """\
Examples:
  poise demo                                 see what it does
  poise act walk --style tired -o walk.bvh   a motion without recording one
  poise info walk.bvh                        what is in a file
  poise render walk.bvh -o walk.png          look at it
  poise convert walk.bvh walk.glb            for Blender and game engines

poise COMMAND --help tells more. A mistake is reported in one line; add
--debug (or set POISE_DEBUG=1) to see where it arose.
"""


def _version() -> str:
    import poise

    return f"poise {poise.__version__}"


app = App(
    name="poise",
    help="A few handles in, a natural whole-body pose or motion out.",
    help_epilogue=EPILOGUE,
    help_format="plaintext",
    version=_version,
    default_parameter=Parameter(negative=()),
    result_action="return_none",
    suppress_keyboard_interrupt=False,
)
for _place, (_name, _help) in enumerate(COMMANDS.items()):
    app.command(f"poise.cli.{_name.replace('-', '_')}:app", name=_name, help=_help, sort_key=_place)
