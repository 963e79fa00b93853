"""The one door to the local cloud, and what is answered there."""
