"""Artifact Registry: which images there are, and who may read them."""
