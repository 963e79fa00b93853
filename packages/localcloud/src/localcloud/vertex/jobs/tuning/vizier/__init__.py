"""VizierService: studies, their trials, and suggestions."""
