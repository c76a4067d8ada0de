"""`python -m poise`: the same as `poise`."""

import sys

from poise.cli import main

sys.exit(main())
