"""The studio: a web page in which a person poses, keyframes, captures and explores styles, and the server behind it."""
