"""The run's page: from documents alone, the same bytes each time, everything escaped, whatever is missing."""

from __future__ import annotations

import base64
import html
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import KINDS, digest
from retraining.core.errors import ContractError
from retraining.core.jobs.submission import Submission
from retraining.core.report.page import render
from retraining.core.report.readiness.facts import Facts
from retraining.core.report.readiness.score import score_model
from tests.support.contracts import EXAMPLES
from tests.support.small_model import make_spec
from tests.support.small_taken import taken_from

WHOLE_RUN = {
    "plan": "scheduled",
    "snapshot": "one_changed",
    "statistics": "two_features",
    "checks": "passed",
    "manifest": "three_spans",
    "tuning": "study",
    "train_request": "wide_deep",
    "report": "first_attempt",
    "evaluate_request": "duel",
    "evaluation": "duel",
    "decision": "promote",
    "registration": "challenger",
    "model_card": "approved",
    "deployment": "champion",
    "timings": "run",
}
REJECTED = {"evaluation": "duel", "decision": "reject", "deployment": "nothing_changed"}
ATTACK = "<script>alert('x')</script>"


@pytest.fixture
def documents() -> dict[str, dict[str, Any]]:
    """One document of every kind that the page shows."""
    return {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in WHOLE_RUN.items()}


def test_same_documents_give_the_same_bytes(documents):
    """No clock and no order of a dictionary gets into the page."""
    assert render(documents) == render(dict(reversed(documents.items())))


def test_the_page_says_what_was_taken_over(documents):
    """And where it was trained; that no training was asked is no gap of its record."""
    taken = taken_from()
    documents["plan"]["taken_from"] = taken.model_dump(mode="json")
    del documents["train_request"]
    page = render(documents)
    assert f"the version of run <code>{taken.run_key}</code> in stage staging is taken over and judged here" in page
    assert "on days before 2013-11-15" in page
    assert f"<code>{taken.version_name}</code> of stage staging" in page
    assert "In stage staging, as its report says." in page
    assert "train_request.json" not in page


def test_the_page_names_the_stage(documents):
    """Of a run that was planned in one."""
    assert "· stage" not in render(documents)
    documents["plan"]["stage"] = "staging"
    assert "UTC · stage staging · <a" in render(documents)


def test_the_page_says_what_the_documents_say(documents):
    """Verdict, reason, metrics, gates and digests stand on it."""
    page = render(documents)
    assert documents["decision"]["words"].replace("'", "&#39;") in page
    assert f"{documents['evaluation']['champion']['metrics']['auc']:.4f}" in page
    assert digest((EXAMPLES / "evaluation__duel.json").read_bytes())[:16] in page
    for gate in documents["decision"]["gates"]:
        assert gate["words"].replace("'", "&#39;") in page


def test_the_runs_time_is_from_its_start_and_its_price_stands_alone(documents):
    """The sum of the tasks' work is less: they wait for each other, for workers and machines."""
    documents["timings"]["elapsed_seconds"] = 4321.0
    page = render(documents)
    assert "<b>1 h 12 min</b><span>" in page
    assert "USD at list price" in page
    assert "run took 1 h 12 min" in page
    documents["timings"]["elapsed_seconds"] = 1187.2
    assert "<b>20 min</b>" in render(documents)
    del documents["timings"]["elapsed_seconds"]
    assert "of work by" in render(documents)


def test_the_card_of_examples_without_a_time_has_no_days(documents):
    """Inside, their two spans lie in 1970."""
    window = {"start": "1970-01-01", "end": "1970-01-03", "test_start": "1970-01-02"}
    data = documents["plan"]["spec"]["data"]
    timeless = {key: data[key] for key in ("query", "key", "sample_percent") if key in data}
    documents["plan"]["spec"]["data"] = timeless | {"split": "hash", "test_percent": 20}
    documents["plan"]["window"] = documents["model_card"]["data"]["window"] = window
    kinds = ("plan", "model_card", "decision")
    page = render({kind: documents[kind] for kind in kinds})
    assert "20 % of them, by hash" in page
    assert "1970" not in page


