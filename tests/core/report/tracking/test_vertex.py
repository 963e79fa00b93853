"""Ids and metadata of Vertex AI Experiments: within the service's rules, whatever a model is called."""

from __future__ import annotations

import json
import re

import pytest

from retraining.core.report.tracking.vertex import MOST_OF_ID, experiment_id, run_id, run_metadata
from tests.core.report.tracking.test_mlflow import RUN

KEY = RUN.run_key


@pytest.mark.parametrize("environment", ["e", "my_bucket-eu", "-x-", "a" * 63])
@pytest.mark.parametrize("model", ["a", "flight_delays", "m" * 41])
def test_each_id_is_one_that_the_service_takes(environment: str, model: str) -> None:
    """And leaves the SDK what it keeps for a TensorBoard."""
    found = experiment_id(environment, model)
    assert re.fullmatch("[a-z0-9][a-z0-9-]{0,127}", found)
    assert len(run_id(found, KEY)) <= MOST_OF_ID


def test_long_names_stay_apart() -> None:
    """They are cut, and have a hash."""
    assert experiment_id("a" * 63, "m" * 41) != experiment_id("a" * 63, "m" * 40 + "n")


def test_a_run_is_in_the_form_of_the_sdk() -> None:
    """Parameters are texts and numbers; tags, which there are not, stand among them."""
    found = run_metadata(RUN)
    assert found["_state"] == "COMPLETE"
    assert found["_metrics"] == {"auc": 0.7}
    assert found["_params"] == {"run_key": KEY, "decision": "Promoted.", "training.epochs": 3}
    assert found["retraining_digest"] == RUN.digest


def test_a_long_text_is_cut() -> None:
    """All metadata of a context may have 200 KB."""
    from dataclasses import replace

    found = run_metadata(replace(RUN, tags={"retraining.decision": "x" * 300_000}))
    assert len(json.dumps(found)) < 10_000
