"""Builds the packages that others install: `retraining`, `retraining-trainer`, `localcloud`. Run by `make packages`.

Never shipped itself.
"""
