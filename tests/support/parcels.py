"""A model whose files a test writes, so that BigQuery can be asked about them."""

from __future__ import annotations

from pathlib import Path

SPEC = """
name: parcels
description: Late?
data: {query: parcels/examples.sql, key: id, event_time: happened}
features: [{name: carrier, kind: categorical}, {name: weight, kind: numeric}]
label: {name: late, kind: binary}
training: {model: wide_deep}
evaluation: {metric: auc, min_value: 0.6, slices: [carrier]}
"""
WHERE = "WHERE happened >= @window_start AND happened < LEAST(@window_end, @as_of)"


def write_parcels(include: Path, sql: str, spec: str = SPEC) -> None:
    """Write its file and its query into a folder, over those that are there."""
    (include / "models").mkdir(exist_ok=True)
    (include / "sql" / "parcels").mkdir(parents=True, exist_ok=True)
    (include / "models" / "parcels.yaml").write_text(spec, encoding="utf-8")
    (include / "sql" / "parcels" / "examples.sql").write_text(sql, encoding="utf-8")
