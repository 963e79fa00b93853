"""Smoke requests as an endpoint takes them, and how far its answers are from the stored model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeGuard

from retraining.core.documents import Report, SmokeTest
from retraining.core.documents.document import DELETE_IT
from retraining.core.documents.training import EncodedBytes, Golden
from retraining.core.errors import ContractError, JobError
from retraining.core.spec.features import OUTPUT_NAMES, Feature
from retraining.core.spec.training import Precision

_TOLERANCES: Mapping[Precision, float] = {"float32": 1e-5, "mixed_float16": 1e-2, "mixed_bfloat16": 1e-2}
"""By what layers compute in. Sums differ by the order that a batch's size, a machine or a release of TensorFlow has;
measured in docs/evaluation.md."""

MISSING_TIME = -(10**18)
"""What a request has for a time that is missing, as the trainer's models read it."""

ASK_FOR = timedelta(minutes=10)
MOST_ASKED = 2000
"""A model that has 1 % of the traffic then gave fewer than `ENOUGH` answers once in two million times."""

ENOUGH = 3
"""Answers of the new version that are compared: a version has several machines."""


def instances(smoke_requests: Sequence[Golden], features: Sequence[Feature]) -> list[dict[str, object]]:
    """Return the JSON values of requests: bytes in base64; a missing number is NaN, anything else missing is empty."""
    kinds = {feature.name: feature.kind for feature in features}
    return [
        {name: _as_sent(value, kinds.get(name)) for name, value in item.instance.items()} for item in smoke_requests
    ]


def tolerance(precision: Precision) -> float:
    """Return how far two answers of one model may be apart: of probabilities, or of the largest number."""
    return _TOLERANCES[precision]


def distance(prediction: object, expected: float | Sequence[float]) -> float:
    """Return the largest distance between an endpoint's answer and the stored model's: of the score, or of any class's.

    Raises:
        ContractError: The answer has another form.
    """
    if not isinstance(expected, Sequence):
        return abs(_number(prediction) - expected)
    answer = _only(prediction)
    if not _is_list(answer) or len(answer) != len(expected):
        raise _other_form(prediction, f"{len(expected)} scores per instance")
    return max(abs(_number(one) - other) for one, other in zip(answer, expected, strict=True))


def require_same_answers(
    endpoint_name: str,
    predictions: Sequence[object],
    smoke_requests: Sequence[Golden],
    *,
    numbers: bool = False,
    precision: Precision = "float32",
) -> SmokeTest:
    """Hold an endpoint's answers against the stored model's own.

    Args:
        endpoint_name: For the message.
        predictions: What it answered, in the order of the requests.
        smoke_requests: The requests with the model's own answers.
        numbers: Whether the answers are numbers in a unit of their own, and not probabilities.
        precision: In which the model's layers compute.

    Raises:
        ContractError: They differ by more than the `tolerance` (of the largest answer, with numbers), or have another
            form.
    """
    pairs = list(zip(predictions, smoke_requests, strict=True))
    for prediction, request in pairs:
        _require_same_key(endpoint_name, prediction, request)
    worst = max(distance(prediction, request.prediction) for prediction, request in pairs)
    most = tolerance(precision) * (_largest(smoke_requests) if numbers else 1)
    if not worst <= most:
        raise ContractError(
            endpoint_name,
            f"answers that differ from the saved model's by up to {worst:.3g}",
            f"at most {most:g}",
            "What served before serves again. Compare the serving image's TensorFlow with the trainer's",
        )
    return SmokeTest(requests=len(smoke_requests), max_abs_error=worst)


def _require_same_key(endpoint_name: str, prediction: object, request: Golden) -> None:
    """Refuse an answer that gives another key back than the request's."""
    if not isinstance(prediction, Mapping):
        return
    for name in prediction.keys() & request.instance.keys():
        if prediction[name] != request.instance[name]:
            raise ContractError(
                endpoint_name,
                f"the {name} {prediction[name]!r} in the answer to {request.instance[name]!r}",
                "the same",
                "What served before serves again. Look at the signature: the key goes through untouched",
            )


def _largest(smoke_requests: Sequence[Golden]) -> float:
    """Return the size of the largest answer; 1 where all are 0."""
    expected = [request.prediction for request in smoke_requests]
    numbers = [number for one in expected for number in (one if isinstance(one, Sequence) else (one,))]
    return max(map(abs, numbers)) or 1


def require_requests(report: Report, report_uri: str) -> None:
    """Refuse a training report without requests: no endpoint could be proven right. Asked before a machine is paid for.

    Raises:
        ContractError: It has none.
    """
    if not report.golden:
        raise ContractError(report_uri, "no golden requests", "some", DELETE_IT)


def worst_of(tests: Sequence[SmokeTest], asked: int) -> SmokeTest:
    """Return what several answers of the new version to the same requests come to.

    Args:
        tests: One per answer.
        asked: How often the endpoint was asked for them.
    """
    worst = max(tests, key=lambda test: test.max_abs_error)
    return worst.model_copy(update={"answers": len(tests), "asked": asked})


def refusal(error: ContractError) -> str:
    """Return in words why a version whose answers were wrong in its staging is not deployed."""
    return (
        f"Nothing deployed: {error.where} gives {error.found}, where {error.expected} was expected. "
        "What serves was not touched. Compare the serving image's TensorFlow with the trainer's."
    )


def too_few_answers(endpoint_name: str, answers: int, asked: int, expected: str, percent: int) -> JobError:
    """Return the failure of an endpoint that sends too few requests to a version."""
    found = f"{answers} of {asked} requests were answered by deployed model {expected}, which has {percent} % of them"
    return JobError(endpoint_name, found, f"{ENOUGH}, to compare them", "Look at the endpoint, clear the deploy task")


def _as_sent(value: object, kind: str | None) -> object:
    if isinstance(value, EncodedBytes):
        return {"b64": value.b64}
    if isinstance(value, tuple):
        return [float("nan") if item is None else item for item in value]
    if value is not None:
        return value
    if kind == "time":
        return MISSING_TIME
    return float("nan") if kind in (None, "numeric", "sequence") else ""


def _number(prediction: object) -> float:
    """Return the score of one prediction: a number, or a mapping or list with one."""
    answer = _only(prediction)
    if _is_list(answer) and len(answer) == 1:
        return _number(answer[0])
    if isinstance(answer, int | float):
        return float(answer)
    raise _other_form(prediction, "one number per instance")


def _only(prediction: object) -> object:
    """Return what a mapping holds as the label's output, beside those of auxiliary labels, or as the only one."""
    if not isinstance(prediction, Mapping):
        return prediction
    own = [name for name in prediction if name in OUTPUT_NAMES or len(prediction) == 1]
    return prediction[own[0]] if own else prediction


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _other_form(prediction: object, expected: str) -> ContractError:
    return ContractError("endpoint", f"the prediction {prediction!r}", expected, "Look at the signature")
