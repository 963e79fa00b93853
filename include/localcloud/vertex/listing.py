"""Lists as the service gives them: filtered, ordered, masked, in pages.

Comes in: all candidates (newest first) and a list request. Goes out: one page and the token of the next.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.vertex.errors import InvalidArgument
from localcloud.vertex.filters import compile_filter
from localcloud.vertex.methods import raw

DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000
JOB_FIELDS = {"display_name": "display_name", "state": "state", "create_time": "create_time", "labels": "labels"}
MODEL_FIELDS = {"model": "#id", "display_name": "display_name", "labels": "labels"}
VERSION_FIELDS = {"labels": "labels"}
ENDPOINT_FIELDS = {"endpoint": "#id", "display_name": "display_name", "labels": "labels"}
ORDER_FIELDS = ("display_name", "create_time", "update_time")


def list_page(items: Sequence[Any], request: Any, fields: Mapping[str, str]) -> tuple[list[Any], str]:
    """One page of a list.

    Args:
        items: Every resource under the parent, newest first.
        request: A list request: filter, page_size, page_token, and order_by and read_mask where its type has them.
        fields: Names that its filter may use (see `filters.compile_filter`).

    Returns:
        The page, and the token of the next one ("" at the end).

    Raises:
        InvalidArgument: A bad filter, order, size, or a token of another list.
    """
    inner = raw(request)
    keep = compile_filter(inner.filter, fields) if "filter" in inner.DESCRIPTOR.fields_by_name else lambda message: True
    chosen = _ordered([item for item in items if keep(item)], getattr(inner, "order_by", ""))
    size = _page_size(inner.page_size)
    start = _start(chosen, inner)
    page = chosen[start : start + size]
    more = start + size < len(chosen)
    token = _write_token(inner, page[-1], start + size) if more else ""
    return [_masked(item, inner) for item in page], token


def _page_size(size: int) -> int:
    if size < 0:
        raise InvalidArgument(f"page_size is {size}. Expected 0 (the default of {DEFAULT_PAGE_SIZE}) or more.", field="page_size")
    return min(size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)


def _ordered(items: list[Any], order_by: str) -> list[Any]:
    for term in reversed([part.split() for part in order_by.split(",") if part.strip()]):
        if term[0] not in ORDER_FIELDS or term[1:] not in ([], ["asc"], ["desc"]):
            raise InvalidArgument(f"Invalid order_by {order_by!r}. Expected a list of {', '.join(ORDER_FIELDS)}, each with or without desc.", field="order_by")
        items = sorted(items, key=lambda item: _sort_key(item, term[0]), reverse=term[1:] == ["desc"])  # noqa: B023 - used at once
    return items


def _sort_key(item: Any, field: str) -> Any:
    value = getattr(raw(item), field)
    return value if isinstance(value, str) else value.ToNanoseconds()


def _fingerprint(inner: Any) -> str:
    parts = [getattr(inner, name, "") for name in ("parent", "name", "filter", "order_by")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _identity(item: Any) -> str:
    inner = raw(item)
    return f"{inner.name}@{getattr(inner, 'version_id', '')}"


def _write_token(inner: Any, last: Any, position: int) -> str:
    token = {"list": _fingerprint(inner), "last": _identity(last), "position": position}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def _start(items: Sequence[Any], inner: Any) -> int:
    if not inner.page_token:
        return 0
    try:
        token = json.loads(base64.urlsafe_b64decode(inner.page_token))
        same, last, position = token["list"] == _fingerprint(inner), token["last"], int(token["position"])
    except (ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise InvalidArgument("The page token is not of this list. Expected next_page_token of a call with the same parent, filter and order.", field="page_token")
    # New resources come in at the front meanwhile: go on behind the last one seen, not at its old position.
    return next((i + 1 for i, item in enumerate(items) if _identity(item) == last), position)


def _masked(item: Any, inner: Any) -> Any:
    mask = getattr(inner, "read_mask", None)
    if mask is None or not mask.paths or "*" in mask.paths:
        return item
    if not mask.IsValidForDescriptor(raw(item).DESCRIPTOR):
        raise InvalidArgument(f"read_mask {list(mask.paths)} names a field that {raw(item).DESCRIPTOR.name} does not have.", field="read_mask")
    kind = type(item)
    result = kind()
    mask.MergeMessage(raw(item), raw(result))
    return result
