"""The parameters of a call's address, each of them known by name.

In: a query. Out: one value for each name. A name that its method does not know is refused (`fields.json`), and so is
one that is given twice with two values: what is looked at is what is done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from localcloud.storage.attributes import FIELDS
from localcloud.storage.calls import Conditions, Listing
from localcloud.storage.refusals import RefusedError

Query = Mapping[str, str]
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_PAGE = 1000


def read_query(text: str) -> dict[str, str]:
    """Read a query, whichever call it belongs to.

    Raises:
        RefusedError: A parameter is given twice, or is no UTF-8.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise RefusedError(400, "Invalid query: expected at most 100 parameters in UTF-8.") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        if query.setdefault(name, value) != value:
            raise RefusedError(400, f"The parameter {name} is given twice, with two values. Expected one.")
    return query


def check_query(query: Query, method: str) -> None:
    """Let parameters pass that a method has, and that the local cloud does not refuse.

    Raises:
        RefusedError: One is unknown to the method, or refused.
    """
    for name, value in query.items():
        rule = FIELDS.parameter(method, name)
        if rule is None:
            raise RefusedError(400, f"Unknown parameter {name[:100]!r} of {method}. Leave it out.")
        if not rule.takes("" if value.lower() == "false" else value):
            message = (
                f"The parameter {name} of {method} is not offered by the local cloud: {rule.reason}. Leave it out."
            )
            raise RefusedError(501, message)


def read_integer(query: Query, name: str) -> int | None:
    """Read an integer of 64 bits; None for a parameter that is not given.

    Raises:
        RefusedError: It is none.
    """
    text = query.get(name)
    if text is None:
        return None
    if not _INTEGER.fullmatch(text) or abs(int(text)) >= 2**63:
        raise RefusedError(400, f"Invalid value for {name}: expected a 64-bit integer.")
    return int(text)


def read_conditions(query: Query, fields: Mapping[str, str], *, of: str = "") -> Conditions:
    """Read preconditions; `of="Source"` reads those of a copy's source."""
    return Conditions(
        generation=read_integer(query, f"if{of}GenerationMatch"),
        not_generation=read_integer(query, f"if{of}GenerationNotMatch"),
        metageneration=read_integer(query, f"if{of}MetagenerationMatch"),
        not_metageneration=read_integer(query, f"if{of}MetagenerationNotMatch"),
        etag=None if of else _etag(fields.get("if-match")),
        not_etag=None if of else _etag(fields.get("if-none-match")),
    )


def _etag(value: str | None) -> str | None:
    return None if value is None else value.strip().removeprefix("W/").strip('"')


def read_listing(query: Query) -> Listing:
    """Read what a list asks for.

    Raises:
        RefusedError: `maxResults` is no number of objects.
    """
    most = query.get("maxResults") or str(_PAGE)
    if not re.fullmatch(r"[0-9]{1,9}", most):
        raise RefusedError(400, f"Invalid unsigned integer value: {most[:100]!r}.")
    return Listing(
        prefix=query.get("prefix", ""),
        delimiter=query.get("delimiter", ""),
        start=query.get("startOffset", ""),
        end=query.get("endOffset", ""),
        glob=query.get("matchGlob"),
        keeps_placeholders=query.get("includeTrailingDelimiter", "").lower() == "true",
        versions=query.get("versions", "").lower() == "true",
        most=min(int(most) or _PAGE, _PAGE),
        token=query.get("pageToken", ""),
    )
