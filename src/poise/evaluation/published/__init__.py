"""The papers' own methods, to compare with: `learn --method` and `solve(..., method=...)` find them by name."""
