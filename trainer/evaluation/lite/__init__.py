"""TF Lite: an optional, smaller copy of the stored model, and how much worse it is.

`artifacts.py` arranges, `convert.py` converts in a process of its own, `interpreter.py` scores.
"""
