"""Models of motion in a latent space: GP-LVM, GPDM, back-constraints, local linearity, topology and transitions."""
