"""Where the form of a scoring may point: places of the YAML file, and never a folder or table of this system."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from retraining.core.bucket_folders import UPLOAD_TOOLS, BucketFolder
from retraining.core.errors import PlanError
from retraining.core.scoring.plan import require_places
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.scoring import Scoring
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.settings import SETTINGS
from tests.support.refusals import refuses
from tests.support.scenes.scoring import ScoringScene, change_section

IN, OUT = "gs://in-bucket/flights/", "gs://out-bucket/scores/"
FORM = {"files": f"{IN}a/*.jsonl", "destination": f"{OUT}a"}


@pytest.fixture
def scene(make_run: Any) -> ScoringScene:
    """A champion, and a table to score."""
    return ScoringScene(make_run)


@pytest.fixture
def plan(scene: ScoringScene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Plan a run with a form, of a file with other keys."""

    def plan(form: dict[str, Any], **keys: Any) -> Any:
        change_section(monkeypatch, tmp_path, **keys)
        run = scene.start(**form)
        scene.execute(run, "plan")
        return scene.plan(run)

    return plan


def written(scene: ScoringScene) -> list[str]:
    """What a refused plan left."""
    return [uri for uri in scene.cloud.artifacts.objects if "/scoring/" in uri]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"files": "gs://secrets/*.json", "destination": f"{OUT}a"}, "Param files of flight_delays: 'gs://secrets/"),
        (
            {"files": "gs://in-bucket/*", "destination": f"{OUT}a"},
            "Param files of .*Expected what is in gs://in-bucket/f",
        ),
        ({"files": "gs://in-bucket/flights*", "destination": f"{OUT}a"}, "Param files"),
        ({"files": "gs://in-bucket/flights/../x/*", "destination": f"{OUT}a"}, "Param files"),
        ({"files": f"{IN}/*", "destination": f"{OUT}a"}, "Param files"),
        (FORM | {"destination": "gs://out-bucket/a"}, "Param destination of flight_delays: 'gs://out-bucket/a'"),
        (FORM | {"destination": "gs://out-bucket/scores"}, "Param destination"),
        (FORM | {"destination": f"{OUT}../a"}, "Param destination"),
        (FORM | {"destination": "gs://us-central1-composer-bucket/dags"}, "Param destination"),
        (
            {"table": "payroll.people"},
            "Param table of flight_delays: 'payroll.people'.*scoring.allow_sources in flight",
        ),
        ({"table": "other-project.unscored.people"}, "Param table"),
        ({"table": "unscored_too.people"}, "Param table"),
        ({"destination": "payroll.people"}, "Param destination of .*allow_destinations in flight_delays.yaml"),
        ({"destination": "unscored.scores"}, "Param destination"),
        ({"query": "digits/tomorrow.sql"}, "Param query of .*: 'digits/tomorrow.sql'. Expected a file beside"),
        ({"query": "flight_delays/../digits/tomorrow.sql"}, "Param query"),
    ],
)
def test_a_form_names_places_of_the_file_alone(scene, plan, form, words) -> None:
    """Whoever may trigger a run reads and writes nothing else with Airflow's account; nothing is written down."""
    places = {"allow_sources": [IN, "unscored"], "allow_destinations": [OUT, "scored"]}
    with pytest.raises(AirflowFailException, match=words):
        plan(form, **places)
    assert written(scene) == []
    assert scene.cloud.warehouse.asked == []


@pytest.mark.parametrize(
    ("form", "source", "destination"),
    [
        (FORM, {"files": f"{IN}a/*.jsonl"}, f"{OUT}a/2013-11-20"),
        ({"table": "unscored.today"}, {"table": "local-project.unscored.today"}, None),
        ({"table": "local-project.unscored.today"}, {"table": "local-project.unscored.today"}, None),
        ({"destination": "scored.flights"}, {}, "local-project.scored.flights"),
        ({"destination": "local-project.retraining.flight_delay_scores"}, {}, None),
        ({"query": "flight_delays/tomorrow.sql"}, {}, None),
    ],
    ids=["folders", "dataset", "with its project", "destination", "the file's own", "a query beside it"],
)
def test_a_form_may_name_what_the_file_allows(plan, form, source, destination) -> None:
    """And the file's own places, however they are written."""
    made = plan(form, allow_sources=[IN, "unscored"], allow_destinations=[OUT, "local-project.scored"])
    assert made.source.model_dump(exclude_none=True).items() >= source.items()
    assert made.destination.table == (destination or "local-project.retraining.flight_delay_scores")


def test_files_that_begin_as_the_files_own_need_no_key(plan) -> None:
    """The destination stays the file's; another one is refused."""
    own = {"query": None, "files": f"{IN}new/*.jsonl", "destination": f"{OUT}a"}
    form = {"files": f"{IN}new/2013/11.jsonl", "destination": f"{OUT}a"}
    assert plan(form, **own).source.files == form["files"]


OWN_FOLDERS = [
    "flight_delays/runs/20131120t030000z-0123456789ab",
    "flight_delays/spans/a",
    "digits",
    "model_of_tomorrow/x",
    *(f"{each}/x" for each in (*BucketFolder, *UPLOAD_TOOLS, "jobs")),
]


