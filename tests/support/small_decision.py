"""A decision on the small model: both models' scores, and the verdict that follows from them."""

from __future__ import annotations

from retraining.core import documents as d
from retraining.core.data import leakage
from retraining.core.jobs import requests
from retraining.core.promotion import gates
from retraining.core.promotion.evidence import is_short
from retraining.core.promotion.replay import decision_changes, replay_decision
from tests.support.contracts import EXAMPLES

DIGESTS = {"plan": "a" * 64, "evaluation": "b" * 64, "evaluate_request": "c" * 64}
CHAMPION = gates.champion_of(
    version_name="projects/p/locations/r/models/late@3",
    version_id="3",
    model_uri="gs://my-retraining/late/runs/20131119t030000z-0123456789ab/training/model",
    run_key="20131119t030000z-0123456789ab",
)


PROVEN = leakage.Proof()
REPORT = d.Report.parse((EXAMPLES / "report__first_attempt.json").read_bytes(), "report")


def metrics(auc, log_loss=0.4):
    return d.Metrics(auc=auc, log_loss=log_loss, accuracy=0.85, brier=0.12)


def scores(auc, log_loss=0.4, **slices):
    items = [d.Slice(column="carrier", value=v, rows=r, metrics=metrics(a)) for v, (r, a) in slices.items()]
    return d.Scores(metrics=metrics(auc, log_loss), slices=tuple(items))


def evaluation(
    the_plan,
    ours,
    theirs=None,
    gain=(0.013, 0.006, 0.02),
    rows=5000,
    metric="auc",
    deviation=None,
    serving=None,
    evidence=None,
    difference_evidence=None,
    slice_evidence=None,
    reference=(),
):
    """Return the document; with a `deviation` the slices have differences, by value with what they rest on."""
    difference = d.Difference(metric=metric, mean=gain[0], low=gain[1], high=gain[2], confidence=0.95, samples=500)
    slices = ours.slices if theirs and deviation is not None else ()
    by_slice = [
        d.SliceDifference(
            column=item.column,
            value=item.value,
            rows=item.rows,
            difference=None if is_short(basis) else difference.model_copy(update={"deviation": deviation}),
            evidence=basis,
        )
        for item in slices
        for basis in [(slice_evidence or {}).get(item.value)]
    ]
    return d.Evaluation(
        model=the_plan.model,
        run_key=the_plan.run_key,
        split="test",
        rows=rows,
        label_rate=0.2,
        shards=(d.Shard(uri="gs://b/x", sha256="0" * 64, rows=rows),),
        challenger=ours,
        champion=theirs,
        baseline=d.Baseline(log_loss=0.5, accuracy=0.8),
        evidence=evidence,
        difference=difference if theirs and not is_short(difference_evidence) else None,
        difference_evidence=difference_evidence,
        slice_differences=tuple(by_slice),
        reference=reference,
        serving=serving,
    )


def decide(the_plan, ours, theirs=None, champion=CHAMPION, proof=PROVEN, signature=None, **changes):
    """The decision, taken twice: from the documents, and from their bytes."""
    against = champion if theirs or champion is not CHAMPION else None
    report = None if signature is None else REPORT.model_copy(update={"signature": signature})
    request = requests.evaluation_job(the_plan, against, proof=proof, report=report).request
    assert isinstance(request, d.EvaluateRequest)
    judged = evaluation(the_plan, ours, theirs, **changes)
    stored = {"plan": the_plan, "evaluate_request": request, "evaluation": judged}
    digests = {kind: document.digest() for kind, document in stored.items()}
    decision = gates.decide(the_plan, request, judged, digests)
    again = replay_decision({kind: document.to_bytes() for kind, document in stored.items()})
    assert decision_changes(decision, again) == []
    return decision


def failed(decision):
    return [gate.gate for gate in decision.gates if not gate.passed]
