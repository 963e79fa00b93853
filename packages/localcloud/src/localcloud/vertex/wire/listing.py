"""Lists as the service gives them: filtered, ordered, masked, in pages.

Comes in: all candidates (newest first) and a list request. Goes out: one page and the token of the next.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence

from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.filters import compile_filter, everything
from localcloud.vertex.wire.methods import Message, raw

DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000
JOB_FIELDS = {"display_name": "display_name", "state": "state", "create_time": "create_time", "labels": "labels"}
PIPELINE_FIELDS = {**JOB_FIELDS, "training_task_definition": "training_task_definition"}
MODEL_FIELDS = {"model": "#id", "display_name": "display_name", "labels": "labels"}
VERSION_FIELDS = {"labels": "labels"}
ENDPOINT_FIELDS = {"endpoint": "#id", "display_name": "display_name", "labels": "labels"}
CONTEXT_FIELDS = {
    **{name: name for name in ("name", "display_name", "schema_title", "create_time", "update_time", "labels")},
    "parent_contexts": "[]parent_contexts",
}
ARTIFACT_FIELDS = {
    name: name for name in ("name", "display_name", "schema_title", "create_time", "update_time", "labels", "uri")
}
TENSORBOARD_FIELDS = {name: name for name in ("display_name", "create_time", "update_time", "labels")}
ORDER_FIELDS = ("display_name", "create_time", "update_time")


def list_page(
    items: Sequence[Message], request: Message, fields: Mapping[str, str], *, times: str = ""
) -> tuple[list[Message], str]:
    """Return one page of a list.

    Args:
        items: Every resource under the parent, newest first.
        request: A list request: filter, page_size, page_token, and order_by and read_mask where its type has them.
        fields: Names that its filter may use (see `filters.compile_filter`).
        times: What stands before the names of the times that it is ordered by (`version_`).

    Returns:
        The page, and the token of the next one ("" at the end).

    Raises:
        InvalidArgument: A bad filter, order, size, or a token of another list.
    """
    inner = raw(request)
    keep = compile_filter(inner.filter, fields) if "filter" in inner.DESCRIPTOR.fields_by_name else everything
    chosen = _sorted_by([item for item in items if keep(item)], getattr(inner, "order_by", ""), times)
    size = _page_size(inner.page_size)
    start = _start(chosen, inner)
    page = chosen[start : start + size]
    more = start + size < len(chosen)
    token = _write_token(inner, page[-1], start + size) if more else ""
    return [_masked(item, inner) for item in page], token


def _page_size(size: int) -> int:
    if size < 0:
        raise InvalidArgument(
            f"page_size is {size}. Expected 0 (the default of {DEFAULT_PAGE_SIZE}) or more.", field="page_size"
        )
    return min(size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)


def _sorted_by(items: list[Message], order_by: str, times: str) -> list[Message]:
    for field, *direction in reversed([part.split() for part in order_by.split(",") if part.strip()]):
        if field not in ORDER_FIELDS or direction not in ([], ["asc"], ["desc"]):
            expected = f"a list of {', '.join(ORDER_FIELDS)}, each with or without desc"
            raise InvalidArgument(f"Invalid order_by {order_by!r}. Expected {expected}.", field="order_by")
        attribute = times + field if field.endswith("_time") else field
        items = sorted(items, key=functools.partial(_sort_key, attribute=attribute), reverse=direction == ["desc"])
    return items


def _sort_key(item: Message, attribute: str) -> str | int:
    value = getattr(raw(item), attribute)
    return value if isinstance(value, str) else int(value.ToNanoseconds())


def _fingerprint(inner: Message) -> str:
    parts = [getattr(inner, name, "") for name in ("parent", "name", "filter", "order_by")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _identity(item: Message) -> str:
    inner = raw(item)
    return f"{inner.name}@{getattr(inner, 'version_id', '')}"


def _write_token(inner: Message, last: Message, position: int) -> str:
    token = {"list": _fingerprint(inner), "last": _identity(last), "position": position}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def _start(items: Sequence[Message], inner: Message) -> int:
    if not inner.page_token:
        return 0
    try:
        token = json.loads(base64.urlsafe_b64decode(inner.page_token))
        same, last, position = token["list"] == _fingerprint(inner), token["last"], int(token["position"])
    except (ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise InvalidArgument(
            "The page token is not of this list. Expected next_page_token of a call with the same parent,"
            " filter and order.",
            field="page_token",
        )
    # New resources come in at the front meanwhile: go on behind the last one seen, not at its old position.
    return next((i + 1 for i, item in enumerate(items) if _identity(item) == last), position)


def _masked(item: Message, inner: Message) -> Message:
    mask = getattr(inner, "read_mask", None)
    if mask is None or not mask.paths or "*" in mask.paths:
        return item
    if not mask.IsValidForDescriptor(raw(item).DESCRIPTOR):
        raise InvalidArgument(
            f"read_mask {list(mask.paths)} names a field that {raw(item).DESCRIPTOR.name} does not have.",
            field="read_mask",
        )
    kind = type(item)
    result = kind()
    mask.MergeMessage(raw(item), raw(result))
    return result
