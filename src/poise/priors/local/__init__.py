"""Local models: poses from a few control signals, by nearby examples of a library."""
