"""Rules that several resource families share: labels, display names, ids, gs:// and bq:// addresses.

Comes in: a value and the field it stands in. Goes out: findings (field, message), for `errors.found_errors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.wire.errors import found_errors

Finding = tuple[str, str]
MAX_LABELS = 64
MAX_LABEL_CHARACTERS = 63
MAX_DISPLAY_NAME = 128
# International letters are allowed, upper case is not: https://cloud.google.com/vertex-ai/docs/general/labels
_LABEL_KEY = re.compile(r"[^\W\d_A-Z][\w-]*")
_LABEL_VALUE = re.compile(r"[\w-]*")
_GCS = re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(/(?P<path>.*))?")
_BIGQUERY = re.compile(r"bq://(?P<project>[^.]+)(\.(?P<dataset>\w+)(\.(?P<table>[\w-]+))?)?")


def refuse(findings: Iterator[Finding] | list[Finding]) -> None:
    """Raise when there is any finding.

    Raises:
        InvalidArgument: It lists all of them.
    """
    refused = list(findings)
    if refused:
        raise found_errors(refused)


def check_labels(labels: Mapping[str, str], field: str) -> Iterator[Finding]:
    """At most 64 labels of lower-case letters, digits, _ and -, at most 63 of them; a key starts with a letter."""
    if len(labels) > MAX_LABELS:
        yield field, f"{len(labels)} labels were given. Expected at most {MAX_LABELS}."
    for key, value in labels.items():
        if len(key) > MAX_LABEL_CHARACTERS or not _LABEL_KEY.fullmatch(key) or key != key.lower():
            yield (
                f"{field}[{key!r}]",
                (
                    f"Label key {key!r} is invalid. Expected a lower-case letter, then at most"
                    f" {MAX_LABEL_CHARACTERS - 1}"
                    " lower-case letters, digits, underscores or dashes."
                ),
            )
        if len(value) > MAX_LABEL_CHARACTERS or not _LABEL_VALUE.fullmatch(value) or value != value.lower():
            yield (
                f"{field}[{key!r}]",
                (
                    f"Label value {value!r} is invalid. Expected at most {MAX_LABEL_CHARACTERS} lower-case"
                    f" letters, digits, underscores or dashes."
                ),
            )


def check_display_name(name: str, field: str) -> Iterator[Finding]:
    """At most 128 characters."""
    if len(name) > MAX_DISPLAY_NAME:
        yield field, f"The display name has {len(name)} characters. Expected at most {MAX_DISPLAY_NAME}."


def check_id(value: str, pattern: str, expected: str, field: str) -> Iterator[Finding]:
    """Check that the whole id fits a pattern."""
    if re.fullmatch(pattern, value) is None:
        yield field, f"Invalid ID {value!r}. Expected {expected}."


def check_gcs_uri(uri: str, field: str) -> Iterator[Finding]:
    """`gs://bucket[/path]`."""
    if _GCS.fullmatch(uri) is None:
        yield field, f"Invalid Cloud Storage URI {uri!r}. Expected gs://BUCKET or gs://BUCKET/PATH."


def check_bucket(uri: str, field: str, buckets: Buckets) -> Iterator[Finding]:
    """`gs://bucket[/path]` in a bucket that exists."""
    findings = list(check_gcs_uri(uri, field))
    yield from findings
    if not findings:
        bucket, _ = split_gcs_uri(uri)
        if not buckets.exists(bucket):
            yield (
                field,
                (
                    f"The Cloud Storage bucket of {uri!r} does not exist: {bucket!r}. Create the bucket first,"
                    f" in the region of the request."
                ),
            )


def split_gcs_uri(uri: str) -> tuple[str, str]:
    """Return bucket and path of a gs:// address that was checked before."""
    match = _GCS.fullmatch(uri)
    if match is None:
        raise ValueError(f"validation: {uri!r} is no gs:// address.")
    return match["bucket"], match["path"] or ""


def split_bigquery_uri(uri: str) -> tuple[str, str | None, str | None] | None:
    """Return project, dataset and table of a bq:// address, or None when it is none."""
    match = _BIGQUERY.fullmatch(uri)
    return (match["project"], match["dataset"], match["table"]) if match else None
