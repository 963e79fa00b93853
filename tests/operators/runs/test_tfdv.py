"""TensorFlow Data Validation itself looks at a run of the local cloud: `make tfdv`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from google.cloud import storage

from retraining.core.spec.files import load_spec
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import run_whole

ROOT = Path(__file__).resolve().parents[3]
TFDV_PYTHON = ROOT / ".venv" / "tfdv" / "bin" / "python"
DAYS, PER_DAY = 10, 120
SPEC = """
name: {name}
description: Will it be late?
schedule: null
data:
  query: {name}/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  checks: {{min_rows: 1000, ranges: {{weight: [0, 100]}}}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: zone, kind: categorical, embedding_dim: 2}}
  - {{name: distance, kind: numeric}}
  - {{name: weight, kind: numeric}}
  - {{name: stops, kind: sequence, of: categorical, length: 3, embedding_dim: 2}}
label: {{name: late, kind: binary}}
training: {{model: gru, epochs: 1}}
evaluation: {{metric: auc, min_value: 0.5}}
"""
SOURCE = f"""
CREATE OR REPLACE TABLE tfdv_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:01:00+00', INTERVAL 12 * i MINUTE) AS seen_at,
  IF(MOD(i, 2) = 0, 'fast, "Ünter"', 'slow') AS carrier,
  MOD(i, 4) AS zone,
  IF(MOD(i, 31) = 0, NULL, MOD(i * 7919, 3000)) AS distance,
  MOD(i * 104729, 1000) / 10 AS weight,
  IF(MOD(i, 3) = 0, ['a'], ['a', 'b']) AS stops,
  IF(MOD(i * 104729, 1000) > 500, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, {DAYS * PER_DAY - 1})) AS i
"""
QUERY = "SELECT * FROM tfdv_source.parcels WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
# Three of a shard's examples are changed: a carrier that no row has, a weight outside its range, no label.
CHANGE_SHARD = """
import sys
import tensorflow as tf
examples = [tf.train.Example.FromString(each.numpy()) for each in tf.data.TFRecordDataset(sys.argv[1], "GZIP")]
examples[0].features.feature["carrier"].bytes_list.value[0] = b"nobody"
examples[1].features.feature["weight"].float_list.value[0] = 1000.0
del examples[2].features.feature["late"]
with tf.io.TFRecordWriter(sys.argv[1], "GZIP") as shard:
    for example in examples:
        shard.write(example.SerializeToString())
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not TFDV_PYTHON.exists() and sys.version_info >= (3, 12), reason="TFDV has no Python later than 3.11"
    ),
]


def in_tfdv(local_cloud: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in TFDV's environment, beside the local cloud."""
    environment = {**os.environ, **local_cloud.env, "PYTHONPATH": str(ROOT / "dev"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [str(TFDV_PYTHON), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def tfdv_source(local_cloud) -> None:
    """Ten days of parcels."""
    make_source(local_cloud, "tfdv_source", SOURCE)


def test_a_run_has_no_anomaly_and_a_changed_one_has_each_that_was_made(
    local_cloud, tfdv_source, make_run, include: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command itself, on what a run's tasks wrote: schema, statistics, and the exporter's shards."""
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    name = f"tfdv_{uuid.uuid4().hex[:12]}"
    (include / "models" / f"{name}.yaml").write_text(SPEC.format(name=name))
    (include / "sql" / name).mkdir(parents=True)
    (include / "sql" / name / "examples.sql").write_text(QUERY)
    run = make_run()
    splits = run_whole(load_spec(include / "models" / f"{name}.yaml"), run, last="export")["manifest"]["splits"]
    run_uri = run.xcoms["plan", "return_value"]["run_uri"]

    done = in_tfdv(local_cloud, "-m", "tfdv", run_uri)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f"{what}, {split}, {found['rows']} examples: no anomaly"
        for split, found in splits.items()
        for what in ("statistics.pbtxt", "shards")
    )

    bucket = storage.Client().bucket(local_cloud.bucket)
    shard = bucket.blob(splits["train"]["files"][0]["uri"].removeprefix(f"gs://{local_cloud.bucket}/"))
    shard.download_to_filename(tmp_path / "shard")
    assert in_tfdv(local_cloud, "-c", CHANGE_SHARD, str(tmp_path / "shard")).returncode == 0
    shard.upload_from_filename(tmp_path / "shard")
    written = bucket.blob(f"{run_uri.removeprefix(f'gs://{local_cloud.bucket}/')}/statistics.pbtxt")
    written.upload_from_string(written.download_as_text().replace('label: "slow"', 'label: "sl0w"', 1))

    done = in_tfdv(local_cloud, "-m", "tfdv", run_uri)
    assert done.returncode == 1, done.stderr
    unknown = "carrier: Examples contain values missing from the schema:"
    found = [line.strip() for line in done.stdout.splitlines() if "no anomaly" not in line]
    assert [re.split(r" ?\(", line)[0] for line in found] == [
        f"statistics.pbtxt, test, {splits['test']['rows']} examples: 1 anomalies",
        f"{unknown} sl0w",
        f"shards, train, {splits['train']['rows']} examples: 3 anomalies",
        f"{unknown} nobody",
        "late: The feature was present in fewer examples than expected: minimum fraction = 1.000000, actual = 0.998830",
        "weight: Unexpectedly high value: 1000>100",
    ]
