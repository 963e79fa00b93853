"""Rows of `retraining trial` on a cloud that answers otherwise: every fact of it is found false."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from retraining.commands.trial import jobs, shared
from retraining.commands.trial.cleaning import clean
from retraining.commands.trial.deployments import REPLICAS
from retraining.commands.trial.endpoints import EndpointProbes
from retraining.commands.trial.jobs import LEAST_LINES, NUMBERED, JobProbes
from retraining.commands.trial.probes import Trial, answer_all
from retraining.commands.trial.record import Names
from retraining.commands.trial.shared import IMAGE, SharedProbes
from retraining.commands.trial.statements import STREAMED, StatementProbes
from retraining.commands.trial.storage import StorageProbes
from retraining.core.catalog.containers import load_containers
from retraining.hooks.cloud import OwnCloud
from retraining.hooks.logs import Line
from retraining.hooks.predictions import Answer
from retraining.hooks.trial_calls import Machines, TrialCalls
from retraining.hooks.trial_streams import TrialStreams


@pytest.fixture
def trial(own_cloud):
    """A trial that is cleaned in the end."""
    from google.cloud import bigquery

    settings = own_cloud.settings
    dataset = bigquery.Dataset(f"{settings.project}.trial")
    dataset.location = settings.region
    bigquery.Client(project=settings.project).create_dataset(dataset, exists_ok=True)
    made = OwnCloud({**os.environ, "RETRAINING_DATASET": "trial"})
    deadline = datetime.now(UTC) + timedelta(minutes=10)
    asked = Trial(cloud=made, calls=TrialCalls(made.session), number=uuid.uuid4().hex[:8], deadline=deadline)
    yield asked
    list(clean(asked))


class Late(TrialStreams):
    """Sessions that read a table as it is when a stream is read."""

    def open_streams(self, table, column):
        """Keep what is asked."""
        self.asked = table, column
        return super().open_streams(table, column)

    def read_stream(self, name, schema, offset):
        """Open another session."""
        opened = super().open_streams(*self.asked)
        return super().read_stream(opened.names[0], schema, offset)


class Anew(TrialStreams):
    """Streams that begin anew whatever is asked."""

    def read_stream(self, name, schema, offset):
        """Leave the offset away."""
        return super().read_stream(name, schema, 0)


class Twice(TrialStreams):
    """Sessions of which each stream has all rows."""

    def open_streams(self, table, column):
        """Name each stream twice."""
        opened = super().open_streams(table, column)
        self.same = {f"{name}/again": name for name in opened.names}
        return replace(opened, names=(*opened.names, *self.same))

    def read_stream(self, name, schema, offset):
        """Read it by either name."""
        return super().read_stream(self.same.get(name, name), schema, offset)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (TrialStreams, {}),
        (Late, {"rows": STREAMED + 1, "the row that came": "read"}),
        (Anew, {"from the middle": "others"}),
        (Twice, {"rows": 2 * STREAMED, "twice": STREAMED}),
    ],
    ids=["as supposed", "late", "anew", "twice"],
)
def test_streams_of_a_session(trial, kind, found):
    """BQ-5: rows that came later, an offset without effect, a row in two streams."""
    trial.calls.streams = kind(trial.calls.session)
    (probe,) = [each for each in StatementProbes(trial=trial).probes() if each.id == "BQ-5"]
    assert probe.ask() == {**probe.supposed, **found}


def test_a_list_that_does_not_say_when_tables_expire(trial, monkeypatch):
    """BQ-12."""
    listed = trial.cloud.warehouse.list_tables
    (probe,) = [each for each in StatementProbes(trial=trial).probes() if each.id == "BQ-12"]
    assert probe.ask() == probe.supposed
    monkeypatch.setattr(
        trial.cloud.warehouse, "list_tables", lambda name: [replace(each, expires=None) for each in listed(name)]
    )
    assert probe.ask() == {"hours": None}


def test_a_download_that_says_another_generation(trial, monkeypatch):
    """GCS-10: of the object before, and of none."""
    first = []
    write = trial.cloud.artifacts.overwrite

    def overwrite(uri, *written):
        write(uri, *written)
        first.append(trial.cloud.objects.find_object(uri).generation)

    monkeypatch.setattr(trial.cloud.artifacts, "overwrite", overwrite)
    monkeypatch.setattr(trial.cloud.artifacts, "read_generation", lambda _: (b"1", first[0]))
    (probe,) = [each for each in StorageProbes(trial=trial).probes() if each.id == "GCS-10"]
    assert probe.ask() == {"bytes": "1", "it is the listed one": False, "it is another than before": False}


def lines(numbers):
    """Return lines of a job."""
    return [Line(time=datetime.now(UTC), severity="INFO", task="", text=f"{NUMBERED} {number}") for number in numbers]


@pytest.mark.parametrize(
    ("came", "whole", "found"),
    [
        (range(LEAST_LINES), LEAST_LINES, {}),
        (range(LEAST_LINES - 1), LEAST_LINES - 1, {"enough of them": False}),
        (range(1, LEAST_LINES), LEAST_LINES, {"missing": 1}),
        ([0, *range(LEAST_LINES)], LEAST_LINES, {"twice": 1}),
    ],
    ids=["as supposed", "few", "late", "of two names"],
)
def test_lines_that_came_while_a_job_worked(trial, monkeypatch, came, whole, found):
    """LOGS-2: a line that came too late to be read, and one that counts as two."""
    asked = JobProbes(trial=trial, watched=lines(came))
    monkeypatch.setattr(jobs, "QUIET_S", 0)
    monkeypatch.setattr(
        trial.cloud.logs, "read_new", lambda _, cursor: [] if cursor is asked.cursor else lines(range(whole))
    )
    (probe,) = [each for each in asked.probes() if each.id == "LOGS-2"]
    assert probe.ask() == {**probe.supposed, **found}


@pytest.fixture
def otherwise(trial, monkeypatch):
    """A trial whose services deploy, answer, explain and log otherwise than is supposed."""
    cloud, calls = trial.cloud, trial.calls.endpoints
    own, predict, explain = calls.machines_of, cloud.endpoints.predict_once, cloud.endpoints.explain
    deploy = calls.deploy_refused
    answers = iter(range(1000))

    def predict_once(endpoint, instances, timeout_s):
        found = predict(endpoint, instances, timeout_s)
        if not isinstance(found, Answer):
            return found
        place = f"{trial.result_uri('served')}/1/assets/place.txt"
        return replace(found, predictions=[{"missing": 0.0, "y": 100.0 + next(answers), "place": place}])

    def explain_otherwise(*asked):
        return [
            [replace(one, baseline=5.0, features={name: 2 * value for name, value in one.features.items()})] * 2
            for (one,) in explain(*asked)
        ]

    def machines_of(endpoint, deployed_id):
        assert own(endpoint, deployed_id)
        return Machines(replicas=(1, 1), targets={}, shared="")

    def deploy_anyway(endpoint, version_name, deployed_id, _):
        return deploy(endpoint, version_name, deployed_id, REPLICAS)

    monkeypatch.setattr(cloud.endpoints, "predict_once", predict_once)
    monkeypatch.setattr(cloud.endpoints, "explain", explain_otherwise)
    monkeypatch.setattr(calls, "machines_of", machines_of)
    monkeypatch.setattr(calls, "create_refused", lambda _: None)
    monkeypatch.setattr(trial.calls.models, "upload_refused", lambda *_: "FailedPrecondition")
    monkeypatch.setattr(calls, "deploy_refused", deploy_anyway)
    monkeypatch.setattr(shared, "LOGGED_WITHIN", timedelta(0))
    monkeypatch.setattr(cloud.warehouse, "table_schema", lambda _: None)
    return trial


def test_deployments_that_are_otherwise(otherwise):
    """END-11, END-12, END-14, END-17 to END-19, GCS-8 and REG-10, every fact of each."""
    parts = [EndpointProbes(trial=otherwise), SharedProbes(trial=otherwise)]
    answers = {each.id: each for each in answer_all(parts, otherwise, Names({}))}
    assert [each.problem for each in answers.values() if each.problem] == []
    same = {
        (each.id, name)
        for each in answers.values()
        for name, fact in each.supposed.items()
        if each.found.get(name) == fact
    }
    assert same == set()
    assert {each.holds for each in answers.values()} == {False}
    assert answers["END-11"].found == {"files": "those that were uploaded"}
    assert answers["END-17"].found["another image"] == "deployed"


def test_files_of_the_upload_are_told_from_those_of_the_deployment(trial, monkeypatch):
    """GCS-8: a service that copies a model at its upload serves what was uploaded."""
    probes = {probe.id: probe for probe in EndpointProbes(trial=trial).probes()}
    with monkeypatch.context() as copied:
        copied.setattr(trial.cloud.artifacts, "overwrite", lambda *_: None)
        probes["END-14"].ask()
        probes["END-11"].ask()
        found = probes["GCS-8"].ask()
    assert found == {"served": "the files of the upload", "changed since": "not served"}


def test_the_image_of_models_that_share_has_not_ended(tmp_path):
    """By the table of containers: the last one of TensorFlow's."""
    ends = {name: end for name, end in load_containers(tmp_path).prediction.items() if name.startswith("tf2-cpu.")}
    assert IMAGE.rpartition("/")[2].partition(":")[0] == max(ends, key=lambda name: ends[name])
