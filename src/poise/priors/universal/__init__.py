"""The universal prior: learned from many people, for any humanoid and any handles; it comes with Poise."""
