"""Batch prediction jobs: a table or files in, predictions out."""
