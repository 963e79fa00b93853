"""The decision: a pure function of stored documents. Replayed on the same documents it gives the same answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from retraining.core.documents.answers import ThresholdScores
from retraining.core.documents.document import format_time
from retraining.core.documents.evaluation import (
    Baseline,
    Champion,
    Decision,
    DecisionChampion,
    EvaluateRequest,
    Evaluation,
    Gate,
    GateName,
    Verdict,
)
from retraining.core.documents.plan import Plan
from retraining.core.documents.training import Report, Signature
from retraining.core.errors import ContractError
from retraining.core.metrics import HIGHER_IS_BETTER, Metric
from retraining.core.naming.run_keys import RunKey
from retraining.core.naming.storage import document_uri
from retraining.core.promotion.best import best_gate
from retraining.core.promotion.evidence import describe_shortage, is_short, way_out
from retraining.core.promotion.reference import reference_gate
from retraining.core.promotion.serving import serving_gate
from retraining.core.promotion.signatures import changes_digest, signature_changes
from retraining.core.promotion.slices import slice_losses, surely_worse, value_of

InputName = Literal["plan", "evaluation", "evaluate_request"]

NO_COMPARISON = "no comparison"
"""What gates find where no champion was scored beside the challenger; documents of 0.2.0 and older say: no duel."""

NOT_JUDGED = "not judged"
"""What the gate `gain` finds where the test split says too little for an interval."""

NOT_PROVEN = "not proven"
"""What the gate `unseen` finds where no record shows what the champion was trained on."""


def decide(
    plan: Plan,
    evaluate_request: EvaluateRequest,
    evaluation: Evaluation,
    digests: Mapping[InputName, str],
    own: Sequence[Gate] = (),
) -> Decision:
    """Promote, reject, or (in a backfill) only record.

    Args:
        plan: The run.
        evaluate_request: Whom the judge compared, and why not when there was nobody.
        evaluation: What the judge found.
        digests: SHA-256 of the three stored documents.
        own: Verdicts of the team's own gates, as `own_gates.judge_own_gates` gives them.

    Raises:
        ContractError: The documents are of different runs, or champion and evaluation do not fit.
    """
    _same_run(plan, evaluate_request, evaluation)
    given = evaluate_request.challenger.signature  # not in a request of an earlier release
    gates = (
        _mode(plan),
        _newer_champion(plan, evaluate_request),
        _leakage(evaluate_request),
        *((_signature(plan, evaluate_request, given),) if given else ()),
        _examples(plan, evaluation),
        _floor(plan, evaluation),
        _gain(plan, evaluate_request, evaluation),
        *((best_gate(plan, evaluate_request, evaluation),) if evaluate_request.judge_best else ()),
        _slices(plan, evaluate_request, evaluation),
        *((reference_gate(plan, evaluation),) if evaluation.reference else ()),
        *((serving_gate(plan, evaluation.serving),) if evaluation.serving else ()),
        *own,
    )
    verdict: Verdict = "promote" if all(gate.passed for gate in gates) else "reject"
    if plan.mode == "backfill":
        verdict = "record"
    return Decision(
        model=plan.model,
        run_key=plan.run_key,
        as_of=plan.as_of,
        mode=plan.mode,
        verdict=verdict,
        gates=gates,
        message=_message(plan, verdict, gates) + threshold_sentence(evaluation.threshold),
        champion=_held_against(evaluate_request.champion),
        inputs=dict(digests),
    )


def _held_against(champion: Champion | None) -> DecisionChampion | None:
    if champion is None:
        return None
    return DecisionChampion(version_id=champion.version_id, run_key=champion.run_key, as_of=champion.as_of)


def _same_run(plan: Plan, request: EvaluateRequest, evaluation: Evaluation) -> None:
    for document in (request, evaluation):
        if document.run_key != plan.run_key:
            raise _mismatch(plan, document, f"run_key {document.run_key}", f"{plan.run_key}, this run's own")
    asked, compared = request.champion is not None, evaluation.champion is not None
    if asked != compared and not (asked and evaluation.champion_skipped):
        expected = "the one of evaluate_request.json" if asked else "none, as evaluate_request.json has it"
        raise _mismatch(plan, evaluation, "a champion" if compared else "no champion", expected)
    if evaluation.difference is not None and evaluation.difference.metric != request.metric:
        raise _mismatch(plan, evaluation, f"a difference in {evaluation.difference.metric}", request.metric)


def _mismatch(plan: Plan, document: EvaluateRequest | Evaluation, found: str, expected: str) -> ContractError:
    """Return a document that belongs to another comparison: clearing the task alone would find it again."""
    where = document_uri(plan.run_uri, document.kind_name())
    return ContractError(where, found, expected, "Delete this object, then clear evaluate and what follows")


def _mode(plan: Plan) -> Gate:
    message = (
        "this is a live run" if plan.mode == "live" else "this is a backfill: it records a version and deploys none"
    )
    return _gate("mode", plan.mode == "live", plan.mode, "live", message)


def _newer_champion(plan: Plan, request: EvaluateRequest) -> Gate:
    if request.champion_skipped:
        return _gate("newer_champion", False, "a champion as new", "an older champion", request.champion_skipped)
    if request.champion is None:
        return _gate("newer_champion", True, "no champion", "an older champion", "there is no champion yet")
    time = format_time(request.champion.as_of)
    passed = request.champion.as_of < plan.as_of
    message = f"the champion's data is of {time}, {'before' if passed else 'not before'} this run's"
    return _gate("newer_champion", passed, time, f"before {format_time(plan.as_of)}", message)


def _leakage(request: EvaluateRequest) -> Gate:
    """Return whether the champion may have been trained on examples that it is judged on.

    Rows that it read from its run table itself leave no files to look into; such a champion can only look better than
    it is, which makes promotion harder and not wrong. Without any record the comparison means nothing that could be
    shown.
    """
    expected = "a champion that has seen none of the test examples"
    if request.champion is None:
        return _gate("unseen", True, "no champion", expected, "no champion is compared")
    if request.unproven is None:
        message = "that the champion has seen none of the test examples is proven by fingerprints and keys"
        return _gate("unseen", True, "proven", expected, message)
    message = f"that the champion has seen none of the test examples is not proven: {request.unproven}"
    if request.trained_on_known:
        return _gate("unseen", True, NOT_PROVEN, expected, f"{message}; if it has, it only looks better than it is")
    way_out = (
        f"restore that file, or take the alias champion off version {request.champion.version_id} so that the floor "
        "alone judges; then trigger again with the Param force"
    )
    return _gate("unseen", False, NOT_PROVEN, expected, f"{message}; {way_out}")


def _signature(plan: Plan, request: EvaluateRequest, after: Signature) -> Gate:
    """Keep applications that ask the champion from an endpoint that no longer understands them.

    What is not known, of a champion whose report is gone, stops nothing.
    """
    expected = "the champion's inputs and outputs"
    if request.champion is None:
        return _gate("signature", True, "no champion", expected, "there is no champion whose signature could change")
    before = request.champion.signature
    if before is None:
        return _gate("signature", True, "not known", expected, "no training report tells the champion's signature")
    changes = signature_changes(before, after)
    if not changes:
        return _gate("signature", True, "no change", expected, "inputs and outputs are those of the champion")
    found, change_digest = "; ".join(map(str, changes)), changes_digest(changes)
    if plan.spec.deployment.accept_signature == change_digest:
        message = f"the signature changes, and deployment.accept_signature accepts it: {found}"
        return _gate("signature", True, found, expected, message)
    way_out = (
        "applications that ask the champion would not be understood; to accept exactly this change, set "
        f'deployment.accept_signature: "{change_digest}" and trigger again with Force'
    )
    return _gate("signature", False, found, expected, f"the signature changes: {found}; {way_out}")


def _examples(plan: Plan, evaluation: Evaluation) -> Gate:
    """Return whether there are enough rows, and enough of each class: neither a floor nor a gain rests on three."""
    least = plan.spec.evaluation.promote.min_examples
    passed = evaluation.rows >= least
    if passed and is_short(evidence := evaluation.evidence):
        there = f"{evaluation.rows} rows, {evidence.count} {evidence.units}"
        expected = f"at least {least}, and {evidence.needed} {evidence.units}"
        message = (
            f"the {plan.spec.data.tested_name} have too few {evidence.units} to judge a model by: "
            f"{describe_shortage(evidence)}; {way_out(plan.spec, evidence)}"
        )
        return _gate("examples", False, there, expected, message)
    message = f"{evaluation.rows} test examples {'are' if passed else 'are not'} enough to judge (at least {least})"
    return _gate("examples", passed, f"{evaluation.rows} rows", f"at least {least}", message)


def _floor(plan: Plan, evaluation: Evaluation) -> Gate:
    """Hold the model to the absolute bound.

    Without a champion to hold it against, a model must also beat predicting the base rate; a regression the mean, the
    median and the spec's own baselines.

    So too where the champion cannot read the examples: then this gate alone judges. With one it need not: on
    days unlike the training days both may lose to the base rate of the very days they are judged on, and then keeping
    the worse of the two would be wrong.
    """
    spec = plan.spec.evaluation
    higher = spec.metric in HIGHER_IS_BETTER
    value = value_of(evaluation.challenger.metrics, spec.metric)
    bound = f"{'at least' if higher else 'at most'} {spec.floor:g}"
    alone = evaluation.champion is None
    beaten = _base_rate(evaluation.baseline, evaluation) if evaluation.baseline else _baselines(spec.metric, evaluation)
    expected = f"{spec.metric} {bound}" + (f", {beaten.expected}" if alone else "")
    if value is None:
        return _gate(
            "floor",
            False,
            f"no {spec.metric}",
            expected,
            f"{spec.metric} is not defined on these {plan.spec.data.tested_name}",
        )
    found = f"{spec.metric} {value:.4f}, {beaten.found}"
    if not (value >= spec.floor if higher else value <= spec.floor):
        return _gate("floor", False, found, expected, f"{spec.metric} {value:.3f} misses the floor ({bound})")
    if alone and beaten.problem:
        return _gate("floor", False, found, expected, beaten.problem)
    more = f" and beats {beaten.names}" if alone else ""
    return _gate("floor", True, found, expected, f"{spec.metric} {value:.3f} reaches the floor ({bound}){more}")


@dataclass(frozen=True, kw_only=True)
class _Beaten:
    """What answers without a model reach, against the challenger; `problem` is None where it beats them."""

    expected: str
    found: str
    names: str
    problem: str | None


def _base_rate(shares: Baseline, evaluation: Evaluation) -> _Beaten:
    baseline, log_loss = shares.log_loss, value_of(evaluation.challenger.metrics, "log_loss") or 0.0
    problem = f"log_loss {log_loss:.4f} is no better than always predicting the base rate ({baseline:.4f})"
    return _Beaten(
        expected=f"log_loss below {baseline:.4f} (the base rate's)",
        found=f"log_loss {log_loss:.4f}",
        names="predicting the base rate",
        problem=None if log_loss < baseline else problem,
    )


def _baselines(metric: Metric, evaluation: Evaluation) -> _Beaten:
    higher = metric in HIGHER_IS_BETTER
    values = [
        (item.name, value_of(item.challenger, metric), value_of(item.metrics, metric)) for item in evaluation.baselines
    ]
    known = [(name, ours, theirs) for name, ours, theirs in values if ours is not None and theirs is not None]
    lost = [
        f"{metric} {ours:.4f} is no better than {name}'s ({theirs:.4f})"
        for name, ours, theirs in known
        if not (ours > theirs if higher else ours < theirs)
    ]
    return _Beaten(
        expected=f"{'above' if higher else 'below'} that of each baseline",
        found=", ".join(f"{name} {theirs:.4f}" for name, _, theirs in known) or "no baselines",
        names=f"the baselines ({', '.join(name for name, _, _ in known)})",
        problem="; ".join(lost) or None,
    )


def _gain(plan: Plan, request: EvaluateRequest, evaluation: Evaluation) -> Gate:
    metric, promote = plan.spec.evaluation.metric, plan.spec.evaluation.promote
    expected = f"lower end of the gain's interval over {promote.min_gain:g}"
    if request.champion is None or evaluation.champion is None:
        if request.champion_skipped:
            return _gate("gain", False, NO_COMPARISON, expected, "there was no comparison, so no gain is known")
        if evaluation.champion_skipped:
            # It would serve on and could never be judged again: whoever changed the columns wants a new champion.
            message = f"{evaluation.champion_skipped}, so it cannot be judged any more and the floor alone decides"
            return _gate("gain", True, NO_COMPARISON, expected, message)
        return _gate("gain", True, "no champion", expected, "there is no champion to beat")
    if is_short(evidence := evaluation.difference_evidence):
        message = f"{metric} was not judged against the champion's, which stays"
        if not is_short(evaluation.evidence):
            message = f"{message}: {describe_shortage(evidence)}; {way_out(plan.spec, evidence)}"
        return _gate("gain", False, NOT_JUDGED, expected, message)
    difference = evaluation.difference
    ours, theirs = (value_of(scores.metrics, metric) for scores in (evaluation.challenger, evaluation.champion))
    if difference is None or ours is None or theirs is None:
        return _gate("gain", False, "no difference", expected, f"{metric} of the two could not be compared")
    mean, low, high = difference.mean, difference.low, difference.high
    if metric not in HIGHER_IS_BETTER:
        mean, low, high = -mean, -high, -low
    passed = low > promote.min_gain
    interval = f"{difference.confidence * 100:g} % interval {_amount(low)} to {_amount(high)}"
    if passed and low > 0:
        message = f"{metric} {ours:.3f} beats the champion's {theirs:.3f} by {_amount(mean)} ({interval})"
    elif passed:
        message = (
            f"{metric} {ours:.3f} does not surely beat the champion's {theirs:.3f}, but a loss of "
            f"{-promote.min_gain:g} is tolerated: gain {_amount(mean)} ({interval})"
        )
    else:
        message = (
            f"{metric} {ours:.3f} does not surely beat the champion's {theirs:.3f}: gain {mean:.3f} ({interval}), "
            f"and its lower end must be over {promote.min_gain:g}"
        )
    return _gate("gain", passed, f"gain {mean:.4f}, {interval}", expected, message + _few_days(request, evaluation))


def _few_days(request: EvaluateRequest, evaluation: Evaluation) -> str:
    """Return what follows the sentence about a gain whose rows are taken as independent although they have days."""
    if not request.by_day or evaluation.drawn_by != "rows":
        return ""
    days, least = len(evaluation.day_differences), request.bootstrap.min_days
    return f"; rows were taken as independent, as {days} test days are fewer than the {least} that count as days"


def _amount(value: float) -> str:
    """Show three decimals, or two digits of what they would round to nothing."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.2g}"


