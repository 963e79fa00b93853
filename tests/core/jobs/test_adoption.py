"""What a job left is believed only when it is of its request, and names its own run's files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retraining.core.documents import KINDS, Document
from retraining.core.errors import ContractError
from retraining.core.jobs import requests
from retraining.core.jobs.adoption import require_own_result
from tests.support.job_results import result_of
from tests.support.small_model import make_plan, make_snapshot, make_spec

PLAN = make_plan(make_spec(training={"model": "dense", "export_lite": ["int8"]}))
OTHER_DAY = "f" * 32


def asked(task: str) -> Document:
    """The request of a job of the run."""
    made = {
        "export": requests.export_job(PLAN, make_snapshot(PLAN)),
        "train": requests.training_job(PLAN),
        "evaluate": requests.evaluation_job(PLAN, None),
    }[task]
    assert made.request is not None
    return made.request


def left(task: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> tuple[str, Document]:
    """What its job leaves, with something changed."""
    uri, values = result_of(json.loads(asked(task).to_bytes()))
    change(values)
    return uri, KINDS[values["kind"]].parse(json.dumps(values))


def _shard(uri: str) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        next(split for split in values["splits"].values() if split["files"])["files"][0]["uri"] = uri

    return change


def _lite(values: dict[str, Any]) -> None:
    values["lite"] = [{"form": "int8", "words": "made", "uri": "gs://my-retraining/late/rollout.json"}]


@pytest.mark.parametrize("task", ["export", "train", "evaluate"])
def test_what_was_asked_for_is_taken(task: str) -> None:
    """A result of its own request."""
    uri, result = left(task)
    require_own_result(asked(task), result, uri)


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
        require_own_result(asked(task), result, uri)
    assert named in str(refused.value)
    assert str(refused.value).startswith(uri)
    assert "delete the object, and clear the task" in str(refused.value)


def test_another_kind_is_no_answer() -> None:
    """A training's report in the place of a manifest."""
    uri, report = left("train")
    with pytest.raises(ContractError, match=r"kind 'report'\. Expected 'the result of export_request'"):
        require_own_result(asked("export"), report, uri)