def test_every_cause_of_a_run_stands_on_it(documents):
    """One run for several events: the newest in the head, the others below it; what another DAG wrote is escaped."""
    at = "2013-11-20T02:00:00Z"
    causes = [("new_data:flights.flights", "2013-11-18 is there."), ("skew:carrier", "Retraining: it drifted.")]
    events = [{"cause": cause, "reason": reason, "at": at, "times": 1} for cause, reason in causes]
    events.append({"cause": ATTACK, "reason": ATTACK, "at": at, "times": 3})
    trigger = {"kind": "asset", "reason": causes[0][1], "cause": causes[0][0], "events": events}
    page = render({**documents, "plan": {**documents["plan"], "trigger": trigger}})
    assert "Started by new data" in page
    assert "2013-11-18 is there.</p>" in page
    assert "One run for 3 causes." in page
    assert "(carrier), last at 2013-11-20 02:00 UTC" in page
    assert "&lt;/script&gt;, 3 times" in page
    assert ATTACK not in page


def test_both_models_stand_as_yes_or_no_at_one_threshold(documents):
    """Rates with their intervals, and errors as counts; a rule that is not met has its reason, no spec no section."""
    page = render(documents)
    for found in ("<h3>As yes or no</h3>", "<small>0.2906 to 0.3706</small>", ">166<", "Yes is a score of 0.1250"):
        assert found in page
    documents["evaluation"]["threshold"] |= {"threshold": None, "challenger": None, "champion": None, "words": "none"}
    assert "evaluation.threshold: none." in render(documents)
    documents["evaluation"]["threshold"] = None
    assert "As yes or no" not in render(documents)


def test_the_models_own_checks_are_named_with_the_text_that_was_asked(documents):
    """On the page, and on the card."""
    assert "own check" not in render(documents)
    asked = {"name": "no_heavy", "severity": "warn", "query": "late/no_heavy.sql", "sha256": "ab" * 32, "rows": 3}
    refused = {**asked, "name": "every_carrier", "rows": None, "not_asked": "BigQuery refuses it"}
    held = {**asked, "name": "no_early", "severity": "block", "rows": 0, "bytes_processed": 5_000_000}
    documents["checks"]["assertions"] = [asked, refused, held]
    documents["model_card"]["data"]["assertions"] = {"no_heavy": 3, "every_carrier": None, "no_early": 0}
    page = render(documents)
    assert '<td>no_heavy<small>warns</small></td><td class="n warn">3</td>' in page
    assert '<td>every_carrier<small>warns</small></td><td class="n warn">not asked</td>' in page
    assert '<td>no_early<small>blocks</small></td><td class="n ">0</td>' in page
    assert "<code>late/no_heavy.sql</code><small>SHA-256 abababababababab</small>" in page
    assert "no_heavy: 3 rows, every_carrier: not asked, no_early: held" in page


def test_the_model_card_has_its_section(documents):
    """Purpose, licence, who approved, what to mind; runs of earlier releases have none, and miss nothing."""
    page = render(documents)
    for found in ("<h2>Model card</h2>", "<td>Apache-2.0</td>", "<td>approved by admin</td>", "<p>To mind:</p>"):
        assert found in page
    del documents["model_card"]
    without = render(documents)
    assert "Model card" not in without
    assert "model_card.json" not in without


def test_the_model_card_has_the_ml_test_score(documents):
    """All tests, with what would satisfy each; a card of an earlier release has none."""
    assert "ML Test Score" not in render(documents)
    score = score_model(make_spec(), Facts(day=date(2013, 11, 20)))
    documents["model_card"]["readiness"] = score.model_dump(mode="json")
    _, found, section = render(documents).partition("<h3>ML Test Score</h3>")
    assert found
    section = html.unescape(section)
    assert all(f"<code>{test.name}</code>" in section for test in score.tests)
    assert all((test.would_be_satisfied_by or test.satisfied_by) in section for test in score.tests)


