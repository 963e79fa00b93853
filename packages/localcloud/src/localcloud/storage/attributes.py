"""What is kept of an object and of a bucket beside bytes and name, and the resources of the JSON API made of it.

In: JSON that came with a call. Out: attributes that are kept; resources
(https://cloud.google.com/storage/docs/json_api/v1/objects, …/buckets). An unknown field is refused by name, and one
that the local cloud would have to act on, and does not, too: `fields.json` says what becomes of each.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from localcloud.fields import read_fields
from localcloud.storage.calls import Document
from localcloud.storage.refusals import RefusedError

FIELDS = read_fields(Path(__file__).with_name("fields.json"))
"""What becomes of each field and parameter."""
BASE = "https://www.googleapis.com/storage/v1"
DEFAULT_TYPE = "application/octet-stream"
"""Of content that came without a type; also what content is served as that was composed without one."""
_TEXTS = (
    *("contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl"),
    *("storageClass", "customTime"),
)
_CLASSES = {
    *("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"),
    *("MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY"),
}
_LISTED_CLASSES = "one of STANDARD, NEARLINE, COLDLINE and ARCHIVE"
_ADDRESS = {"name", "bucket"}
_SUMS = {"md5Hash", "crc32c"}
_MOST_LABELS = 64
_LABEL = re.compile(r"[\w-]{0,63}")


def read_attributes(resource: Mapping[str, Any], *, with_nulls: bool = False) -> Document:
    """Return what is kept of an object's metadata.

    Args:
        with_nulls: Keep nulls, which take a field away in a patch.

    Raises:
        RefusedError: A field is unknown, not offered, or of another type.
    """
    kept = check_fields(resource, "Object")
    kept = {name: value for name, value in kept.items() if name not in {*_ADDRESS, *_SUMS}}
    for name in _TEXTS:
        if not isinstance(kept.get(name), str | None):
            raise RefusedError(400, f"Invalid value for {name}: expected a string.")
    _check_class(kept)
    if kept.get("customTime") is not None:
        read_time("customTime", kept["customTime"])
    own = kept.get("metadata") or {}
    if not isinstance(own, dict) or not all(isinstance(value, str | None) for value in own.values()):
        raise RefusedError(400, "Invalid value for metadata: expected strings by name.")
    return kept if with_nulls else {name: value for name, value in kept.items() if value is not None}


def merge(old: Document, patch: Document) -> Document:
    """Return attributes after a patch: what is null goes, and metadata is merged by name."""
    merged = {**old, **patch}
    if isinstance(patch.get("metadata"), dict):
        own = {**(old.get("metadata") or {}), **patch["metadata"]}
        merged["metadata"] = {name: value for name, value in own.items() if value is not None}
    return {name: value for name, value in merged.items() if value is not None}


def read_bucket(resource: Mapping[str, Any]) -> Document:
    """Return what is kept of a bucket's metadata, nulls too.

    Raises:
        RefusedError: A field is unknown, not offered, or of another type.
    """
    kept = check_fields(resource, "Bucket")
    _check_class(kept)
    versioning = kept.get("versioning") or {}
    if not isinstance(versioning, dict) or not isinstance(versioning.get("enabled"), bool | None):
        raise RefusedError(400, "Invalid value for versioning: expected {'enabled': true} or {'enabled': false}.")
    prevention = (kept.get("iamConfiguration") or {}).get("publicAccessPrevention")
    if prevention not in (None, "inherited", "enforced"):
        found = str(prevention)[:100]
        raise RefusedError(400, f"Invalid value for publicAccessPrevention: {found!r}. Expected inherited or enforced.")
    labels = kept.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str | None) for value in labels.values()):
        raise RefusedError(400, "Invalid value for labels: expected strings by name.")
    wrong = [name for name, value in labels.items() if not name or not (_is_label(name) and _is_label(value or ""))]
    if wrong or len(labels) > _MOST_LABELS:
        found = f"label {wrong[0][:100]!r}" if wrong else f"{len(labels)} labels"
        limits = f"at most {_MOST_LABELS}, each of up to 63 lower-case letters, digits, _ and - in key and value"
        raise RefusedError(400, f"Invalid value for labels: {found}. Expected {limits}.")
    return {name: value for name, value in kept.items() if name not in _ADDRESS}


def merge_bucket(old: Document, patch: Document) -> Document:
    """Return a bucket's attributes after a patch: labels are merged by name."""
    merged = {**old, **patch}
    if isinstance(patch.get("labels"), dict):
        labels = {**(old.get("labels") or {}), **patch["labels"]}
        merged["labels"] = {name: value for name, value in labels.items() if value is not None}
    return {name: value for name, value in merged.items() if value is not None}


def time_text(microseconds: int) -> str:
    """Return a time as the JSON API writes it."""
    moment = dt.datetime.fromtimestamp(microseconds / 1_000_000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def object_address(bucket: str, name: str) -> str:
    """Return an object's address in the JSON API."""
    return f"{BASE}/b/{bucket}/o/{quote(name, safe='')}"


def check_fields(resource: Mapping[str, Any], kind: str) -> Document:
    """Return what is kept or held of a resource.

    Args:
        kind: A resource of `fields.json`.

    Raises:
        RefusedError: A field is unknown, or refused.
    """
    table = FIELDS.resources[kind]
    for problem in table.problems(resource):
        if problem.rule is not None:
            reason = problem.rule.reason
            raise RefusedError(501, f"{kind}.{problem.path} is not offered by the local cloud: {reason}. Leave it out.")
        hint = f" Did you mean {problem.close!r}?" if problem.close else ""
        raise RefusedError(400, f"Unknown field {problem.path[:100]!r} of {kind}.{hint}")
    return table.kept(resource)


def check_address(resource: Mapping[str, Any], **address: str) -> None:
    """Let a resource pass that is the one of its call's address.

    Args:
        **address: Bucket or name, as the address says it.

    Raises:
        RefusedError: It says another one.
    """
    for name, expected in address.items():
        if resource.get(name) not in (None, "", expected):
            found = str(resource[name])[:100]
            raise RefusedError(400, f"Value {found!r} of {name} does not agree with {expected[:100]!r} of the address.")


def read_time(name: str, text: str) -> dt.datetime:
    """Read a time of RFC 3339.

    Raises:
        RefusedError: It is none.
    """
    try:
        moment: dt.datetime | None = dt.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise RefusedError(400, f"Invalid value for {name}: {text[:100]!r}. Expected a time of RFC 3339.")
    return moment


def check_custom_time(old: Document, new: Document) -> None:
    """Let attributes pass whose custom time is not taken away nor set to an earlier one.

    Raises:
        RefusedError: It is.
    """
    before, after = old.get("customTime"), new.get("customTime")
    if before and (not after or read_time("customTime", after) < read_time("customTime", before)):
        raise RefusedError(400, "The customTime of an object cannot be removed, nor be set to an earlier time.")


def _check_class(kept: Document) -> None:
    found = kept.get("storageClass")
    if found is not None and found not in _CLASSES:
        raise RefusedError(400, f"Invalid value for storageClass: {str(found)[:100]!r}. Expected {_LISTED_CLASSES}.")


def _is_label(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None and text == text.lower()
