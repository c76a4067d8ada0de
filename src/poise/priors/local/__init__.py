"""Local models: poses from a few control signals, by the examples of a library that are near them."""
