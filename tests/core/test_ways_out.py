"""What messages about a model's files, its query's columns, machines and money advise, done as they say.

Of a run's documents: tests/operators/runs/test_ways_out.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from retraining.core import settings
from retraining.core.catalog import hardware
from retraining.core.catalog.amounts import MachineGroup, require_quota
from retraining.core.catalog.containers import (
    load_containers,
    require_explanations,
    require_serving_container,
    require_training_container,
)
from retraining.core.catalog.cost import load_prices
from retraining.core.catalog.model_check import require_past_reviews
from retraining.core.data import columns, frozen_set, snapshot, sql
from retraining.core.errors import RetrainingError
from retraining.core.jobs import requests
from retraining.core.planning import windows
from retraining.core.spec import files, model, sql_file
from retraining.core.spec.quotas import Quotas
from retraining.core.spec.yaml_file import read_spec_text
from tests.support.refusals import refuses
from tests.support.small_model import SPEC_YAML, make_plan, make_spec

INCLUDE = settings.include_path()
HARDWARE = hardware.load_hardware(INCLUDE)
GPU = {"type": "NVIDIA_TESLA_T4", "count": 1}


@dataclass(frozen=True)
class Case:
    """An input that is refused, words of the message's way out, and the input changed as it says."""

    do: Callable[[Any], object]
    wrong: Any
    words: str
    right: Any


def load(text: str, path: Path) -> model.ModelSpec:
    """A file `late.yaml`."""
    (path / "late.yaml").write_text(text)
    return files.load_spec(path / "late.yaml")


def column(name: str = "x", kind: str = "STRING", **others: Any) -> list[dict[str, Any]]:
    """A schema of one column, as BigQuery's API gives it."""
    return [{"name": name, "type": kind, "mode": "NULLABLE", **others}]


def own(schema: list[dict[str, Any]]) -> object:
    """The query's columns."""
    return columns.own_columns(schema, "late/examples.sql")


def with_machines(training: dict[str, Any]) -> None:
    """Whether Vertex AI has what a training asks for."""
    values = {"model": "wide_deep", "runtime": {"image": "r/i:1"}, **training}
    hardware.require_machines(make_spec(training=values), HARDWARE, "us-central1")


def cluster(machine: str, **accelerator: Any) -> dict[str, Any]:
    """A training on one machine."""
    chief = {"machine": machine, **({"accelerator": accelerator} if accelerator else {})}
    return {"cluster": {"tier": "CUSTOM", "chief": chief}}


def affordable(options: dict[str, Any]) -> object:
    """A plan of a model with a budget of a dollar."""
    timeout = options.pop("timeout_hours", 6)
    training = {"model": "wide_deep", "cluster": {"timeout_hours": timeout}}
    spec = make_spec(budget_usd=options.pop("budget_usd", 1.3), training=training)
    return make_plan(spec=spec, prices=load_prices(INCLUDE), **options)


def order(framework: str | None) -> object:
    """A training in a pre-built container without the trainer's distribution."""
    training = {"model": "wide_deep", **({"runtime": {"framework": framework}} if framework else {})}
    return requests.training_job(make_plan(make_spec(training=training)))


CONTAINERS = load_containers(settings.include_path())


def in_container(framework: str | None) -> None:
    """A training in a pre-built container, whatever the day."""
    training = {"model": "wide_deep", **({"runtime": {"framework": framework}} if framework else {})}
    require_training_container(make_spec(training=training), CONTAINERS)


def reviewed(day: str) -> model.ModelSpec:
    """A model of which a person looked at something on a day."""
    return make_spec(reviews=[{"test": "privacy", "by": "Ada", "day": day, "where": "docs/privacy.md"}])


def roomy(limits: dict[str, Any]) -> None:
    """Whether a model's jobs fit into a region."""
    quotas = Quotas.model_validate({"regions": {"us-central1": limits}})
    require_quota(quotas, HARDWARE, "us-central1", "late", {"train": (MachineGroup(machine="n1-standard-8", count=3),)})


