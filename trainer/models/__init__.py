"""Architectures: one file each and one line in `registry.py`; `features.py` has what they are told of their inputs."""
