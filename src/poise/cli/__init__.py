"""The command line: thin files that parse, call the applications and libraries, and show progress. One file a command.

To add a command, write `cli/<name>.py` with an `app` of that name and list the name in `cli/overview.py`.
"""

from poise.cli.main import main

__all__ = ["main"]