CASES = {
    "small quota": Case(roomy, {"machines": 2}, "Raise the quota, or take fewer", {"machines": 3}),
    "quota of nothing": Case(
        roomy,
        {"accelerators": {"NVIDIA_TESLA_T5": 1}},
        "Did you mean 'NVIDIA_TESLA_T4'?",
        {"accelerators": {"NVIDIA_TESLA_T4": 1}},
    ),
    "review of tomorrow": Case(
        lambda day: require_past_reviews(reviewed(day), date(2013, 11, 20)),
        "2013-11-21",
        "Write the day on which the test was made",
        "2013-11-20",
    ),
    "yaml": Case(lambda text: read_spec_text(text, "x"), "a: [1", "Look at the indentation and the quotes", "a: [1]"),
    "key twice": Case(lambda text: read_spec_text(text, "x"), "a: 1\na: 2", "Remove one", "a: 1"),
    "query outside": Case(
        lambda name: files._read_sql(name, "data.query", INCLUDE, sql_file.PARAMETERS),
        "flight_delay/examples.sql",
        "Did you mean 'flight_delays/examples.sql'?",
        "flight_delays/examples.sql",
    ),
    "override": Case(
        lambda path: make_spec().with_overrides({path: 9}),
        "data.window_day",
        "Did you mean 'window_days'?",
        "data.window_days",
    ),
    "taken column": Case(own, column("split"), "Rename it with AS", column("split_km")),
    "column twice": Case(own, column("a") + column("a"), "Rename one with AS", column("a") + column("b")),
    "unmapped type": Case(own, column(kind="INTERVAL"), "CAST(x AS STRING)", column(kind="STRING")),
    "nested arrays": Case(
        own,
        column("s", "RECORD", mode="REPEATED", fields=[{"name": "f", "type": "STRING", "mode": "REPEATED"}]),
        "join its values into one STRING",
        column("s", "RECORD", mode="REPEATED", fields=[{"name": "f", "type": "STRING", "mode": "NULLABLE"}]),
    ),
    "column name": Case(sql.quote_column, "a b", "Rename the column in the query", "a_b"),
    "framework": Case(in_container, "2.99", "Train in the project's image (remove the key)", None),
    "serving image": Case(
        lambda image: require_serving_container(make_spec(), image, CONTAINERS, date(2100, 1, 1)),
        "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
        "Serve by TensorFlow Serving (remove RETRAINING_SERVING_IMAGE",
        "host/own-serving:1",
    ),
    "end of explanations": Case(
        lambda deployment: require_explanations(make_spec(deployment=deployment), "", CONTAINERS, date(2100, 1, 1)),
        {"explanations": {}},
        "Remove it",
        {},
    ),
    "image that is not explained": Case(
        lambda image: require_explanations(
            make_spec(deployment={"explanations": {}}), image, CONTAINERS, date(2026, 11, 27)
        ),
        "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
        "Serve by TensorFlow Serving (remove RETRAINING_SERVING_IMAGE",
        "",
    ),
    "machine": Case(with_machines, cluster("n1-standart-8"), "For example n1-standard-8", cluster("n1-standard-8")),
    "accelerator": Case(
        with_machines,
        cluster("n1-standard-8", type="NVIDIA_TESLA_T5"),
        "Did you mean",
        cluster("n1-standard-8", **GPU),
    ),
    "pair": Case(with_machines, cluster("e2-standard-8", **GPU), "Change one of them", cluster("n1-standard-8", **GPU)),
    "count": Case(
        with_machines,
        cluster("n1-standard-8", type="NVIDIA_TESLA_T4", count=8),
        "Change accelerator.count",
        cluster("n1-standard-8", **GPU),
    ),
    "budget": Case(affordable, {}, "or trigger the run with the Param over_budget", {"over_budget": True}),
    "timeout": Case(affordable, {}, "Shorten training.cluster.timeout_hours", {"timeout_hours": 0.1}),
    "distribution": Case(order, "2.15", "or remove the key to use the image", None),
    "as_of": Case(
        lambda text: windows.resolve_as_of(text, None, None, None), "noon", "2013-11-20T03:00:00Z", "2013-11-20"
    ),
    "no time": Case(
        lambda text: windows.resolve_as_of(text, None, None, None), None, "Set the Param as_of", "2013-11-20"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_way_out_is_one(name: str) -> None:
    """Refused; and taken when it is changed as the message says."""
    case = CASES[name]
    with pytest.raises(RetrainingError) as refused:
        case.do(case.wrong)
    assert case.words in str(refused.value)
    case.do(case.right)


def test_a_file_and_its_model_have_one_name(tmp_path: Path) -> None:
    """`Rename one of them`: either."""
    with pytest.raises(RetrainingError, match="Rename one of them"):
        load(SPEC_YAML.replace("name: late", "name: early"), tmp_path)
    assert load(SPEC_YAML, tmp_path).name == "late"


def test_every_finding_is_named_at_once_and_corrected_they_load(tmp_path: Path) -> None:
    """Two misspelt keys, two suggestions."""
    wrong = SPEC_YAML.replace("schedule:", "scedule:").replace("window_days", "windowdays")
    with pytest.raises(RetrainingError) as refused:
        load(wrong, tmp_path)
    said = str(refused.value)
    assert "Did you mean 'schedule'?" in said
    assert "'window_days'?" in said
    assert load(SPEC_YAML, tmp_path)


def test_days_without_rows_mean_another_window(small_plan) -> None:
    """`Look at the source tables, at as_of and at data.window_days`: with rows in the window it is a snapshot."""
    from tests.support.small_model import SCHEMA, fingerprint_rows

    def take(rows: Any) -> object:
        return snapshot.build_snapshot(small_plan, SCHEMA, rows, {}, 0)

    with refuses(RetrainingError, way_out=("as_of", "data.window_days")):
        take([])
    assert take(fingerprint_rows("2013-11-10"))


def test_an_empty_frozen_set_is_corrected_in_its_query() -> None:
    """`Correct the query, and drop the empty table`: with rows it is one."""
    plan = make_plan(
        make_spec(data={**make_spec().data.model_dump(mode="json"), "golden_query": "late/golden.sql"}),
        frozen_set_sql="SELECT 1",
    )
    with refuses(RetrainingError, way_out="drop the empty table"):
        frozen_set.build_frozen_set(plan, [{"row_count": 0}])
    corrected = {"row_count": 3, "bit_xor": "1", "hash_sum": "2", "shards": 1}
    assert frozen_set.build_frozen_set(plan, [corrected]).rows == 3
