"""Cameras that watch a performer: calibrate, detect, match, triangulate, label (Chai and Hodgins 2005, section 4.1)."""
