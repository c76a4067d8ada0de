"""Constraints and the solvers that meet them."""
