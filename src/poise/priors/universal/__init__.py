"""The universal prior: learned from everyone, for any humanoid and any handles; it comes with Poise."""
