"""People seen by cameras without markers: landmarks in pictures become a moving body."""
