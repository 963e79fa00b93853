"""The section `report` of a model's YAML: what the page of a run shows."""

from __future__ import annotations

from retraining.core.spec.section import Section


class RunPage(Section):
    """What the page shows of single examples: their keys; with `show_rows` their features' values too."""

    show_rows: bool = False
