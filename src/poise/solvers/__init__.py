"""Constraints and the solvers that satisfy them."""
