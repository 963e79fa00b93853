"""The command `trial` on the local cloud, which answers as is supposed: every row holds, and nothing is left."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.cloud import aiplatform

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.commands.trial import command
from retraining.commands.trial.cleaning import clean
from retraining.commands.trial.deployments import REPLICAS
from retraining.commands.trial.pools import PoolProbes, pool_of
from retraining.commands.trial.probes import BOARD, FOLDER, LABEL, MODEL, TABLES, Trial, answer_all
from retraining.commands.trial.record import Names
from retraining.commands.trial.registry import run_key
from retraining.commands.trial.rows import BASIC, ROWS
from retraining.commands.trial.storage import StorageProbes
from retraining.core.catalog.cost import load_prices
from retraining.core.errors import SettingsError
from retraining.core.jobs.machine_pools import pool_id
from retraining.core.report.tracking.tracked_run import VERTEX
from retraining.hooks.cloud import OwnCloud
from retraining.hooks.trial_calls import TrialCalls
from tests.support.parcels import WHERE, write_parcels
from tests.support.scenes.airflow_home import airflow_home

SQL = f"""SELECT id, happened, carrier, weight, late
FROM (SELECT 'a' AS id, TIMESTAMP '2024-01-01' AS happened, 'AA' AS carrier, 1.5 AS weight, 1 AS late)
{WHERE}"""
SHARED = "machines that models share"
ASSUMPTIONS = Path(__file__).parents[2] / "docs" / "assumptions.md"


@pytest.fixture
def include(tmp_path):
    """A model's files."""
    write_parcels(tmp_path, SQL)
    return tmp_path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An Airflow environment in which nothing is wrong."""
    return airflow_home(tmp_path / "airflow", monkeypatch)


@pytest.fixture
def cloud(own_cloud):
    """All services, with a dataset where the jobs run."""
    from google.cloud import bigquery

    settings = own_cloud.settings
    dataset = bigquery.Dataset(f"{settings.project}.trial")
    dataset.location = settings.region
    bigquery.Client(project=settings.project).create_dataset(dataset, exists_ok=True)
    return OwnCloud({**os.environ, "RETRAINING_DATASET": "trial"})


@pytest.fixture
def trial(cloud, include, capsys):
    """Run the command: its status, what it printed, and what it said beside."""

    def trial(*options):
        status = main(["trial", *options], Shell(connect=lambda: cloud, find_include=lambda: include))
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err

    return trial


def left(cloud):
    """Return all that a trial may have left."""
    settings = cloud.settings
    folders = (f"gs://{settings.bucket}/{FOLDER}", f"gs://{settings.results_bucket}/jobs/{MODEL}")
    return [
        *(item.uri for folder in folders for item in cloud.objects.walk(folder)),
        *(table.name for table in cloud.warehouse.list_tables(settings.dataset)),
        *(job.name for job in cloud.jobs.find_active(LABEL)),
        *(version.version_name for version in cloud.registry.list_versions(MODEL)),
        *([found.name] if (found := cloud.endpoints.get(MODEL)) else []),
        *cloud.trackers.digests(VERTEX, MODEL),
        *(board.resource_name for board in boards_of(cloud)),
        *(pool.pool_id for pool in cloud.machine_pools.find_all()),
        *([SHARED] if cloud.endpoints.has_shared_machines(pool_of(trial_of_nobody(cloud))) else []),
    ]


def boards_of(cloud):
    """Return the TensorBoards of a trial's name."""
    aiplatform.init(project=cloud.settings.project, location=cloud.settings.region)
    return aiplatform.Tensorboard.list(filter=f'display_name="{BOARD}"')


@pytest.fixture
def first_part(monkeypatch):
    """Ask the first part of the rows alone, of Cloud Storage."""
    parts = ROWS[BASIC].parts
    monkeypatch.setitem(ROWS, BASIC, replace(ROWS[BASIC], parts=lambda made: parts(made)[:1]))


@pytest.mark.parametrize("name", ROWS)
def test_every_row_holds_and_nothing_is_left(trial, cloud, tmp_path, name):
    """Each is a row of docs/assumptions.md; the record names nobody."""
    path = tmp_path / "answers.json"
    status, lines, said = trial("--rows", name, "--pay-at-most", "1", "--record", str(path))
    assert (status, [line for line in lines[:-1] if not line.startswith("holds ")]) == (0, []), said
    answers = json.loads(path.read_bytes())["answers"]
    rows = set(re.findall(r"^\| ([A-Z]+-\d+) ", ASSUMPTIONS.read_text(encoding="utf-8"), re.MULTILINE))
    assert {each["id"] for each in answers} <= rows
    assert len({each["id"] for each in answers}) == len(answers) == len(lines) - 1
    names = (cloud.settings.project, cloud.settings.bucket)
    assert not [name for name in names if name in path.read_text(encoding="utf-8")]
    assert left(cloud) == []


