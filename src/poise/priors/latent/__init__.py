"""Priors with a latent space: a Gaussian process from latent points to poses, and all that a solve needs of it."""
