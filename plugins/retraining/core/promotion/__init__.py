"""Evaluation in; verdict, and what may happen to the endpoint, out."""
