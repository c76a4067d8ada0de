"""People in pictures without markers: detected, identified and tracked, as 33 landmarks each (BlazePose)."""
