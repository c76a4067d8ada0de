"""Plain mathematics: rotations, cameras, splines."""
