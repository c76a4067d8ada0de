"""The command line: thin files that parse, call the applications and libraries, and show progress; one a topic.

To add a command, write a function with `@command(HELP)` in the file of its topic, and list its name in `main.py`.
"""

from poise.cli.main import main

__all__ = ["main"]
