"""Poise measured against others, as ratios within one run: `make bench` or `python -m benchmarks [NAME ...]`."""