def _slices(plan: Plan, request: EvaluateRequest, evaluation: Evaluation) -> Gate:
    """Stop a model that is surely worse for some of the rows; by chance alone hardly any is stopped."""
    metric, promote = plan.spec.evaluation.metric, plan.spec.evaluation.promote
    expected = f"no slice of {request.min_slice_examples} rows or more surely loses over {promote.max_slice_loss:g}"
    if evaluation.champion is None:
        found = NO_COMPARISON if evaluation.champion_skipped else "no champion"
        return _gate("slices", True, found, expected, "there is no champion to compare slices with")
    losses = slice_losses(evaluation, metric, request.min_slice_examples)
    unjudged = _unjudged(evaluation)
    if not losses:
        found = "no slice large enough"
        return _gate("slices", True, found, expected, f"no slice is large enough to compare{unjudged}")
    worse = surely_worse(losses, promote.max_slice_loss, 1 - promote.confidence)
    worst = max(worse or losses, key=lambda loss: loss.mean)
    beyond = worst.mean > promote.max_slice_loss
    verb = "falls" if metric in HIGHER_IS_BETTER else "rises"
    fall = f"{metric} {verb} by {worst.mean:.3f} for {worst.where}"
    message = f"no slice loses more than {promote.max_slice_loss:g} {metric}"
    if worse:
        message = f"{fall}, surely more than {promote.max_slice_loss:g}"
    elif beyond:
        message = f"no slice surely loses more than {promote.max_slice_loss:g} {metric} ({fall}: not sure)"
    return _gate("slices", not worse, f"largest loss {worst.mean:.4f}: {worst.where}", expected, message + unjudged)


