"""What `make new-model` writes is trained whole: a small table is learnt by any seed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from google.cloud import bigquery

from retraining.__main__ import main
from retraining.core.spec.files import load_spec
from retraining.operators.planning import run_plan
from tests.support.scenes.examples import make_include
from tests.support.scenes.whole_run import run_whole

# Three kinds of bird, told apart by three measures and an island, as a table of a textbook has them: no key, no time.
BIRDS = """
CREATE OR REPLACE TABLE newcomers.birds AS
SELECT
  ['Adelie', 'Gentoo', 'Chinstrap'][OFFSET(kind)] AS species,
  IF(kind = 1, 'Biscoe', 'Dream') AS island,
  38.0 + IF(kind = 0, 0, 10) + 3 * SIN(i * 12.9) AS `bill length (mm)`,
  18.0 - IF(kind = 1, 3, 0) + SIN(i * 78.2) AS bill_depth,
  IF(MOD(i, 50) = 0, NULL, 3700 + IF(kind = 1, 1400, 0) + 300 * SIN(i * 37.7)) AS body_mass
FROM (SELECT i, MOD(DIV(i * 7, 3), 3) AS kind FROM UNNEST(GENERATE_ARRAY(1, 344)) AS i)
"""


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_small_table_is_learnt_by_any_seed(tmp_path: Path, local_cloud, make_run, monkeypatch, seed: int) -> None:
    """Five steps, as five epochs of large batches took, left it to the seed."""
    client = bigquery.Client(project=local_cloud.project)
    for dataset in ("newcomers", local_cloud.dataset):
        client.create_dataset(dataset, exists_ok=True)
    client.query_and_wait(BIRDS)
    include = make_include(tmp_path)
    given = {"name": f"birds_{seed}", "table": "newcomers.birds", "label": "species", "include": str(include)}
    given |= {"project": local_cloud.project, "region": "us-central1"}
    assert main(["new-model", *(word for name, value in given.items() for word in (f"--{name}", value))]) == 0
    path = include / "models" / f"birds_{seed}.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["training"]["seed"] = seed
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    monkeypatch.setattr(run_plan, "include_path", lambda: include)
    found = run_whole(load_spec(path), make_run(run_id=f"manual__{seed}", run_after=datetime.now(UTC)))
    assert found["decision"]["verdict"] == "promote", found["decision"]["words"]
    assert found["evaluation"]["challenger"]["metrics"]["accuracy"] >= 0.9
    assert found["report"]["steps"] >= 300
    assert not [item for item in found["checks"]["findings"] if item["check"] == "min_evidence"]
