"""The motion prior: how people get from one pose to the next; learned from many people, for any humanoid."""