def _unjudged(evaluation: Evaluation) -> str:
    """Return what follows the sentence about slices where some say too little."""
    slices = evaluation.slice_differences
    short = [item.evidence for item in slices if is_short(item.evidence)]
    if not short:
        return ""
    scarcest = min(short, key=lambda evidence: evidence.effective / evidence.needed)
    return f"; {len(short)} of {len(slices)} slices not judged (one has {describe_shortage(scarcest)})"


def _message(plan: Plan, verdict: Verdict, gates: tuple[Gate, ...]) -> str:
    messages = {gate.gate: gate.message for gate in gates}
    if verdict == "promote":
        found = {gate.gate: gate.found for gate in gates}
        if "no champion" in messages["gain"]:
            return f"Promoted: the first champion of {plan.model}; {messages['floor']}."
        if found["gain"] == NO_COMPARISON:
            return f"Promoted: {messages['floor']}; {messages['gain']}."
        return f"Promoted: {messages['gain']}; {messages['slices']}."
    failed = [gate.message for gate in gates if not gate.passed and gate.gate != "mode"]
    if verdict == "record":
        rest = f"it would not be promoted: {'; '.join(failed)}" if failed else f"{messages['floor']}"
        return f"Recorded as of {plan.as_of:%Y-%m-%d} (a backfill deploys nothing): {rest}."
    return f"Rejected: {'; '.join(failed)}."


