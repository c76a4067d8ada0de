"""The studio: a web page for posing, keyframing, capture and exploring styles, and its server."""
