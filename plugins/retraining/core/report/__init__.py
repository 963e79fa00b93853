"""The run's page for people: documents in, one self-contained HTML file out.

Nothing but the documents is read, no clock either: the same documents give the same bytes.
"""

from retraining.core.report.page import render

__all__ = ["render"]