@pytest.mark.parametrize("name", ROWS)
def test_the_page_names_the_rows_that_are_tried(cloud, name):
    """In docs/assumptions.md, and how many in docs/composer.md."""
    said = ASSUMPTIONS.read_text(encoding="utf-8").partition(f"`--rows {name}`:")[2]
    assert re.findall(r"[A-Z]+-\d+", re.split(r"\n  - |\n\n", said)[0]) == tried(cloud, name)


def test_the_page_counts_the_rows_that_are_tried(cloud):
    """In docs/composer.md: all, and those that are asked if nothing else is said."""
    text = ASSUMPTIONS.with_name("composer.md").read_text(encoding="utf-8")
    assert f"asks the services for {sum(len(tried(cloud, name)) for name in ROWS)} of those rows" in text
    assert f"{len(tried(cloud, BASIC))} of them in one go" in text


def tried(cloud, name):
    """Return the ids of the rows of a set."""
    return [probe.id for part in ROWS[name].parts(trial_of_nobody(cloud)) for probe in part.probes()]


def trial_of_nobody(cloud):
    """Return a trial that asks nothing."""
    return Trial(cloud=cloud, calls=TrialCalls(cloud.session), number="none", deadline=datetime.now(UTC))


def test_what_a_killed_trial_left_is_named_and_taken_away(trial, cloud, include, monkeypatch, capsys):
    """A trial that dies in the middle, even while it cleans; the next one is refused until somebody has cleaned."""

    class _KilledError(BaseException):
        """A process's end."""

    def killed(parts, made: Trial, names):
        for part in parts:
            for probe in part.probes():
                if probe.id not in ("JOB-10", "LOGS-1"):  # one job goes on
                    probe.ask()
                if probe.id in ("BQ-3", "EXP-6", "RUN-7", "REG-3", "END-5"):
                    break
        PoolProbes(trial=made).open()
        made.calls.endpoints.create_shared_machines(pool_of(made), REPLICAS)
        second = made.cloud.registry.find_by_run(MODEL, run_key(made, 2))
        endpoint = made.cloud.endpoints.get(MODEL)
        made.cloud.endpoints.set_traffic(endpoint, dict.fromkeys(endpoint.deployed, 100))
        endpoint = made.cloud.endpoints.get(MODEL)
        made.cloud.endpoints.start_deploy(endpoint, second.version_name, run_key(made, 2), REPLICAS)
        raise _KilledError  # in the middle of a deployment, with another model that serves

    def not_reached(made: Trial):
        raise _KilledError

    with monkeypatch.context() as dying:
        dying.setattr(command, "answer_all", killed)
        dying.setattr(command, "clean", not_reached)
        with pytest.raises(_KilledError):
            trial("--pay-at-most", "1")
    kinds = (
        "gs://",
        f".{TABLES}",
        f"/models/{MODEL}@",
        "/endpoints/",
        "trial-",
        "/tensorboards/",
        pool_of(trial_of_nobody(cloud)),
        SHARED,
    )
    assert [kind for kind in kinds if not any(kind in name for name in left(cloud))] == []

    status, lines, said = trial("--pay-at-most", "1")
    assert (status, lines) == (1, [])
    assert f"gs://{cloud.settings.bucket}/{FOLDER}/trial.json" in said
    assert "--clean" in said
    for _ in range(2):  # harmless twice
        assert trial("--clean")[0] == 0
        assert left(cloud) == []


def test_a_pool_of_somebodys_is_not_the_trials(cloud):
    """Whatever a file in include/pools may call one: cleaning takes the trial's own away alone."""
    trial = trial_of_nobody(cloud)
    somebodys = pool_id(trial.calls.session.environment.label, BOARD)
    cloud.machine_pools.create(somebodys, PoolProbes(trial=trial)._resource())
    try:
        list(clean(trial))
        assert [pool.pool_id for pool in cloud.machine_pools.find_all()] == [somebodys]
    finally:
        cloud.machine_pools.delete(somebodys)


@pytest.mark.usefixtures("first_part")
def test_what_was_answered_is_kept_though_something_cannot_be_taken_away(trial, cloud, tmp_path, monkeypatch):
    """The answers were paid for; what is left is said, and the next trial refused."""
    path = tmp_path / "answers.json"

    def refuse(_):
        raise SettingsError("the table", "no right to delete it", "one", "Give it")

    with monkeypatch.context() as refusing:
        refusing.setattr(cloud.warehouse, "list_tables", refuse)
        status, lines, said = trial("--pay-at-most", "1", "--record", str(path))
    assert (status, len(json.loads(path.read_bytes())["answers"])) == (1, len(lines))
    assert "not done: SettingsError: the table" in said
    assert trial("--pay-at-most", "1")[0] == 1
    assert trial("--clean")[0] == 0
    assert left(cloud) == []


