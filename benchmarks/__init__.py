"""Poise measured against others, as ratios within one run: `make bench` or `python -m benchmarks [NAME ...]`."""

from poise.cli.main import use_one_thread

use_one_thread()