def test_the_way_back_is_said_with_the_names_of_the_run(documents):
    """As the form of the model's own DAG takes it."""
    page = render(documents)
    assert "the DAG <code>rollback__late</code>" in page
    assert '<code>{"reason": "why", "to": "3"}</code>' in page


def test_auxiliary_labels_are_there_for_information(documents):
    """With the champion's, where it answers them in the same form."""
    ours = documents["evaluation"]["challenger"]["auxiliary"]["arrival_delay"]
    page = render(documents)
    assert "Trained beside late" in page
    assert page.count("<td>arrival_delay</td>") == 5  # it has no quantiles
    documents["evaluation"]["champion"]["auxiliary"] = {
        "arrival_delay": {**ours, "metrics": {**ours["metrics"], "mae": 12.75}}
    }
    assert "12.75" not in page
    assert "12.75" in render(documents)
    documents["evaluation"]["challenger"]["auxiliary"] = {}
    assert "arrival_delay" not in render(documents)


def test_the_largest_errors_are_named_by_key(documents):
    """With both answers; and with the features' values only where the evaluation has them."""
    worst = documents["evaluation"]["worst"]
    worst[1]["values"] = {}
    page = render(documents)
    assert "The 2 examples" in page
    assert "carrier: UA · distance: 1400" in page
    assert "carrier: AA" not in page
    assert "Only keys" in page
    assert "<code>report.show_rows: true</code>" in page
    documents["plan"]["spec"]["report"] = {"show_rows": True}
    assert "Only keys" not in render(documents)
    documents["evaluation"]["worst"] = []
    assert "Largest errors" not in render(documents)


def test_the_use_of_the_machine_is_said_where_it_is_known(documents):
    """Another container than ours need not measure it."""
    documents["report"]["usage"] = {"cpu_seconds": 11.1, "cores": 8, "cpu_share": 0.49, "memory_mb": 1564.2}
    assert "chief used 49 % of 8 cores" in render(documents)
    documents["report"]["usage"]["accelerator_memory_mb"] = 700.0
    assert "1,564 MB, and 700 MB" in render(documents)
    documents["report"]["usage"] = {}
    assert "The chief used" not in render(documents)


def test_jobs_are_there_to_be_submitted_by_hand(documents):
    """As command and as program, and what is in them is text."""
    assert "submitted by hand" not in render(documents)
    job = {"display_name": ATTACK, "labels": {}, "job_spec": {"worker_pool_specs": []}}
    page = render(documents, {"train": Submission(job=job, project="p", region="europe-west1")})
    assert "gcloud ai custom-jobs create --region=europe-west1 --project=p" in page
    assert "europe-west1-aiplatform.googleapis.com" in page
    assert ATTACK not in page


def test_a_sample_is_said(documents):
    """Whoever reads its numbers knows that they are of a part of the examples."""
    assert "A sample" not in render(documents)
    documents["plan"]["spec"]["data"]["sample_percent"] = 2.5
    assert "A sample: 2.5 %" in render(documents)
    assert "<code>id</code>" in render(documents)


def test_examples_without_a_time_have_no_days(documents):
    """Their two spans are told by what they are for, not by the days that stand for them."""
    data = documents["plan"]["spec"]["data"]
    kept = {name: data[name] for name in ("query", "key", "checks")}
    documents["plan"]["spec"]["data"] = {**kept, "split": "hash", "test_percent": 20}
    first, *_, last = documents["snapshot"]["spans"]
    documents["snapshot"]["spans"] = [{**first, "span": "1970-01-01"}, {**last, "span": "1970-01-02"}]
    documents["plan"]["window"] = {"start": "1970-01-01", "test_start": "1970-01-02", "end": "1970-01-03"}
    page = render(documents)
    assert "20 % of them" in page
    assert "<code>id</code>" in page
    assert "<td>train and validation</td>" in page
    assert "on the test rows" in page
    assert "test days</p>" not in page
    assert "1970" not in page


