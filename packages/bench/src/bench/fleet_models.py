"""The models of `make bench-fleet`, their table, and the copy of the bundle that has them alone.

In: how many. Out: a folder of DAG files with a spec and a query for each, a folder for the local cloud's `seed`. Three
models are broken, each in a way that only its run can find out.
"""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from bench.fleet_pool import NAME, write_pool
from demo.bundle import copy_bundle

FILES_PATH = Path(__file__).with_name("fleet_files")
AS_OF = datetime(2024, 3, 20, 3, tzinfo=UTC)
"""The logical time of all runs."""
REGION = "us-central1"
"""Of the local cloud that the night is played on."""
ALONE = "fleet_alone"
"""The model that runs before the night, with nobody beside it."""
DAYS, VISITS_A_DAY = 16, 80
SHOPS = ("north", "south", "west")

Spec = dict[str, Any]
SEPARATE, CHAINED, POOLED = "separate", "chained", "pooled"
_KEYS: Mapping[str, Spec] = {
    SEPARATE: {"jobs": "separate"},
    CHAINED: {"jobs": "chained"},
    POOLED: {"jobs": "separate", "machine_pool": NAME},
}
KINDS = tuple(_KEYS)
"""How the jobs of a good model get their machines: one each; one for all; those of a pool that is there before."""
_DYING: Spec = {
    "model": "logistic",
    "epochs": 1,
    "batch_size": 64,
    # This project's trainer would be asked before the run; the image of one's own finds it out when it trains.
    "hyperparameters": {"buckets": "many"},
    "runtime": {"image": "us-central1-docker.pkg.dev/local-project/retraining/plain-trainer:1"},
}


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A model that must fail, and take nobody with it.

    Attributes:
        name: Of the model.
        task_id: The task that fails; those after it do not run.
        why: What is wrong with it, in words.
        change: Breaks a spec.
        query: Name of its file of SQL.
    """

    name: str
    task_id: str
    why: str
    change: Callable[[Spec], None] = lambda _spec: None
    query: str = "examples.sql"


BROKEN = (
    Broken(name="broken_query", task_id="snapshot", why="BigQuery refuses its query when it runs", query="refused.sql"),
    Broken(
        name="broken_data",
        task_id="check_data",
        why="its data fails a check",
        change=lambda spec: spec["data"]["checks"].update(min_rows=1_000_000),
    ),
    Broken(
        name="broken_training",
        task_id="train",
        why="its training dies of a text where its image wants a number",
        change=lambda spec: spec.update(training=_DYING),
    ),
)


def model_names(models: int) -> list[str]:
    """Return the names of the models that must succeed."""
    return [f"fleet_{number:03d}" for number in range(1, models + 1)]


def expected_failures() -> dict[str, str]:
    """Return the task that fails, by the model that must fail."""
    return {broken.name: broken.task_id for broken in BROKEN}


def write_bundle(path: Path, models: int, jobs: str = SEPARATE, machines: int = 1, most_jobs: int = 0) -> Path:
    """Copy the bundle with these models in the place of the checkout's; return its folder of DAG files.

    Args:
        path: Where to.
        models: How many that must succeed; the one that runs alone and the broken ones come in addition.
        jobs: Of those that are not broken, one of `KINDS`.
        machines: Of the pool, where the models are pooled.
        most_jobs: That the region's quota lets work at once; 0: there is none.
    """
    dags_path = copy_bundle(path)
    include_path = dags_path / "include"
    shutil.rmtree(include_path)
    for name in (ALONE, *model_names(models)):
        _write_model(include_path, name, lambda spec: spec.update(_KEYS[jobs]), "examples.sql")
    for broken in BROKEN:
        _write_model(include_path, broken.name, broken.change, broken.query)
    if jobs == POOLED:
        write_pool(include_path, machines)
    if most_jobs:
        quota = {"regions": {REGION: {"jobs": most_jobs}}}
        (include_path / "quotas.yaml").write_text(yaml.safe_dump(quota), encoding="utf-8")
    return dags_path


def write_data(path: Path) -> Path:
    """Write the folder that `retraining_laptop.seed` loads: the table `fleet.visits`; return it."""
    dataset_path = path / "bigquery" / "fleet"
    dataset_path.mkdir(parents=True)
    shutil.copy(FILES_PATH / "visits.schema.json", dataset_path)
    with (dataset_path / "visits.csv").open("w", newline="", encoding="utf-8") as file:
        rows = visits()
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def visits(seed: int = 1) -> list[Mapping[str, object]]:
    """Return the rows of the table, the same for the same seed: who looks at more pages for longer buys more often."""
    draw = random.Random(seed)
    rows: list[Mapping[str, object]] = []
    for number in range(DAYS * VISITS_A_DAY):
        day, of_day = divmod(number, VISITS_A_DAY)
        began = AS_OF.replace(hour=0) - timedelta(days=DAYS - day) + timedelta(days=of_day / VISITS_A_DAY)
        minutes, pages = draw.uniform(0, 30), draw.randint(1, 12)
        rows.append(
            {
                "visit_id": number,
                "visited": began.isoformat(),
                "shop": draw.choice(SHOPS),
                "minutes": round(minutes, 2),
                "pages": pages,
                "bought": int(minutes / 30 + pages / 12 + draw.gauss(0, 0.3) > 1),
            }
        )
    return rows


def _write_model(include_path: Path, name: str, change: Callable[[Spec], None], query: str) -> None:
    spec: Spec = yaml.safe_load((FILES_PATH / "model.yaml").read_text(encoding="utf-8"))
    spec["name"] = name
    spec["data"]["query"] = f"{name}/examples.sql"
    change(spec)
    models_path, sql_path = include_path / "models", include_path / "sql" / name
    models_path.mkdir(parents=True, exist_ok=True)
    sql_path.mkdir(parents=True)
    (models_path / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    shutil.copy(FILES_PATH / query, sql_path / "examples.sql")
