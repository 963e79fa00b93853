"""Whether the challenger answers, as serving loads it, what it was judged by: a gate of the decision."""

from __future__ import annotations

from retraining.core.documents.answers import ServedAnswers, Serving
from retraining.core.documents.evaluation import Gate
from retraining.core.documents.plan import Plan
from retraining.core.promotion.smoke_tests import tolerance

_MOST_NAMED = 5
NOT_CHECKED = "not checked"
"""What the gate `serving` finds where the job could not ask the model as serving loads it."""


def serving_gate(plan: Plan, serving: Serving) -> Gate:
    """Return the gate of what the evaluation job found when it asked the model as an endpoint does.

    How long it took decides nothing: on the job's machine, without network, that is only a hint. The ramp judges it.
    """
    most = tolerance(plan.spec.training.precision)
    expected = f"the spec's signature, the judge's scores to {most:g}, and a finite answer to every request"
    if serving.skipped:
        message = f"it is not checked as serving loads it: {serving.skipped}"
        return Gate(gate="serving", passed=True, found=NOT_CHECKED, expected=expected, message=message)
    answers = [item for item in (serving.single, serving.together) if item]
    faults = [
        *([f"it cannot be asked ({serving.problem})"] if serving.problem else []),
        *([f"its signature has {_listed(serving.signature)}"] if serving.signature else []),
        *(fault for item in answers for fault in _faults(item, most)),
        *([f"no finite answer to {_listed(serving.unanswered)}"] if serving.unanswered else []),
    ]
    errors = [item.max_error for item in answers if item.max_error is not None]
    found = f"largest error {max(errors):.2g}" if errors else "no answers"
    if faults:
        message = f"as serving loads it, {'; '.join(faults)}"
        return Gate(gate="serving", passed=False, found=found, expected=expected, message=message)
    message = (
        f"as serving loads it, it answers as it was judged, alone, together, and {serving.inputs} malformed requests"
    )
    return Gate(gate="serving", passed=True, found=found, expected=expected, message=message)


def _faults(answers: ServedAnswers, most: float) -> list[str]:
    where = "requests of one row" if answers.batch == 1 else f"a request of {answers.batch} rows"
    if answers.not_finite:
        return [f"{answers.not_finite} answers to {where} are not finite, first that to key {answers.key!r}"]
    if answers.max_error is not None and answers.max_error > most:
        return [f"{where}: an answer {answers.max_error:.3g} from the judge's score, to key {answers.key!r}"]
    return []


def _listed(texts: tuple[str, ...]) -> str:
    more = f", and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return "; ".join(texts[:_MOST_NAMED]) + more