@pytest.mark.parametrize("name", ROWS)
def test_it_costs_less_than_a_dollar_wherever_a_price_is_known(name):
    """As the pages say."""
    prices, rows = load_prices(Path("nowhere")), ROWS[name]
    at_most = {region: rows.price_at_most(prices, region) for region in prices.regions}
    assert 0.1 < max(price for price in at_most.values() if price is not None) < 1
    assert rows.price_at_most(prices, "nowhere-north1") is None
    assert rows.price_at_most(None, "us-central1") is None


@pytest.mark.parametrize("most", ["0.1", "nan", "-1"])
def test_nothing_is_asked_for_more_than_it_may_cost(trial, cloud, most):
    status, lines, said = trial("--pay-at-most", most)
    assert (status, lines, left(cloud)) == (1, [], [])
    assert "--pay-at-most" in said


@pytest.mark.parametrize("typed", ["", "yes", "0"])
def test_the_price_is_typed(trial, cloud, monkeypatch, typed):
    """Whoever types anything else pays nothing."""
    monkeypatch.setattr("click.prompt", lambda *_, **__: typed)
    status, lines, said = trial()
    assert (status, lines, left(cloud)) == (1, [], [])
    assert "US dollars" in said


def test_nothing_is_paid_where_doctor_finds_anything(trial, cloud, include):
    (include / "models" / "broken.yaml").write_text("name: broken\n", encoding="utf-8")
    status, lines, said = trial("--pay-at-most", "1")
    assert (status, lines, left(cloud)) == (1, [], [])
    assert "models" in said
    assert "doctor" in said


def test_a_model_of_the_trials_own_name_is_refused(trial, include):
    (include / "models" / f"{MODEL}.yaml").write_text("name: any\n", encoding="utf-8")
    status, _, said = trial("--pay-at-most", "1")
    assert status == 1
    assert f"models/{MODEL}.yaml" in said


@pytest.mark.usefixtures("first_part")
def test_other_answers_than_those_of_a_file_are_named(trial, tmp_path):
    """Each fact that differs, and rows that are on one side alone; the status says it."""
    path = tmp_path / "answers.json"
    assert trial("--pay-at-most", "1", "--record", str(path))[0] == 0
    assert trial("--pay-at-most", "1", "--against", str(path))[0] == 0
    record = json.loads(path.read_bytes())
    record["answers"][0]["found"]["a wrong generation is refused"] = False
    record["answers"][1]["id"] = "GCS-99"
    record["answers"][2] |= {"found": {}, "problem": "Forbidden"}
    path.write_text(json.dumps(record), encoding="utf-8")
    status, lines, _ = trial("--pay-at-most", "1", "--against", str(path))
    changed, gone, failed = (record["answers"][number]["id"] for number in range(3))
    assert status == 1
    assert f"{changed}, a wrong generation is refused: here True; in the file False" in lines
    assert "GCS-2 is not in the file" in lines
    assert f"{gone} is only in the file" in lines
    assert f"{failed}: here an answer; in the file Forbidden" in lines


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "retraining-trial", "edition": 2}', '{"kind": "plan"}'])
def test_another_file_is_refused_before_anything_is_paid(trial, cloud, tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    status, lines, said = trial("--pay-at-most", "1", "--against", str(path))
    assert (status, lines, left(cloud)) == (1, [], [])
    assert "other.json" in said


def test_a_service_that_answers_otherwise_is_found(cloud, monkeypatch):
    """A false row is told with what was seen, one that fails with why; the others are asked all the same."""
    made = OwnCloud({**os.environ, "RETRAINING_DATASET": "trial"})
    artifacts = made.artifacts
    monkeypatch.setattr(artifacts, "write_once", lambda uri, data: artifacts.overwrite(uri, data, "text/plain") or data)

    def refuse(_):
        raise PermissionError(f"no access to {made.settings.bucket} for somebody@example.com")

    monkeypatch.setattr(artifacts, "list_folders", refuse)
    deadline = datetime.now(UTC) + timedelta(minutes=1)
    asked = Trial(cloud=made, calls=TrialCalls(made.session), number="otherwise", deadline=deadline)
    answers = list(answer_all([StorageProbes(trial=asked)], asked, Names({made.settings.bucket: "BUCKET"})))
    list(clean(asked))
    by_id = {each.id: each for each in answers}
    assert by_id["GCS-1"].holds is False
    assert "the second of two writers reads the first's: False, supposed True" in by_id["GCS-1"].line()
    assert by_id["GCS-5"].holds is None
    assert by_id["GCS-5"].problem == "PermissionError: no access to BUCKET for ACCOUNT"
    assert by_id["GCS-4"].holds is True
