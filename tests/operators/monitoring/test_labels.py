"""Labels that come late, are of another version, or never fit: what `measure` writes of the champion's answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from retraining.core.documents import KINDS, Signal, Signals
from retraining.core.naming import vertex
from retraining.core.settings import include_path
from retraining.operators.monitoring import measurement, watch
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from tests.core.monitoring.test_performance import answers, counts, evaluation
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.request_log import CHAMPION_KEY
from tests.support.scenes.examples import make_include

MODEL, QUERY = "flight_delays", "flight_delays/examples.sql"
TABLE = "local-project.retraining.requests_flight_delays"
KEYS = "local-project.retraining.asked_flights"
CHAMPION, BEFORE = vertex.deployed_model_id(CHAMPION_KEY), vertex.deployed_model_id("20131101t030000z-0123456789ab")


@pytest.fixture
def scene(make_run: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A champion with an evaluation, and a model file that a test may change."""
    return Scene(make_run, tmp_path, monkeypatch)


class Scene:
    """Monitor runs, an hour after the other."""

    def __init__(self, make_run: Any, path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.make_run, self.include, self.cloud = make_run, make_include(path), FakeCloud()
        for module in (watch, measurement):
            monkeypatch.setattr(module, "include_path", lambda: self.include)
        (self.include / "sql").symlink_to(include_path() / "sql")
        (self.include / "models").mkdir()
        self.cloud.registry.add("20131101t030000z-0123456789ab", "previous")
        self.cloud.registry.add(CHAMPION_KEY, "champion")
        folder = f"gs://bucket/{MODEL}/runs/{CHAMPION_KEY}"
        statistics = json.loads((EXAMPLES / "statistics__two_features.json").read_text()) | {"run_key": CHAMPION_KEY}
        stored = KINDS["statistics"].parse(json.dumps(statistics))
        for document in (stored, evaluation().model_copy(update={"model": MODEL, "run_key": CHAMPION_KEY})):
            self.cloud.artifacts.objects[f"{folder}/{document.kind_name()}.json"] = document.to_bytes()
        names = ("flight_id", "scheduled_departure", "arrived_late", "carrier")
        self.cloud.warehouse.schemas |= {TABLE: [], QUERY: [{"name": name, "type": "STRING"} for name in names]}
        self.cloud.endpoints.ensure(MODEL, TABLE, {})
        self.configure(deployment={"key_input": True})

    def configure(self, **sections: dict[str, Any]) -> None:
        """Write the model's file with changed sections."""
        values = yaml.safe_load((include_path() / "models" / f"{MODEL}.yaml").read_text())
        for name, changes in sections.items():
            values[name] = values.get(name, {}) | changes
        (self.include / "models" / f"{MODEL}.yaml").write_text(yaml.safe_dump(values))

    def measure(self, hour: int, rows: list[dict[str, Any]]) -> list[Signal]:
        """What a run says of performance and its estimate, when BigQuery gives these rows."""
        self.cloud.warehouse.rows["performance"] = rows
        time = datetime(2013, 11, 21, hour, tzinfo=UTC)
        form = {"as_of": None, "retrain_as_of": None, "window_hours": 24}
        run = self.make_run(dag_id=f"monitor__{MODEL}", run_id=f"scheduled__{hour}", logical_date=time, params=form)
        told = run.execute(MeasureSignalsOperator(task_id="measure", model=MODEL, cloud=self.cloud.connect))
        found = Signals.parse(self.cloud.artifacts.objects[f"{told['monitor_uri']}/signals.json"])
        return [each for each in found.signals if each.kind in ("performance", "estimate")]


def main(found: list[Signal]) -> Signal:
    """The signal that is judged."""
    return found[0]


def test_no_label_is_known_yet(scene: Scene) -> None:
    """Named, and never a reason; the estimate stands in."""
    unlabelled = [row for row in answers(500, by=CHAMPION) if row["part"] == "answers"]
    found = scene.measure(5, [*unlabelled, *counts(CHAMPION, asked=500, keys=500, waiting=500)])
    assert (main(found).state, main(found).reason) == ("not_judged", "no_labels")
    (estimated,) = [each for each in found if each.kind == "estimate"]
    assert (estimated.state, estimated.measure, estimated.examples) == ("ok", "auc", 500)


def test_labels_that_come_between_two_runs_are_judged_by_the_second(scene: Scene) -> None:
    """The first says that they wait, the second how good the answers were."""
    waiting = scene.measure(5, counts(CHAMPION, asked=500, keys=500, waiting=500))
    judged = scene.measure(6, answers(3000, moved=0.3, by=CHAMPION))
    assert main(waiting).state == "not_judged"
    assert (main(judged).state, main(judged).measure) == ("exceeded", "auc")
    shares = {each.measure: each.value for each in judged if each.kind == "performance" and not each.subject}
    assert (shares["coverage"], shares["waiting"], shares["not_found"]) == (1, 0, 0)
    assert [each.measure for each in judged if each.kind == "estimate"] == ["auc", "auc_error"]


def test_labels_of_another_versions_answers_are_kept_apart(scene: Scene) -> None:
    """However bad these were, the champion is not judged by them."""
    rows = [*counts(CHAMPION, asked=50, keys=50, waiting=50), *answers(3000, moved=0.4, by=BEFORE)]
    found = scene.measure(5, rows)
    assert (main(found).state, main(found).reason) == ("not_judged", "labels_of_another_version")
    (other,) = [each for each in found if each.subject]
    assert (other.subject, other.state, other.examples) == ("version 1", "ok", 3000)


def test_keys_that_no_label_has_are_named(scene: Scene) -> None:
    """With what to compare."""
    found = scene.measure(5, counts(CHAMPION, asked=500, keys=500))
    assert (main(found).state, main(found).reason) == ("not_judged", "unknown_keys")
    assert "flight_id of flight_delays/examples.sql" in main(found).message


def test_without_keys_the_way_out_is_told(scene: Scene) -> None:
    """Neither in the requests nor in a table."""
    scene.configure(deployment={"key_input": False})
    found = scene.measure(5, [])
    assert (main(found).reason, main(found).state) == ("no_keys", "not_judged")
    assert "deployment.key_input: true" in main(found).message
    assert "monitoring.performance.request_keys" in main(found).message


@pytest.mark.parametrize(
    ("columns", "because"),
    [(("request_id", "key"), None), (("request_id", "id"), "no_keys"), (None, "no_keys")],
    ids=["a table", "without its key", "gone"],
)
def test_a_table_of_keys_stands_in(scene: Scene, columns: Any, because: str | None) -> None:
    """Named without its project; a wrong one is named and ends nothing."""
    limits = {"performance": {"request_keys": "retraining.asked_flights"}}
    scene.configure(deployment={"key_input": False}, monitoring=limits)
    if columns:
        scene.cloud.warehouse.schemas[KEYS] = [{"name": name, "type": "STRING"} for name in columns]
    found = scene.measure(5, answers(1000, by=CHAMPION))
    assert main(found).reason == because
    if because:
        assert KEYS in main(found).message


def test_labels_are_read_from_the_first_day_of_the_window_on(scene: Scene) -> None:
    """Answers of its first day may have labels of the day before its end: the lag comes on top."""
    scene.configure(deployment={"key_input": True}, monitoring={"performance": {"window_days": 7}})
    asked: dict[str, Any] = {}

    def note(query: Any) -> list[dict[str, Any]]:
        asked.update({each.name: each.value for each in query.parameters})
        return []

    scene.cloud.warehouse.effects["performance"] = note
    scene.measure(5, [])
    assert (asked["window_start"], asked["window_end"]) == ("2013-11-13T00:00:00Z", "2013-11-20T00:00:00Z")


def test_a_query_without_labels_is_named(scene: Scene) -> None:
    """Its columns are looked at before anything is read."""
    scene.cloud.warehouse.schemas[QUERY] = [{"name": "flight_id", "type": "STRING"}]
    found = scene.measure(5, [])
    assert (main(found).reason, main(found).state) == ("no_labels", "not_judged")
    assert "no column arrived_late" in main(found).message


def test_more_bytes_than_may_be_are_not_read(scene: Scene) -> None:
    """Named, with both sizes."""
    scene.cloud.warehouse.bytes["performance"] = 11 * 10**9
    found = scene.measure(5, answers(1000, by=CHAMPION))
    assert (main(found).reason, main(found).state) == ("too_expensive", "not_judged")
    assert "11.000 GB" in main(found).message


def test_a_half_learned_champion_does_not_lower_the_bar(scene: Scene) -> None:
    """It took the place of a better one some weeks ago, by the request of its own evaluation."""
    before, runs = "20131101t030000z-0123456789ab", f"gs://bucket/{MODEL}/runs"
    request = json.loads((EXAMPLES / "evaluate_request__duel.json").read_text())
    request["champion"] |= {"run_key": before, "as_of": "2013-11-01T03:00:00Z"}
    request |= {"model": MODEL, "run_key": CHAMPION_KEY}
    better = json.loads(evaluation().to_bytes())
    better["challenger"]["metrics"]["auc"] = 0.95
    for folder, kind, raw in ((CHAMPION_KEY, "evaluate_request", request), (before, "evaluation", better)):
        stored = KINDS[kind].parse(json.dumps(raw)).to_bytes()
        scene.cloud.artifacts.objects[f"{runs}/{folder}/{kind}.json"] = stored
    found = main(scene.measure(5, answers(3000, by=CHAMPION)))
    assert found.state == "exceeded"
    assert found.threshold == pytest.approx(0.95 - 0.03)
    assert "the best of the last champions" in found.message
