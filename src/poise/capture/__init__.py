"""What was observed of a body, as constraints and poses: markers of a recorded take, points in photos."""