@pytest.mark.parametrize("folder", OWN_FOLDERS)
def test_folders_of_this_system_are_closed_to_the_file_too(scene, plan, folder) -> None:
    """A model's run, its spans, the trainer's package: what lies there is read by the system itself."""
    bucket = f"gs://{SETTINGS.bucket}/"
    allowed = {"allow_sources": [bucket, IN], "allow_destinations": [bucket, OUT]}
    with refuses(AirflowFailException, where="scoring.destination", expected="with a hyphen"):
        plan(FORM | {"destination": f"{bucket}{folder}"}, **allowed)
    assert written(scene) == []


@pytest.mark.parametrize("files", [*(f"{folder}/*" for folder in OWN_FOLDERS), "*", "flight*", "a-b*", "overview.json"])
def test_nor_are_they_read_line_by_line(scene, plan, files) -> None:
    """A wildcard in the bucket itself would read all of them."""
    bucket = f"gs://{SETTINGS.bucket}/"
    with refuses(AirflowFailException, where="scoring.files", expected="with a hyphen"):
        plan(FORM | {"files": f"{bucket}{files}"}, allow_sources=[bucket], allow_destinations=[OUT])
    assert written(scene) == []


def test_what_the_file_itself_names_is_held_to_that_too(plan) -> None:
    """A copied line of YAML writes into no run either; a folder that no model can have is open."""
    keys = {"query": None, "files": f"{IN}*.jsonl", "destination": f"gs://{SETTINGS.bucket}/for-scoring/a"}
    form = {"destination": keys["destination"]}
    assert plan(form, **keys).destination.table == f"{keys['destination']}/2013-11-20"


def test_a_file_that_names_a_folder_of_the_system_is_refused(plan) -> None:
    keys = {"query": None, "files": f"{IN}*.jsonl", "destination": f"gs://{SETTINGS.bucket}/flight_delays/runs"}
    with refuses(AirflowFailException, where="scoring.destination", found="flight_delays/runs"):
        plan({"destination": keys["destination"]}, **keys)


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (f"gs://{SETTINGS.bucket}/for-scoring/a", "another bucket than that of the documents"),
        ("gs://results-bucket/jobs/flight_delays", "a folder there with a hyphen"),
        ("gs://results-bucket/flight_delays/spans", "a folder there with a hyphen"),
        ("gs://results-bucket/for-scoring/a", None),
    ],
)
def test_a_bucket_of_documents_alone_is_closed_whole(scene, plan, folder: str, words: str | None) -> None:
    """Where jobs write into another one; there the folders of the system are closed."""
    scene.cloud.settings = dataclasses.replace(scene.cloud.settings, results_bucket="results-bucket")
    allowed = [f"gs://{SETTINGS.bucket}/", "gs://results-bucket/", OUT]
    form, places = FORM | {"destination": folder}, {"allow_sources": [IN], "allow_destinations": allowed}
    if words is None:
        assert plan(form, **places).destination.table.startswith(folder)
        return
    with pytest.raises(AirflowFailException, match=words):
        plan(form, **places)


@pytest.mark.parametrize(
    "table",
    [
        "requests_digits",
        "golden_digits__1",
        "retraining_ledger",
        "run_digits__20131120t030000z_0123456789ab",
        "score_digits__20131120t030000z_0123456789ab",
        "predictions_2013_11_20T03_00_00_000Z_000",
    ],
)
def test_tables_of_this_system_are_no_destination(plan, table) -> None:
    """Not even before they are there."""
    with refuses(AirflowFailException, found="in local-project.retraining"):
        plan({"destination": f"retraining.{table}"}, allow_destinations=["retraining"])


@pytest.mark.parametrize("end", ["\n", "\nx", "\r", "\x00", "\x1b[2J"])
@pytest.mark.parametrize("name", ["table", "query", "files", "destination", "version", "machine"])
def test_a_line_break_in_a_field_is_refused_with_a_sentence(scene, plan, name, end) -> None:
    """Wherever it stands; nothing of it starts a line of its own in a log."""
    value = {
        "table": "unscored.today",
        "query": "flight_delays/tomorrow.sql",
        "files": f"{IN}a.jsonl",
        "destination": f"{OUT}a",
        "version": "champion",
        "machine": "n1-standard-4",
    }[name]
    form = (FORM if name in ("files", "destination") else {}) | {name: value + end}
    with pytest.raises(AirflowFailException) as refused:
        plan(form, allow_sources=[IN, "unscored"], allow_destinations=[OUT])
    assert name in str(refused.value)
    assert end not in str(refused.value)
    assert written(scene) == []


def test_the_bucket_of_results_is_closed_as_well() -> None:
    """What jobs of other models left lies there."""
    settings = dataclasses.replace(SETTINGS, results_bucket="results")
    spec = load_spec(include_path() / "models" / "flight_delays.yaml")
    scoring = spec.scoring or Scoring(table="a.b", destination="a.c", partition=False)
    asked = scoring.model_copy(update={"table": None, "query": None, "files": "gs://results/jobs/digits/*.jsonl"})
    with pytest.raises(PlanError, match="gs://results/jobs/digits/"):
        require_places(spec.model_copy(update={"scoring": asked}), asked, settings)
