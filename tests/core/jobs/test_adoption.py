"""What a job left is believed only when it is of its request, and names its own run's files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retraining.core.documents import (
    RESULTS,
    MultivariateRequest,
    RequestDocument,
    ResultDocument,
    ScoreRequest,
    digest,
)
from retraining.core.errors import ContractError
from retraining.core.jobs import requests
from retraining.core.jobs.adoption import require_own_result
from tests.support.contracts import EXAMPLES
from tests.support.job_results import result_of
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_snapshot, make_spec

PLAN = make_plan(make_spec(training={"model": "dense", "export_lite": ["int8"]}))
STORED: dict[str, type[RequestDocument]] = {"two_features": MultivariateRequest, "challenger": ScoreRequest}
"""Requests of jobs that are no task of every run, by their examples."""
TASKS = ("export", "train", "evaluate", *STORED)
OTHER_DAY = "f" * 32


def asked(task: str, **changes: Any) -> RequestDocument:
    """The request of a job of the run."""
    if task in STORED:
        made = STORED[task].parse((EXAMPLES / f"{STORED[task].kind_name()}__{task}.json").read_bytes())
        return made.model_copy(update={"digest_required": True, **changes})
    request = {
        "export": requests.export_job(PLAN, make_snapshot(PLAN)),
        "train": requests.training_job(PLAN),
        "evaluate": requests.evaluation_job(PLAN, None),
    }[task].request
    assert request is not None
    return request.model_copy(update=changes)


def left(task: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> tuple[str, ResultDocument]:
    """What its job leaves, with something changed."""
    uri, values = result_of(asked(task).to_bytes())
    change(values)
    return uri, RESULTS[values["kind"]].parse(json.dumps(values))


def take(request: RequestDocument, result: ResultDocument, uri: str) -> None:
    """Hold a result to a request, as its task does."""
    require_own_result(request, digest(request.to_bytes()), result, uri)


def _shard(uri: str) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        next(split for split in values["splits"].values() if split["files"])["files"][0]["uri"] = uri

    return change


def _lite(values: dict[str, Any]) -> None:
    values["lite"] = [{"form": "int8", "words": "made", "uri": "gs://my-retraining/late/rollout.json"}]


@pytest.mark.parametrize("task", TASKS)
def test_what_was_asked_for_is_taken(task: str) -> None:
    """A result of its own request."""
    uri, result = left(task)
    take(asked(task), result, uri)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("found", "named"),
    [
        ("f" * 64, f"the result of another request, whose SHA-256 is {'f' * 64}. Expected "),
        (None, "a result without request_digest. Expected request_digest "),
    ],
    ids=["of another request", "of nobody's"],
)
def test_the_result_of_another_request_is_refused_by_name(task: str, found: str | None, named: str) -> None:
    """With all its names right: the address, the digest that it has, the one of the request, and what to do."""
    uri, result = left(task, lambda values: values.update(request_digest=found))
    with pytest.raises(ContractError) as refused:
        take(asked(task), result, uri)
    text = str(refused.value)
    assert text.startswith(f"{uri}: {named}{asked(task).digest()}, the SHA-256 of this job's request. ")
    assert "delete the object" in refused.value.way_out


@pytest.mark.parametrize("task", TASKS)
def test_a_job_of_an_earlier_release_leaves_no_digest(task: str) -> None:
    """Its request asks for none. One that is there is held to the request all the same."""
    earlier = asked(task, digest_required=False)
    assert b"digest_required" not in earlier.to_bytes()
    uri, result = left(task, lambda values: values.pop("request_digest"))
    take(earlier, result, uri)
    with refuses(ContractError, found="another request"):
        take(earlier, left(task)[1], uri)


def test_every_job_of_a_run_is_asked_for_the_digest() -> None:
    """A trial is not: its result is read by later trials of the same study alone."""
    assert all(asked(task).digest_required for task in ("export", "train", "evaluate"))
    assert not requests.train_request(PLAN, "gs://my-retraining/late/x", trial_metric="val_loss").digest_required


@pytest.mark.parametrize(
    ("task", "change", "named"),
    [
        ("export", lambda values: values.update(model="other"), "model 'other'. Expected 'late'"),
        ("export", lambda values: values.update(table="p.d.t"), "table 'p.d.t'"),
        ("export", lambda values: values["spans"][0].update(fingerprint=OTHER_DAY), f"'{OTHER_DAY}'. Expected"),
        ("export", _shard("gs://my-retraining/jobs/other/spans/0/x.tfrecord"), "the file 'gs://my-retraining/jobs/oth"),
        ("train", lambda values: values.update(model_uri="gs://elsewhere/model"), "the file 'gs://elsewhere/model'"),
        ("evaluate", lambda values: values.update(run_key="20131101t030000z-0123456789ab"), "run_key '20131101t03"),
        ("evaluate", _lite, "the file 'gs://my-retraining/late/rollout.json'"),
    ],
    ids=["another model", "another table", "another day", "a foreign shard", "a foreign model", "another run", "lite"],
)
def test_what_was_not_asked_for_is_refused_by_name(task: str, change: Any, named: str) -> None:
    """With the address, what was found, what was asked for, and what to do."""
    uri, result = left(task, change)
    with pytest.raises(ContractError) as refused:
        take(asked(task), result, uri)
    assert named in str(refused.value)
    assert str(refused.value).startswith(uri)
    assert "delete the object" in refused.value.way_out


def test_another_kind_is_no_answer() -> None:
    """A training's report in the place of a manifest."""
    uri, report = left("train")
    with refuses(ContractError, found="'report'", expected="export_request"):
        take(asked("export"), report, uri)
