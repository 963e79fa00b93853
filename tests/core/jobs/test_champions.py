"""Whether a training begins with the champion's weights, or why it begins anew."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.data.leakage import PROVEN, Proof
from retraining.core.documents import Champion, Report
from retraining.core.jobs.champions import ChampionRun, begin_with
from retraining.core.spec.training import Training
from tests.support.contracts import EXAMPLES
from tests.support.small_model import AS_OF, make_plan, make_spec
from tests.support.small_taken import taken_from

KEY = "20131119t030000z-0123456789ab"
REPORT = Report.parse((EXAMPLES / "report__first_attempt.json").read_bytes())


def champion(as_of=AS_OF - timedelta(days=1)) -> Champion:
    return Champion(
        model_uri="gs://my-retraining/late/model",
        version_name="projects/my-project/locations/us-central1/models/late@3",
        version_id="3",
        run_key=KEY,
        as_of=as_of,
    )


def run_of(its_plan, **changes: Any) -> ChampionRun:
    given: dict[str, Any] = {
        "plan": its_plan,
        "report": REPORT,
        "request_uri": "gs://my-retraining/late/train_request.json",
        "report_uri": "gs://my-retraining/late/report.json",
        "exist": True,
        "is_own": False,
        "proof": PROVEN,
    }
    return ChampionRun(**given | changes)


def with_data(**changes: Any):
    data = json.loads(make_spec().data.model_dump_json())
    return make_plan(make_spec(data={**data, **changes}))


def test_the_champion_is_named_with_the_digest_of_its_report(small_plan):
    beginning = begin_with(small_plan, champion(), run_of(small_plan))
    assert beginning.skipped is None
    assert (beginning.initial.version_id, beginning.initial.run_key) == ("3", KEY)
    assert beginning.initial.model_digest == REPORT.model_digest


@pytest.mark.parametrize(
    ("who", "changes", "words"),
    [
        (champion(AS_OF), {}, "not before this run's"),
        (champion(), {"is_own": True}, "another framework"),
        (champion(), {"plan": None}, "is gone"),
        (champion(), {"plan": make_plan(taken_from=taken_from())}, "was taken over from stage staging"),
        (champion(), {"report": None}, "is gone"),
        (champion(), {"exist": False}, "the stored model is gone"),
        (champion(), {"proof": Proof(missing="the manifest is gone")}, "nothing proves .* the manifest is gone"),
        (champion(), {"plan": with_data(key="other")}, "data.key: other, and this run has"),
        (champion(), {"plan": with_data(validation_percent=5)}, "data.validation_percent: 5, and this run has 10"),
        (champion(), {"plan": with_data(validation_by="days")}, "validation_by: days, and this run has rows"),
        (champion(), {"plan": with_data(test_days=1)}, "it has seen some of them"),
    ],
    ids=[
        "as new",
        "own",
        "no plan",
        "taken over",
        "no report",
        "no model",
        "unproven",
        "key",
        "less validation",
        "days",
        "test days",
    ],
)
def test_why_it_begins_anew_is_said(small_plan, who, changes, words):
    """A model that has seen this run's test or validation rows would be judged by what it remembers of them."""
    beginning = begin_with(small_plan, who, run_of(small_plan, **changes))
    assert beginning.initial is None
    assert re.search(words, beginning.skipped)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"input": "bigquery"}, "use input tfrecord"),
        ({"strategy": "parameter_server"}, "parameter servers hold parts"),
        ({"runtime": {"image": "us-docker.pkg.dev/a/b/c:1", "models": "own"}}, "runtime.models is own"),
    ],
    ids=["bigquery", "servers", "own"],
)
def test_what_cannot_begin_with_it_is_refused_by_the_file(values, words):
    with pytest.raises(ValueError, match=words):
        Training.model_validate({"model": "dense", "initial": "champion", **values})
