"""From models and a split to scores; `job.py` reads top to bottom."""
