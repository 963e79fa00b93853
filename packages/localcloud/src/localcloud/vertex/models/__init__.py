"""The model registry: models, their versions, aliases and evaluations."""
