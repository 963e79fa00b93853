"""What `make new-model` writes of public tables that nobody here made, run as written: who is promoted, and who is not.

The tables are those of `make bench-models`; half of them are small, and one label is of chance alone.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.cloud import bigquery

from retraining.__main__ import main
from retraining.core.spec.files import load_spec
from retraining.operators.planning import run_plan
from tests.support.scenes.asked_endpoint import retire
from tests.support.scenes.examples import make_include
from tests.support.scenes.whole_run import run_whole

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".venv" / "bench-models" / "bin" / "python"
SOURCES = ("dev", "packages/localcloud/src", "packages/laptop/src", "packages/bench/src")
DATASET = "public_tables"
KNOWN = {
    "breast_cancer": ("auc", 0.97),
    "penguins": ("accuracy", 0.9),
    "wine": ("accuracy", 0.85),
    "titanic": ("auc", 0.75),
    "loans_denied": ("auc", 0.75),
    "default": ("auc", 0.9),
    "digits": ("accuracy", 0.9),
    "boston": ("r2", 0.6),
    "bikes": ("r2", 0.6),
}
"""What a first version must reach on the rows that it has not seen, far from chance."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, local_cloud) -> Iterator[None]:
    """The tables in the local BigQuery, their rows in no order, and one of which nothing can be learnt."""
    folder = tmp_path_factory.mktemp("tables")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / source) for source in SOURCES)}
    subprocess.run([PYTHON, "-m", "bench.models_data", str(folder), "1", *KNOWN], check=True, env=environ)
    client = bigquery.Client(project=local_cloud.project)
    for dataset in (DATASET, local_cloud.dataset):
        client.create_dataset(dataset, exists_ok=True)
    made = {name: pq.read_table(folder / f"{name}.1.parquet").drop_columns(["part"]) for name in KNOWN}
    random = np.random.default_rng(1)
    coins = {f"x{place}": random.normal(size=1000) for place in range(5)} | {"label": random.integers(0, 2, 1000)}
    made["coins"] = pa.table(coins)
    for name, table in made.items():
        path = folder / f"{name}.parquet"
        pq.write_table(table.append_column("row", pa.array(range(len(table)))), path)
        config = bigquery.LoadJobConfig(source_format="PARQUET", write_disposition="WRITE_TRUNCATE")
        with path.open("rb") as file:
            client.load_table_from_file(file, f"{DATASET}.{name}", job_config=config).result()
    yield
    client.delete_dataset(DATASET, delete_contents=True)


@pytest.fixture
def run_as_written(tables, tmp_path: Path, local_cloud, make_run, monkeypatch) -> Iterator[Any]:
    """A function that writes a table's model and runs its first night; gives the documents."""
    del tables

    endpoints = []

    def run(name: str) -> dict[str, Any]:
        include = make_include(tmp_path)
        model = f"public_{name}"
        given = {"name": model, "table": f"{DATASET}.{name}", "label": "label", "key": "row"}
        given |= {"include": str(include), "project": local_cloud.project, "region": "us-central1"}
        assert main(["new-model", *(word for key, value in given.items() for word in (f"--{key}", value))]) == 0
        monkeypatch.setattr(run_plan, "include_path", lambda: include)
        run = make_run(run_id=f"manual__{model}", run_after=datetime.now(UTC))
        found = run_whole(load_spec(include / "models" / f"{model}.yaml"), run)
        if endpoint := found.get("deployment", {}).get("endpoint_name"):
            endpoints.append(endpoint)
        return found

    yield run
    for endpoint in endpoints:
        retire(endpoint)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", KNOWN)
def test_a_first_version_of_a_public_table_is_promoted(run_as_written, name: str) -> None:
    """By the gates as written, and it answers well on rows that it has not seen."""
    metric, least = KNOWN[name]
    found = run_as_written(name)
    metrics = found["evaluation"]["challenger"]["metrics"]
    print(f"{name}: {found['report']['train_rows']} rows, {found['report']['steps']} steps, {metrics}")
    assert found["decision"]["verdict"] == "promote", found["decision"]["words"]
    assert metrics[metric] >= least


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_label_of_chance_is_not_promoted(run_as_written) -> None:
    """Of a thousand coins nothing can be learnt: the first version is no better than not asking, and that is said."""
    found = run_as_written("coins")
    assert found["decision"]["verdict"] != "promote"
    assert "auc" in found["decision"]["words"]
    assert "misses the floor (at least 0.55)" in found["decision"]["words"]
