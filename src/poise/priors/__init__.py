"""Learned models of poses."""
