"""Gaussian processes: covariances, exact and sparse likelihoods, latent variables, regression. Plain mathematics."""
