"""`deployment.key_input`: which keys a model can take, and who is asked for them."""

from __future__ import annotations

import pytest

from retraining.core.documents.training import Signature
from retraining.core.jobs import requests
from retraining.core.promotion.signatures import signature_changes
from tests.support.small_model import make_plan, make_spec, spec_values

CONTAINER = {"image": "us-docker.pkg.dev/p/r/own:1", "predict_route": "/p", "health_route": "/h"}


def keyed(key: str = "id", **changes: object):
    return make_spec(data=spec_values()["data"] | {"key": key}, deployment={"key_input": True}, **changes)


def test_trainer_and_judge_are_asked_for_it():
    plan = make_plan(keyed())
    train, judge = requests.training_job(plan).request, requests.evaluation_job(plan, None).request
    assert (train.key, train.key_input, judge.key_input) == ("id", True, True)


def test_without_it_their_requests_are_those_of_before():
    plan = make_plan()
    for job in (requests.training_job(plan), requests.evaluation_job(plan, None)):
        assert b"key_input" not in job.request.to_json()


@pytest.mark.parametrize(
    ("key", "words"),
    [("score", "is an output of the label's own"), ("id_bytes", "TensorFlow Serving takes for base64")],
)
def test_a_name_that_an_answer_cannot_have_is_refused(key, words):
    with pytest.raises(ValueError, match=f"data.key than '{key}', which {words}"):
        keyed(key)


def test_models_of_another_framework_are_refused():
    training = spec_values()["training"] | {"runtime": {"image": "us-docker.pkg.dev/p/r/own:1", "models": "own"}}
    with pytest.raises(ValueError, match=r"monitoring\.performance\.request_keys"):
        make_spec(training=training, deployment={"key_input": True, "container": CONTAINER})


def test_the_first_version_with_it_changes_the_signature_by_name():
    before = Signature(inputs={"distance": "float32"}, outputs={"score": "float32"})
    after = Signature(inputs=before.inputs | {"id": "string"}, outputs=before.outputs | {"id": "string"})
    changes = signature_changes(before, after)
    assert [str(change) for change in changes] == [f"{side} `id` (STRING) is new" for side in ("input", "output")]