def _gate(gate: GateName, passed: bool, found: str, expected: str, message: str) -> Gate:
    return Gate(gate=gate, passed=passed, found=found, expected=expected, message=message)


def champion_of(
    version_name: str, version_id: str, model_uri: str, run_key: str, report: Report | None = None
) -> Champion:
    """Return the champion as the registry knows it, for `requests.evaluation_job`.

    Args:
        version_name: `projects/…/models/<id>@<version>`.
        version_id: Of the version that carries the alias.
        model_uri: Its SavedModel.
        run_key: Its label `retraining-run`.
        report: Of that run's training; None: it is gone.

    Raises:
        ContractError: The label is no run key.
    """
    return Champion(
        model_uri=model_uri,
        version_name=version_name,
        version_id=version_id,
        run_key=run_key,
        as_of=RunKey.parse(run_key).as_of,
        signature=report.signature if report else None,
        model_digest=report.model_digest if report else None,
    )


def threshold_sentence(scores: ThresholdScores | None) -> str:
    """Return what follows the decision's own sentence; empty where the spec has no threshold."""
    if scores is None:
        return ""
    if scores.threshold is None or scores.challenger is None:
        return f" No threshold: {scores.message}."
    rates = (("precision", scores.challenger.precision), ("recall", scores.challenger.recall))
    found = ", ".join(f"{name} {rate.value:.3f}" if rate else f"no {name}" for name, rate in rates)
    return f" At threshold {scores.threshold:.3g}: {found}."