def test_nothing_is_loaded_from_elsewhere(documents):
    """One file: no script, no style sheet, no picture from another address."""
    page = render(documents)
    assert not re.search(r"<(script|link|img|iframe)|@import|url\(", page)


def test_changed_images_are_shown_where_there_are_some(documents):
    """As a picture inside the page; what is no PNG, or too large, is left out."""
    png = b"\x89PNG\r\n\x1a\n and so on"
    page = render(documents, contact_sheet=png)
    assert re.findall(r'<img src="([^"]*)"', page) == [f"data:image/png;base64,{base64.b64encode(png).decode()}"]
    assert "<h3>Augmentation</h3>" in page
    for other in (None, b"<svg>", b"", png + bytes(4 << 20)):
        assert render(documents, contact_sheet=other) == render(documents)


def test_what_is_not_judged_is_shown_with_what_is_missing(documents):
    """A gain of nine positives has no interval, and a slice that has enough of the least rows too few of a class."""
    evaluation = documents["evaluation"]
    evaluation["difference_evidence"] = {"count": 9, "effective": 9, "needed": 20, "units": "positives"}
    evaluation["difference"], evaluation["differences"] = None, []
    evaluation["slice_differences"][0] |= {"difference": None, "evidence": evaluation["difference_evidence"]}
    page = render(documents)
    assert "The gain over the champion is not judged: 9 positives, 20 are needed." in page
    assert "<small>not judged: 9 positives, 20 are needed</small>" in page
    assert "no champion yet" not in page


@pytest.mark.parametrize("missing", [kind for kind in WHOLE_RUN if kind not in ("plan", "tuning", "model_card")])
def test_a_missing_document_is_said_not_hidden(documents, missing):
    """Whatever the run did not come to, the page is made; and a run with nothing but a plan says where it stopped."""
    del documents[missing]
    assert "not there" in render(documents)
    assert "Stopped at snapshot" in render({"plan": documents["plan"]})


def test_without_a_plan_there_is_no_page(documents):
    """The plan is the one document that a page cannot do without."""
    del documents["plan"]
    with pytest.raises(ContractError, match="a plan among them"):
        render(documents)


def test_other_documents_of_the_folder_are_left_out(documents):
    """The export's request lies in the same folder; the page does not show it."""
    asked = json.loads((EXAMPLES / "export_request__two_new_spans.json").read_text())
    assert render({**documents, "export_request": asked}) == render(documents)


def test_every_text_is_escaped(documents):
    """A text from a spec, a query's column or a trigger never becomes markup."""
    spread = 0
    for kind, values in list(documents.items()):
        for path in _texts(values):
            changed = json.loads(json.dumps(values))
            _set(changed, path, ATTACK)
            try:
                KINDS[kind].parse(json.dumps(changed))
            except ContractError:
                continue  # the contract itself refuses it
            spread += 1
            assert ATTACK not in render({**documents, kind: changed}), f"{kind}: {path}"
    assert spread > 40


def test_digests_are_those_of_the_stored_bytes(documents):
    """Also of the trainer's documents, whose numbers a model would spell anew."""
    page = render(documents)
    for kind, what in WHOLE_RUN.items():
        assert digest(stored_bytes(EXAMPLES / f"{kind}__{what}.json")) in page


