"""A model of parcels in the local cloud: ten days of rows whose label follows from one number, and no endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from tests.support.scenes.data_tasks import make_source

_SPEC = """
name: {name}
description: Will it be late?
schedule: null
{line}
data:
  query: {name}/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  days: [2013-11-01, 2013-11-20]
  checks: {{min_rows: 300}}
features:
  - {{name: weight, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: linear, seed: 7}}
evaluation: {{metric: log_loss, max_value: 0.9}}
deployment: null
"""
_SOURCE = """
CREATE OR REPLACE TABLE {dataset}.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-01 00:01:00+00', INTERVAL 24 * i MINUTE) AS seen_at,
  MOD(i * 104729, 1000) / 10 AS weight,
  IF(MOD(i * 104729, 1000) > 500, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, 1199)) AS i
"""
_QUERY = "SELECT * FROM {dataset}.parcels WHERE seen_at >= @window_start AND seen_at < @window_end AND seen_at < @as_of"


def make_parcels(local_cloud: Any, include: Path, name: str, line: str) -> ModelSpec:
    """Write a model's table and files; return its spec.

    Args:
        local_cloud: Where the table is made, in a dataset of the model's own.
        include: Folder of the files.
        name: Of the model.
        line: One more line of its file.
    """
    dataset = f"{name}_source"
    make_source(local_cloud, dataset, _SOURCE.format(dataset=dataset))
    (include / "sql" / name).mkdir(parents=True)
    (include / "sql" / name / "examples.sql").write_text(_QUERY.format(dataset=dataset))
    path = include / "models" / f"{name}.yaml"
    path.write_text(_SPEC.format(name=name, line=line))
    return load_spec(path)
