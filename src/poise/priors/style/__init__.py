"""The style prior: a scaled Gaussian process latent variable model of poses (Grochow et al. 2004)."""
