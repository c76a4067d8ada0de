"""People in pictures without markers: found, told apart and followed, as 33 landmarks each (BlazePose)."""
