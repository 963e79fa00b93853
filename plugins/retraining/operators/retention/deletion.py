"""What the tasks `cancel_jobs` and `delete` do: end a job, delete what the plan says, leave alone what moved since.

Spans are deleted so that none is ever lost that somebody needs, wherever the deletion is killed. A span goes in this
order: its marker's content becomes a tombstone; the marker goes, if it is still the generation that was judged; *then*
it is looked whose lease was renewed since, and if its run refers to the span, the marker comes back from the tombstone;
else the files go, each if it is still the generation that was listed, and the tombstone last.

- Killed before the marker is gone: the span is whole, with a tombstone more.
- Killed later: no snapshot takes it for whole; this cleaning's next try, or tomorrow's, goes on by the tombstone.
- A run renews its lease before it looks at the store. If that was before the look, the look sees it. If it was after,
  the run finds the tombstone: its jobs wait until it is gone (`operators/record/leases.py`). No clock decides between
  them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from retraining.core.data.span_store import StoredObject
from retraining.core.documents import (
    CleanedJob,
    CleanedLitter,
    CleanedMachinePool,
    CleanedModel,
    CleanedSpan,
    FoundJob,
    FoundMachinePool,
    Litter,
    Maintenance,
    MaintenancePlan,
    ModelLeftovers,
    Span,
    SpanToDelete,
)
from retraining.core.errors import ContractError
from retraining.core.jobs.job import CANCELLED, CANCELLING
from retraining.core.jobs.machine_pools import STOPPING
from retraining.core.naming import storage, vertex
from retraining.core.naming.spans import MARKER, TOMBSTONE, marker_uri, place_of, tombstone_uri
from retraining.core.naming.trust import require_own_places
from retraining.core.retention import jobs_and_tables, summary
from retraining.core.retention.spans import EXPORTED_AGAIN, Limits, is_whole, reason_changed
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record
from retraining.operators.retention.references import ModelRuns
from retraining.operators.retention.survey import find_active_job, object_folders
from retraining.operators.retention.versions import delete_versions, end_deployment

LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")
TOGETHER = 20
"""Spans whose markers go before one look."""

BATCH = 100


class SpanDeletion:
    """Deletes the chosen spans of one model.

    Args:
        cloud: The hooks.
        runs: The model's, as read at the beginning of this try.
    """

    def __init__(self, cloud: CloudPort, runs: ModelRuns) -> None:
        self._cloud, self._runs = cloud, runs
        settings = cloud.settings
        self._roots = storage.spans_roots(settings.bucket, settings.results_bucket, runs.model)

    def delete_spans(self, model: ModelLeftovers) -> CleanedModel:
        """Take back what an earlier cleaning began and somebody needs now; delete what the plan says."""
        restored = tuple(uri for uri in model.restore if self._take_back(uri))
        done: list[CleanedSpan] = []
        refused = model.refused
        for group in _groups(model.delete, TOGETHER):
            try:
                for span in self._delete_group(group):
                    done.append(span)  # one by one: what came before an error counts
            except ContractError as error:  # what a run that came meanwhile refers to cannot be known
                refused = f"the rest of {model.model} is not deleted: {error}"
                LOGGER.warning("%s", refused)
                done += [self._spare(span, refused) for span in group if span.uri not in {item.uri for item in done}]
                break
        return CleanedModel(
            model=model.model,
            refused=refused,
            looked_at=model.spans,
            kept=dict(model.kept),
            spans=tuple(done),
            restored=restored,
            postponed=model.postponed,
            freed_bytes=sum(span.bytes for span in done if span.outcome == "deleted"),
        )

    def _delete_group(self, group: Sequence[SpanToDelete]) -> Iterator[CleanedSpan]:
        """Delete the markers of all, look once, then delete the files of each."""
        marked: list[tuple[SpanToDelete, list[StoredObject]]] = []
        for span in group:
            objects = self._cloud.objects.directly_in(span.uri)
            if not objects:
                yield _deleted(span, "an earlier try of this cleaning deleted it")
            elif reason := self._reason_against(span, objects) or self._write_tombstone(span, objects):
                yield self._spare(span, reason)
            else:
                marked.append((span, [item for item in objects if item.name not in (MARKER, TOMBSTONE)]))
        if marked:
            self._runs.look_again()
        for span, files in marked:
            reason = self._delete_files(span, files)
            yield self._spare(span, reason) if reason else _deleted(span, span.message)

    def _reason_against(self, span: SpanToDelete, objects: Iterable[StoredObject]) -> str:
        """Return why a span must stay: a run needs it, or it is not the one that was judged any more."""
        return self._holder(span) or reason_changed(span, objects)

    def _write_tombstone(self, span: SpanToDelete, objects: Iterable[StoredObject]) -> str:
        """Put the tombstone in, take the marker out; return a reason when the marker is another one by now."""
        marker = next((item for item in objects if item.name == MARKER), None)
        if marker is None:  # never finished, or a deletion that was cut off: its tombstone says what it was
            self._cloud.artifacts.write_once(tombstone_uri(span.uri), b"")
            return ""
        self._drop_tombstone(span.uri)  # of a deletion that was cut off before its marker went
        content = self._cloud.artifacts.read_object(marker.uri)
        if content is not None:
            self._cloud.artifacts.write_once(tombstone_uri(span.uri), content)
        (deleted,) = self._cloud.objects.delete([marker])
        return "" if deleted.gone else EXPORTED_AGAIN

    def _delete_files(self, span: SpanToDelete, files: Sequence[StoredObject]) -> str:
        """Delete all but the tombstone, then that; return a reason when the span must stay."""
        if reason := self._holder(span):
            return reason
        for batch in _groups(files, BATCH):
            stays = [item.object.name for item in self._cloud.objects.delete(batch) if not item.gone]
            if stays:
                return f"{stays[0]} was written again while the span was deleted"
        marker = self._cloud.objects.find_object(marker_uri(span.uri))
        if marker is not None:
            return self._finished_meanwhile(marker)
        self._drop_tombstone(span.uri)
        return ""

    def _finished_meanwhile(self, marker: StoredObject) -> str:
        """Withdraw the marker of somebody who waits for no tombstone, where it would make half a span look whole."""
        if self._is_whole(marker, self._cloud.objects.directly_in(marker.folder_uri)):
            return EXPORTED_AGAIN
        list(self._cloud.objects.delete([marker]))
        return "an export finished it while it was deleted: its marker is withdrawn, the next run exports it again"

    def _holder(self, span: SpanToDelete) -> str:
        place = place_of(span.uri, *self._roots)
        if place is None:
            return "it is no folder of the span store"
        held = self._runs.references.holder(place)
        return f"run {held[1].run_key} needs it: {held[1].message}" if held else ""

    def _spare(self, span: SpanToDelete, reason: str) -> CleanedSpan:
        self._take_back(span.uri)
        return CleanedSpan(uri=span.uri, outcome="spared", bytes=span.bytes, message=reason)

    def _take_back(self, folder_uri: str) -> bool:
        """End a deletion that had begun: True when the span is whole again by it."""
        objects = {item.name: item for item in self._cloud.objects.directly_in(folder_uri)}
        if TOMBSTONE not in objects:
            return False
        back = MARKER not in objects and self._is_whole(objects[TOMBSTONE], objects.values())
        content = self._cloud.artifacts.read_object(objects[TOMBSTONE].uri) if back else None
        if content is not None:
            self._cloud.artifacts.write_once(marker_uri(folder_uri), content)
        self._drop_tombstone(folder_uri)
        return content is not None

    def _is_whole(self, marker: StoredObject, objects: Iterable[StoredObject]) -> bool:
        """Say whether all files that a marker (or a tombstone) lists are there."""
        content = self._cloud.artifacts.read_object(marker.uri)
        if not content:
            return False
        try:
            span = Span.parse(content, marker.uri)
        except ContractError as error:
            LOGGER.warning("%s", error)
            return False
        return is_whole(span, objects)

    def _drop_tombstone(self, folder_uri: str) -> None:
        tombstone = self._cloud.objects.find_object(tombstone_uri(folder_uri))
        if tombstone is not None:
            list(self._cloud.objects.delete([tombstone]))


def _deleted(span: SpanToDelete, reason: str) -> CleanedSpan:
    return CleanedSpan(uri=span.uri, outcome="deleted", bytes=span.bytes, message=reason)


def _groups(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    left = iter(items)
    while group := list(islice(left, size)):
        yield group


def cancel_unattended_job(cloud: CloudPort, unattended: FoundJob) -> CleanedJob:
    """Cancel a job that nobody waits for; one that has ended, or that somebody looks at again, is left."""
    job = cloud.jobs.find_by_name(unattended.name)
    if job is not None and job.state in (CANCELLING, CANCELLED):  # by an earlier try
        return CleanedJob(name=unattended.name, outcome="cancelled", message=unattended.message)
    active = find_active_job(cloud, job) if job is not None and job.active else None
    ours = job is not None and cloud.environment.owns(job.labels, job.folder_uri)
    if reason := jobs_and_tables.reason_to_leave(unattended, active, ours=ours):
        return CleanedJob(name=unattended.name, outcome="left", message=reason)
    cloud.jobs.cancel(unattended.name)
    return CleanedJob(name=unattended.name, outcome="cancelled", message=unattended.message)


def delete_garbage(cloud: CloudPort, record: Record, jobs: Sequence[CleanedJob]) -> Maintenance:
    """Delete what the plan of a record says; return the document, which the caller stores.

    Args:
        cloud: The hooks.
        record: Of the cleaning.
        jobs: What became of jobs.
    """
    plan = record.read_document(MaintenancePlan)
    limits = Limits(as_of=plan.as_of, min_age_days=plan.min_age_days)
    bucket = cloud.settings.bucket
    folders = object_folders(bucket, [model.model for model in plan.models])
    require_own_places(plan, [uri for _, uri in folders], cloud.settings)
    models = [_delete_spans(cloud, model, limits, plan.dry_run) for model in plan.models]
    small_objects = [] if plan.dry_run else [_delete_objects(cloud, item, limits) for item in plan.litter]
    deployments = [] if plan.dry_run else [end_deployment(cloud, item, plan.as_of) for item in plan.deployments]
    versions = [] if plan.dry_run else list(delete_versions(cloud, plan))
    pools = [] if plan.dry_run else [_delete_pool(cloud, item) for item in plan.machine_pools]
    plan_sha256 = record.document_digest(MaintenancePlan)
    return summary.conclude(plan, plan_sha256, models, small_objects, jobs, deployments, versions, pools)


def _delete_pool(cloud: CloudPort, left: FoundMachinePool) -> CleanedMachinePool:
    """Delete a pool that nobody closed, if it still is the one that was found."""
    found = cloud.machine_pools.find(left.pool_id)
    if found is None or found.state == STOPPING:  # by an earlier try, or by its own run
        return CleanedMachinePool(pool_id=left.pool_id, outcome="deleted", message=left.message)
    if found.ends != left.ends:
        return CleanedMachinePool(pool_id=left.pool_id, outcome="left", message="it was made anew")
    cloud.machine_pools.delete(left.pool_id)
    return CleanedMachinePool(pool_id=left.pool_id, outcome="deleted", message=left.message)


def _delete_spans(cloud: CloudPort, model: ModelLeftovers, limits: Limits, dry_run: bool) -> CleanedModel:
    if dry_run or model.refused or not (model.delete or model.restore):
        return summary.untouched(model)
    runs = ModelRuns(cloud, model.model, limits)
    try:
        runs.read_runs(cloud.jobs.find_active(vertex.KEY_LABEL))
    except ContractError as error:
        return summary.untouched(model, f"nothing of {model.model} is deleted: {error}")
    return SpanDeletion(cloud, runs).delete_spans(model)


def _delete_objects(cloud: CloudPort, folder: Litter, limits: Limits) -> CleanedLitter:
    """Delete what is old, page by page; what was saved again meanwhile has another generation and stays."""
    deleted = size = 0
    if folder.old:
        for item in cloud.objects.delete(
            item for item in cloud.objects.walk(folder.uri) if limits.is_old(item.created)
        ):
            deleted, size = deleted + item.gone, size + item.object.bytes * item.gone
    return CleanedLitter(what=folder.what, deleted=deleted, freed_bytes=size)
