"""Priors with a latent space: a Gaussian process from latent points to poses, and its use in a solve."""
