"""What is kept of an object and of a bucket beside bytes and name, and the resources of the JSON API made of it.

In: JSON that came with a call. Out: attributes that are kept; resources
(https://cloud.google.com/storage/docs/json_api/v1/objects, …/buckets). An unknown field is refused by name, and one
that the local cloud would have to act on, and does not, too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from localcloud.storage.calls import Document
from localcloud.storage.refusals import RefusedError

BASE = "https://www.googleapis.com/storage/v1"
_TEXTS = (
    *("contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl"),
    *("storageClass", "customTime"),
)
_OBJECT_FIELDS = {*_TEXTS, "metadata"}
# What the service fills in, or what has no effect without access control of single objects.
_OBJECT_OUTPUT = {
    *("kind", "id", "selfLink", "mediaLink", "name", "bucket", "generation", "metageneration", "size", "etag"),
    *("md5Hash", "crc32c", "timeCreated", "updated", "timeStorageClassUpdated", "timeFinalized", "timeDeleted"),
    *("componentCount", "owner", "acl", "retentionExpirationTime", "softDeleteTime", "hardDeleteTime", "restoreToken"),
}
_OBJECT_OFF = {"kmsKeyName", "customerEncryption", "eventBasedHold", "temporaryHold", "retention", "contexts"}
_BUCKET_FIELDS = {
    *("labels", "storageClass", "location", "lifecycle", "cors", "website", "iamConfiguration", "softDeletePolicy"),
    *("billing", "logging", "rpo", "autoclass", "customPlacementConfig", "defaultEventBasedHold", "acl"),
    *("defaultObjectAcl", "encryption", "versioning", "hierarchicalNamespace", "ipFilter"),
}
_BUCKET_OUTPUT = {
    *("kind", "id", "selfLink", "name", "projectNumber", "metageneration", "etag", "timeCreated", "updated", "owner"),
    *(
        "locationType",
        "satisfiesPZS",
        "satisfiesPZI",
        "generation",
        "softDeleteTime",
        "hardDeleteTime",
        "requesterPays",
    ),
    *("objectRetention", "project"),
}
_VERSIONING = "Object versioning is not offered by the local cloud. Leave `versioning` out, or set it to false."


def read_attributes(resource: Mapping[str, Any], *, with_nulls: bool = False) -> Document:
    """Return what is kept of an object's metadata.

    Args:
        with_nulls: Keep nulls, which take a field away in a patch.

    Raises:
        RefusedError: A field is unknown, not offered, or of another type.
    """
    _refuse_unknown(resource, _OBJECT_FIELDS | _OBJECT_OUTPUT | _OBJECT_OFF, "an object")
    for name in sorted(_OBJECT_OFF & resource.keys()):
        if resource[name] not in (None, False, "", {}):
            raise RefusedError(501, f"An object's {name} is not offered by the local cloud. Leave it out.")
    kept = {name: value for name, value in resource.items() if name in _OBJECT_FIELDS}
    for name in _TEXTS:
        if not isinstance(kept.get(name), str | None):
            raise RefusedError(400, f"Invalid value for {name}: expected a string.")
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
    _refuse_unknown(resource, _BUCKET_FIELDS | _BUCKET_OUTPUT | {"retentionPolicy"}, "a bucket")
    versioning = resource.get("versioning")
    if isinstance(versioning, dict) and versioning.get("enabled"):
        raise RefusedError(501, _VERSIONING)
    for name in ("retentionPolicy", "hierarchicalNamespace"):
        if (resource.get(name) or {}) not in ({}, {"enabled": False}):
            raise RefusedError(501, f"A bucket's {name} is not offered by the local cloud. Leave it out.")
    labels = resource.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str | None) for value in labels.values()):
        raise RefusedError(400, "Invalid value for labels: expected strings by name.")
    return {name: value for name, value in resource.items() if name in _BUCKET_FIELDS}


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


def _refuse_unknown(resource: Mapping[str, Any], known: set[str], what: str) -> None:
    for name in resource:
        if name not in known:
            close = next((each for each in sorted(known) if each.lower() == name.lower()), None)
            hint = f" Did you mean {close!r}?" if close else ""
            raise RefusedError(400, f"Unknown field {name[:100]!r} of {what}.{hint}")
