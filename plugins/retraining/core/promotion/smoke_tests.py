"""Golden requests as an endpoint takes them, and how far its answers are from the stored model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retraining.core.documents.training import EncodedBytes, Golden
from retraining.core.errors import ContractError
from retraining.core.spec.features import Feature


def instances(golden: Sequence[Golden], features: Sequence[Feature]) -> list[dict[str, object]]:
    """JSON values of requests: bytes in base64; a missing number is NaN, anything else missing is empty."""
    kinds = {feature.name: feature.kind for feature in features}
    return [{name: _as_sent(value, kinds.get(name)) for name, value in item.instance.items()} for item in golden]


def distance(said: object, expected: float | Sequence[float]) -> float:
    """Largest distance between an endpoint's answer and the stored model's: of the score, or of any class's.

    Raises:
        ContractError: The answer has another form.
    """
    if not isinstance(expected, Sequence):
        return abs(_number(said) - expected)
    found = _only(said)
    if not _is_list(found) or len(found) != len(expected):
        raise _other_form(said, f"{len(expected)} scores per instance")
    return max(abs(_number(one) - other) for one, other in zip(found, expected, strict=True))


def _as_sent(value: object, kind: str | None) -> object:
    if isinstance(value, EncodedBytes):
        return {"b64": value.b64}
    if isinstance(value, tuple):
        return [float("nan") if item is None else item for item in value]
    if value is not None:
        return value
    return "" if kind in ("categorical", "image", "text") else float("nan")


def _number(said: object) -> float:
    """The score of one prediction: a number, or a mapping or list with one."""
    found = _only(said)
    if _is_list(found) and len(found) == 1:
        return _number(found[0])
    if isinstance(found, int | float):
        return float(found)
    raise _other_form(said, "one number per instance")


def _only(said: Any) -> Any:  # noqa: ANN401 - any JSON value
    """What a mapping of one output holds."""
    return next(iter(said.values())) if isinstance(said, Mapping) and len(said) == 1 else said


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _other_form(said: object, expected: str) -> ContractError:
    return ContractError("endpoint", f"the prediction {said!r}", expected, "Look at the signature")
