"""From batches to a trained model; `job.py` reads top to bottom."""
