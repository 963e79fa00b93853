"""Architectures: one file each and one line in `registry.py`; `features.py` is what all of them get as input."""
