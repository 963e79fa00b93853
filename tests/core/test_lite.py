"""TF Lite models through the core: what the spec asks for is ordered, and what came of it stands on the page."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from retraining.core.jobs import requests
from retraining.core.report.page import render
from tests.support.contracts import EXAMPLES
from tests.support.small_model import make_plan, make_spec


def test_the_forms_of_the_spec_are_ordered_of_both_jobs():
    plan = make_plan(make_spec(training={"model": "dense", "export_lite": ["int8"]}))
    assert requests.train_request(plan, "gs://b/x").training.export_lite == ("int8",)
    lite = requests.evaluation_job(plan, None).request.lite
    assert (lite.forms, lite.folder_uri) == (("int8",), f"{plan.results_uri}/training/lite")
    assert requests.evaluation_job(make_plan(), None).request.lite is None


@pytest.mark.parametrize(
    ("forms", "words"), [(["int8", "int8"], "a form stands twice"), (["int4"], "'float16' or 'int8'")]
)
def test_other_forms_are_refused(forms, words):
    with pytest.raises(ValidationError, match=words):
        make_spec(training={"model": "dense", "export_lite": forms})


def test_the_page_has_size_metric_and_difference_or_why_there_is_none():
    plan = make_plan()
    evaluation = json.loads((EXAMPLES / "evaluation__lite.json").read_text(encoding="utf-8"))
    page = render({"plan": json.loads(plan.to_bytes()), "evaluation": evaluation})
    assert "<h3>TF Lite</h3>" in page
    assert "weights in 16 bits<" in page
    assert "training/lite/vocabulary.json</code>" in page
    assert "118.2 kB" in page
    assert "ConverterError: &#39;tf.Quux&#39; op is neither a custom op nor a flex op" in page
    evaluation["lite"][0]["select_ops"] = True  # as releases before 0.3 may have written it
    page = render({"plan": json.loads(plan.to_bytes()), "evaluation": evaluation})
    assert "weights in 16 bits; an app needs TensorFlow's Select operations" in page
    evaluation["lite"] = []
    assert "TF Lite" not in render({"plan": json.loads(plan.to_bytes()), "evaluation": evaluation})
