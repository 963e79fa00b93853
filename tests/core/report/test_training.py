"""What a training's report says against it: on the page, in a shell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents.plan import Plan
from retraining.core.documents.training import Report, TrainRequest
from retraining.core.report.page import render
from retraining.core.report.run import read_reported_run
from retraining.core.report.terminal import explain_run
from retraining.core.report.training import training_settings, training_warnings
from tests.support.contracts import EXAMPLES

REPORT = json.loads((EXAMPLES / "report__first_attempt.json").read_text())
RUN_KEY = "20131119t030000z-0123456789ab"
LEARNT = {"best_epoch": 3, "epochs_run": 6, "steps": 516}


def report(**changes: Any) -> dict[str, Any]:
    return {**REPORT, **LEARNT, **changes}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"steps": 200}, []),
        ({"steps": 5}, ["5 optimizer steps are few (expected at least 200)"]),
        ({"best_epoch": 6}, ["the best epoch is the last of 6: the training was still getting better"]),
        ({"best_epoch": 1, "epochs_run": 1, "steps": 101}, ["101 optimizer steps", "the best epoch is the last of 1"]),
        ({"best_epoch": 1, "epochs_run": 1, "steps": 3}, ["3 optimizer steps"]),
        (
            {"steps": 1, "framework": REPORT["framework"] | {"tensorflow": "none", "packages": {"scikit-learn": "1"}}},
            [],
        ),
    ],
    ids=["learnt", "just enough", "few steps", "not over", "both", "the newest until then", "no steps of its own"],
)
def test_a_short_training_is_found(changes, found):
    warnings = warnings_of("wide_deep", **changes)
    assert len(warnings) == len(found)
    assert all(warning.startswith(words) for warning, words in zip(warnings, found, strict=True))


def warnings_of(model: str, **changes: Any) -> list[str]:
    return list(training_warnings(Report.parse(json.dumps(report(**changes)).encode(), "test"), model))


def test_trees_are_not_counted_as_steps():
    """140 trees, of which the 40th was the best, were called few steps, and the way out was a larger batch."""
    assert warnings_of("boosted_trees", best_epoch=40, epochs_run=140, steps=140) == []
    (warning,) = warnings_of("boosted_trees", best_epoch=60, epochs_run=60, steps=60)
    assert warning.startswith("the best epoch is the last of 60")
    assert warnings_of("random_forest", best_epoch=60, epochs_run=60, steps=60) == []


def test_the_page_says_whence_each_number_came():
    plan = json.loads((EXAMPLES / "plan__scheduled.json").read_text())
    request = json.loads((EXAMPLES / "train_request__wide_deep.json").read_text())
    plan["spec"]["training"] |= {"epochs": None, "batch_size": 512, "hyperparameters": {"learning_rate": 0.001}}
    plan["overrides"] = {"training.batch_size": 512}
    request["training"]["hyperparameters"] = {"learning_rate": 0.001, "dropout": 0.1}
    trained = report(hyperparameters={"learning_rate": 0.001, "dropout": 0.1, "activation": "relu"})
    settings = training_settings(
        Plan.parse(json.dumps(plan).encode(), "test"),
        TrainRequest.parse(json.dumps(request).encode(), "test"),
        Report.parse(json.dumps(trained).encode(), "test"),
        None,
    )
    found = {setting.name: setting.source for setting in settings}
    assert found["batch_size"] == "form"
    assert found["epochs"] == found["dropout"] == "recipe"
    assert found["learning_rate"] == "file"
    assert found["activation"] == "default"
    page = render({"plan": plan, "report": trained, "train_request": request})
    assert "the recipe, by" in page


def test_the_page_says_how_far_the_networks_differ():
    """Of one network nothing is said."""
    plan = json.loads((EXAMPLES / "plan__scheduled.json").read_text())
    members = {"val_loss": [0.41, 0.44, 0.42]}
    several = report(members=members, metrics={**REPORT["metrics"], "val_loss": 0.40})
    shown = render({"plan": plan, "report": several})
    assert "3 networks answer together" in shown
    assert "val_loss 0.4100 to 0.4400 (together 0.4000)" in shown
    assert "networks answer together" not in render({"plan": plan, "report": report()})


def test_the_page_says_what_the_weights_began_as():
    """Whose they were, and which were drawn; or why the champion's were not taken. Also in a shell."""
    plan = json.loads((EXAMPLES / "plan__scheduled.json").read_text())
    request = json.loads((EXAMPLES / "train_request__wide_deep.json").read_text())
    begun = {"version_id": "7", "run_key": RUN_KEY, "taken": {"embed_carrier/embeddings": "by value: 9 of 9 rows"}}
    warm = {"plan": plan, "train_request": request, "report": report(initial={**begun, "anew": {}})}
    assert "began as those of version 7" in render(warm)
    assert "Nothing was drawn by the seed" in render(warm)
    partly = report(initial={**begun, "anew": {"hidden_0/kernel": "its width is another"}})
    assert "Drawn by the seed: hidden_0/kernel (its width is another)" in render(warm | {"report": partly})
    cold = {
        "plan": plan,
        "train_request": request | {"initial_skipped": "no version is champion yet"},
        "report": report(),
    }
    assert "not as the champion&#39;s: no version is champion yet" in render(cold)
    assert any("no version is champion yet" in line for line in explain_run(read_reported_run(cold)))
    assert "weights began" not in render({"plan": plan, "report": report()})


def test_it_stands_on_the_page_and_in_the_shell():
    plan = json.loads((EXAMPLES / "plan__scheduled.json").read_text())
    short = {"plan": plan, "report": report(steps=5)}
    assert "Warning: 5 optimizer steps" in render(short)
    assert "Warning" not in render(short | {"report": report()})
    assert any(line.startswith("training  warn: 5 optimizer steps") for line in explain_run(read_reported_run(short)))


@pytest.mark.parametrize(
    ("name", "metric", "value", "warns"),
    [("duel", "auc", 0.999, True), ("duel", "auc", 0.9989, False), ("numbers", "r2", 0.9999, True)],
)
def test_a_score_that_is_too_good_is_found(name, metric, value, warns):
    """In the terminal and on the page."""
    evaluation = json.loads((EXAMPLES / f"evaluation__{name}.json").read_text())
    evaluation["challenger"]["metrics"][metric] = value
    plan = json.loads((EXAMPLES / "plan__scheduled.json").read_text())
    shown = render({"plan": plan, "evaluation": evaluation})
    assert ("too good to be true" in shown) is warns
    told = list(explain_run(read_reported_run({"plan": plan, "evaluation": evaluation})))
    assert any(line.startswith(f"quality   warn: {metric} {value:.5f}") for line in told) is warns
