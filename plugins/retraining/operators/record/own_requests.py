"""What the monitor asked an endpoint itself: requests in its log that no application sent."""

from __future__ import annotations

from datetime import datetime, timedelta

from retraining.core.documents import AttributionRequest
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.naming import storage
from retraining.core.naming.run_keys import stamp
from retraining.hooks.ports import ArtifactsPort

ASKED_AFTER = timedelta(days=1)
"""A monitor run asks nothing that is as of a time further back: so its folder's name says when it may have asked."""


def own_requests(
    artifacts: ArtifactsPort, bucket: str, model: str, start: datetime, end: datetime
) -> tuple[SmokeRequest, ...]:
    """Return by what the requests of monitor runs in some time can be told from others in the request log."""
    return tuple(each.asked for each in asked_by_monitor(artifacts, bucket, model, start, end))


def asked_by_monitor(
    artifacts: ArtifactsPort, bucket: str, model: str, start: datetime, end: datetime
) -> tuple[AttributionRequest, ...]:
    """Return what monitor runs asked in some time, as it was written down before it was sent.

    Args:
        artifacts: Cloud Storage.
        bucket: Of the control documents.
        model: Whose endpoint.
        start: Of the time.
        end: Of the time, exclusive.
    """
    folder, suffix = storage.monitors_uri(bucket, model), f"/{AttributionRequest.kind_name()}.json"
    uris = artifacts.list_uris(folder, start=stamp(start - ASKED_AFTER), end=stamp(end), suffix=suffix)
    found = [AttributionRequest.parse(data, uri) for uri, data in artifacts.read_some(uris).items()]
    return tuple(each for each in found if each.asked.end > start and each.asked.start < end)
