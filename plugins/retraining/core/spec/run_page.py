"""The section `report` of a model's YAML: what the page of a run shows."""

from __future__ import annotations

from retraining.core.spec.section import Section


class RunPage(Section):
    """What the run's page shows of single examples."""

    show_rows: bool = False
    """The features' values of the 20 largest errors, on the page and in `evaluation.json`; `false`: their keys
    alone."""
