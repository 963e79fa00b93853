"""What is wrong with a document, in the words of the trainer: the field, what is there, what should be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_SHOWN_ERRORS = 5
_SHOWN_CHARACTERS = 120
_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "none_required": "null",
}
_LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda limit: f"at least {limit['ge']}",
    "greater_than": lambda limit: f"above {limit['gt']}",
    "less_than_equal": lambda limit: f"at most {limit['le']}",
    "less_than": lambda limit: f"below {limit['lt']}",
    "too_short": lambda limit: f"at least {limit['min_length']} entries",
    "too_long": lambda limit: f"at most {limit['max_length']} entries",
    "string_too_short": lambda limit: f"at least {limit['min_length']} characters",
    "string_too_long": lambda limit: f"at most {limit['max_length']} characters",
    "string_pattern_mismatch": lambda limit: f"text like {limit['pattern']}",
    "literal_error": lambda limit: f"one of: {_in_json(limit['expected'])}",
    "union_tag_invalid": lambda limit: f"one of: {_in_json(limit['expected_tags'])}",
}


def describe(error: ValidationError, document: Mapping[str, Any]) -> str:
    """Return the first findings as one text, each with its path, what was found there and what was expected."""
    return "; ".join(dict.fromkeys(_describe(item, document) for item in error.errors()[:_SHOWN_ERRORS]))


def _describe(item: ErrorDetails, document: Mapping[str, Any]) -> str:
    path, value = _follow(item["loc"], document)
    if item["type"] == "missing":
        return f"{path or 'the document'} has no key {item['loc'][-1]!r}"
    if item["type"] == "union_tag_not_found":
        return f"{path} has no key 'kind'"
    if item["type"] == "extra_forbidden":
        parent, _ = _follow(item["loc"][:-1], document)
        return f"{parent or 'the document'} has the unknown key {str(item['loc'][-1])!r}"
    if item["type"] == "value_error":
        return f"{path} {item['msg'].removeprefix('Value error, ')}"
    if item["type"] == "union_tag_invalid":
        path, value = f"{path}.kind", value["kind"]
    return f"{path} is {_shorten(value)}, expected {_expectation(item)}"


def _expectation(item: ErrorDetails) -> str:
    limit = _LIMITS.get(item["type"])
    return limit(item.get("ctx", {})) if limit else _TYPES.get(item["type"], item["msg"])


def _follow(location: tuple[int | str, ...], document: Any) -> tuple[str, Any]:  # noqa: ANN401 - any JSON value
    """Return the path of a place and what is there; pydantic also names members of unions on the way: no such key."""
    path, found = "", document
    for step in location:
        if isinstance(found, dict) and step in found:
            path, found = f"{path}.{step}" if path else str(step), found[step]
        elif isinstance(found, list) and isinstance(step, int) and step < len(found):
            path, found = f"{path}[{step}]", found[step]
    return path, found


def _in_json(choices: str) -> str:
    """Return choices as JSON has them, from pydantic's `'a', 'b' or 3`."""
    return ", ".join(
        json.dumps(text) if text else other
        for text, other in re.findall(r"'([^']*)'|(\b\d+\b|\b(?:True|False)\b)", choices)
    )


def _shorten(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
