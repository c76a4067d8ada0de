"""People in pictures without markers: found, distinguished and followed, as 33 landmarks each (BlazePose)."""
