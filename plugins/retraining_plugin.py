"""The plugin of a plugins folder; where the package is installed its entry point takes this file's place."""

from retraining.web.plugin import RetrainingPlugin

__all__ = ["RetrainingPlugin"]
