"""The program's commands, by module, imported on use: none waits for the imports of another."""

from cyclopts import App, Parameter

from poise.cli.overview import COMMANDS, sentence

app = App(
    name="poise",
    help="A few handles in, a natural whole-body pose or motion out.",
    help_format="plaintext",
    help_epilogue="",
    default_parameter=Parameter(negative=()),
    result_action="return_none",
    suppress_keyboard_interrupt=False,
)
for _name, _what in COMMANDS.items():
    app.command(f"poise.cli.{_name.replace('-', '_')}:app", name=_name, help=sentence(_what))
app.register_install_completion_command()
