"""The tasks of a walk-forward: its plan, the runs of its versions, their scorings, the page."""
