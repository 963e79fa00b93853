"""Architectures: one file each and one line in `registry.py`; `features.py` has what they know of their inputs."""
