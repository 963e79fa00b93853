"""JSON text, read strictly: UTF-8, finite numbers, whole numbers of at most 64 bits, a bounded depth, no key twice.

Comes in: the bytes of a document. Goes out: its value, or a ValueError that says why it is none. What Python's
reader takes beyond that (NaN, 1e999 as infinity, a thousand levels) ends in an error far from here.

Copied by `make contracts` from `retraining.core.documents.json_text`; do not edit.
"""

from __future__ import annotations

import json
import math
import re

_MAX_DIGITS = 21  # of 2^64, with its sign
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
MAX_LEVELS = 100
MAX_INTEGER = 2**64


def read_json(data: bytes | str, *, finite: bool = True) -> object:
    """Return a JSON value, as RFC 8259 has them and within the limits above.

    Args:
        data: Its text.
        finite: False: also take NaN and infinity, which a model may answer.

    Raises:
        ValueError: It is none; says why.
    """
    number = _number if finite else float
    text = data if isinstance(data, str) else data.decode("utf-8")
    try:
        value: object = json.loads(
            text, parse_int=_integer, parse_float=number, parse_constant=number, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError(f"more than {MAX_LEVELS} levels") from None
    if _is_too_deep(value):
        raise ValueError(f"more than {MAX_LEVELS} levels")
    if _HALF_CHARACTER.search(text):
        json.dumps(value, ensure_ascii=False).encode()  # a half that is alone is no text: UnicodeEncodeError
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise ValueError(f"the key {ascii(twice)[:80]} twice in one object")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS or abs(int(digits)) > MAX_INTEGER:
        raise ValueError(f"a whole number of {len(digits)} digits, beyond 2^64")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}, which is not finite")
    return value


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS + 1):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
