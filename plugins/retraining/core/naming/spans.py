"""Folders of the span store by their addresses.

    gs://<results bucket>/jobs/<model>/spans/<schema hash>/<day or golden>/<fingerprint>/<file>

Earlier releases had it in gs://<bucket>/<model>/spans.

What does not lie like that is not a span, and nobody here touches it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from retraining.core.documents.plan import Plan

FROZEN_SET = "golden"
"""The frozen set's name as a span."""

MARKER = "span.json"
"""Written last by the export: with it a span is whole, without it the next run exports it."""

TOMBSTONE = "deleted.json"
"""What the marker held, while a span is being deleted: with it the deletion goes on, or is taken back."""

_PLACE = re.compile(rf"([0-9a-f]{{16}})/(\d{{4}}-\d{{2}}-\d{{2}}|{FROZEN_SET})/([0-9a-f]{{32}})")


@dataclass(frozen=True, kw_only=True)
class SpanPlace:
    """A folder of the span store. `day` is None for the frozen set."""

    uri: str
    span: str
    day: date | None
    fingerprint: str


def span_uri(spans_uri: str, span: date | str, fingerprint: str) -> str:
    """Return a span's folder in the store of a schema; `span` is a day or `FROZEN_SET`."""
    return f"{spans_uri}/{span}/{fingerprint}"


def label_span(plan: Plan, span: date) -> str:
    """Return what a span is called: its day; of examples without a time what they are for."""
    if plan.spec.data.split == "time":
        return span.isoformat()
    return "test" if span >= plan.window.test_start else "train and validation"


def marker_uri(folder_uri: str) -> str:
    """Return the address of a span's marker."""
    return f"{folder_uri}/{MARKER}"


def tombstone_uri(folder_uri: str) -> str:
    """Return the address of what a span's marker held, while it is being deleted."""
    return f"{folder_uri}/{TOMBSTONE}"


def place_of(folder_uri: str, *spans_roots: str) -> SpanPlace | None:
    """Return the span whose folder this is; None when it is no folder of the store.

    Args:
        folder_uri: Without a slash at the end.
        spans_roots: `gs://<results bucket>/jobs/<model>/spans`, and where else the store may be.
    """
    inside = next(
        (folder_uri.removeprefix(f"{root}/") for root in spans_roots if folder_uri.startswith(f"{root}/")), ""
    )
    match = _PLACE.fullmatch(inside)
    if match is None:
        return None
    try:
        day = None if match[2] == FROZEN_SET else date.fromisoformat(match[2])
    except ValueError:
        return None
    return SpanPlace(uri=folder_uri, span=match[2], day=day, fingerprint=match[3])