def test_the_page_tells_whether_a_document_is_the_one_decided_on(documents):
    """A document that was changed after the decision is pointed at."""
    documents["decision"]["inputs"] = {
        kind: digest(stored_bytes(EXAMPLES / f"{kind}__{WHOLE_RUN[kind]}.json"))
        for kind in ("plan", "evaluation", "evaluate_request")
    }
    assert "not what was decided" not in render(documents)
    documents["evaluation"]["rows"] += 1
    assert render(documents).count("not what was decided") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "Promoted"),
        ({"deployment": None}, "Promoted, not deployed"),
        ({"decision": "reject", "deployment": "nothing_changed"}, "Rejected"),
        ({"decision": "record", "deployment": None}, "Recorded"),
        ({"checks": "blocked", "decision": None}, "Stopped by the data checks"),
        ({"decision": None}, "Stopped at decide"),
        ({"report": None, "evaluation": None, "decision": None}, "Stopped at train"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_the_headline_is_the_outcome(documents, change, words):
    """One line says how the run ended."""
    assert f'<h1 class="verdict">{words}</h1>' in render(replaced(documents, change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"deployment": None}, "The task deploy has left no result"),
        ({"deployment": None, "decision": "reject"}, "Nothing was deployed: the challenger was not promoted."),
        ({"deployment": None, "plan": "backfill_with_overrides"}, "Nothing was deployed: this run is a backfill"),
        ({"report": None, "evaluation": None, "decision": None}, "not come so far: quality, training."),
        ({"checks": "blocked", "manifest": None}, "No split was exported. The data did not pass its checks."),
        ({"timings": None}, "the run has not come so far: time and list price."),
        ({"evaluate_request": "first_model"}, "There was no older champion to compare with: "),
        ({"evaluate_request": None}, "The run has not come to the comparison"),
    ],
)
def test_what_did_not_happen_has_its_reason(documents, change, words):
    """As far as the other documents tell it."""
    assert words in render(replaced(documents, change))


def test_the_page_says_who_approved(documents):
    """And when; a run that asks nobody has no such line."""
    assert "Approval: " not in render(documents)
    approval = {"approved": True, "person": "ada", "answered": "2013-11-20T09:30:00Z", "words": "approved by ada"}
    documents["deployment"]["approval"] = approval
    assert "approved by ada, 2013-11-20 09:30 UTC." in render(documents)


def test_a_stopped_run_says_what_blocked_it(documents):
    """The first lines of the page are the findings' own words."""
    page = render(replaced(documents, {"checks": "blocked", "decision": None}))
    assert '<p class="words">89 examples are too few' in page


def test_what_changed_since_the_champion(documents):
    """Its plan at hand: every key of the spec that differs, the query, the images. Without it: said so."""
    assert "could not be read" in render(documents)
    before = json.loads(json.dumps(documents["plan"]))
    assert "Only the time differs" in render({**documents, "champion_plan": before})
    before["spec"]["training"]["epochs"] = 77
    before["spec"]["features"][0]["embedding_dim"] = 99
    before["trainer_image"] = "example.com/trainer:old"
    page = render({**documents, "champion_plan": before})
    for what in ("training.epochs", "features.carrier.embedding_dim", "trainer image", "example.com/trainer:old"):
        assert f"<code>{what}</code>" in page
    assert page.count('<td class="name">') == 3


def test_going_back_names_the_previous_version(documents):
    """The commands have the run's own names; a run that changed nothing has none."""
    page = render(documents)
    deployment = documents["deployment"]
    assert f"post {deployment['previous_version_name']}:mergeVersionAliases" in page
    assert f"post {deployment['endpoint_name']}:deployModel" in page
    assert "mergeVersionAliases" not in render(replaced(documents, REJECTED))


def replaced(documents: dict[str, dict[str, Any]], change: dict[str, str | None]) -> dict[str, dict[str, Any]]:
    """Return the documents with some of them taken away (None) or exchanged for another example."""
    others = {
        kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in change.items() if what
    }
    return {kind: values for kind, values in {**documents, **others}.items() if change.get(kind, "") is not None}


def stored_bytes(path: Path) -> bytes:
    """Return what lies on storage of an example: the one form in which both sides write."""
    text = json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode()


def _texts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, str):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in _texts(item, (*path, key))]


def _set(value: Any, path: tuple[Any, ...], text: str) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = text
