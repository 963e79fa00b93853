"""JSON whose nulls say that a field is not there, as in a job's configuration of BigQuery.

In: JSON. Out: the same without those fields.
"""

from __future__ import annotations

from localcloud.untyped import Untyped


def without_nulls(value: Untyped) -> Untyped:
    """Return JSON without the fields of objects that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value
