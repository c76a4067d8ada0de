"""People whom cameras see without markers: landmarks in pictures become a body that moves."""
