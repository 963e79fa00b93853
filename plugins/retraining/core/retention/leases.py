"""What of the span store a job needs, and what a run writes down before it relies on it.

A run renews its lease and *then* looks at the store; `maintain` buries a span and *then* looks at the leases. Whatever
happens in between, one of them sees the other: the cleaning gives the span back, or the run waits and finds it gone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from retraining.core.documents.document import Document, canonical_json
from retraining.core.documents.evaluation import EvaluateRequest
from retraining.core.documents.export import ExportRequest, Manifest, ManifestFile
from retraining.core.errors import DataError
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.spans import FROZEN_SET, marker_uri, span_uri


@dataclass(frozen=True, kw_only=True)
class Needed:
    """Folders of spans: `whole` are read, so they must be complete; `written` may be completed by the job."""

    whole: frozenset[str]
    written: frozenset[str] = frozenset()

    @property
    def folders(self) -> frozenset[str]:
        """All of them."""
        return self.whole | self.written


def needed(request: Document | None, manifest: Manifest | None) -> Needed:
    """Return the spans that a job works on.

    Args:
        request: Of the job.
        manifest: Of its run; None: it has none yet.
    """
    if isinstance(request, ExportRequest):
        work = [(span_uri(request.spans_uri, span.span, span.fingerprint), span.action) for span in request.spans]
        if request.golden is not None:
            frozen_uri = span_uri(request.spans_uri, FROZEN_SET, request.golden.fingerprint)
            work.append((frozen_uri, request.golden.action))
        return Needed(
            whole=frozenset(uri for uri, action in work if action == "reuse"),
            written=frozenset(uri for uri, action in work if action != "reuse"),
        )
    files: list[ManifestFile] = [file for split in manifest.splits.values() for file in split.files] if manifest else []
    if isinstance(request, EvaluateRequest):
        files += request.prove_unseen
    return Needed(whole=frozenset(folder_of(file.uri) for file in files))


def waits_for(being_deleted: Collection[str]) -> str | None:
    """Return why a job waits: spans that it works on are being deleted; None: none is.

    Args:
        being_deleted: Folders of those that have a tombstone.
    """
    if not being_deleted:
        return None
    return (
        f"{min(being_deleted)} is being deleted by the DAG maintain: the job waits until that is done or taken back. "
        "If this stays so, trigger maintain with Dry run off"
    )


def require_whole(needed_spans: Needed, complete: Collection[str]) -> None:
    """Refuse a job before it is paid for when spans that it reads are gone.

    Args:
        needed_spans: The spans that it works on.
        complete: Folders of those that have a marker.

    Raises:
        DataError: One is gone.
    """
    gone = sorted(needed_spans.whole.difference(complete))
    if gone:
        raise DataError(
            marker_uri(gone[0]),
            f"no such object, and {len(gone)} spans that this run relies on are gone",
            "spans as the run recorded them",
            "Trigger the DAG again with this run's as_of and the Param force: their days are exported again",
        )


def lease_of(dag_id: str, dag_run_id: str, task_id: str) -> bytes:
    """Return what a lease says: who renewed it last. Its time and generation are the object's own."""
    return canonical_json({"dag_id": dag_id, "dag_run_id": dag_run_id, "task_id": task_id})
