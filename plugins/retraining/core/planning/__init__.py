"""Spec, time and settings in; the plan of a run out."""
