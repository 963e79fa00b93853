"""The one way into the local cloud, and what is answered there."""
