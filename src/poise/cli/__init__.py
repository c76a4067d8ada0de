"""The command line: thin files that parse, call the applications and libraries, and show progress; one a topic.

To add a command, write an `App` of its name in capitals in the file of its topic, and list the name in `main.py`.
"""

from poise.cli.main import main

__all__ = ["main"]
