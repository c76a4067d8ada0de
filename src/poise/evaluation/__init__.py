"""Protocols that measure every method the same way, on the performer or on recordings."""
