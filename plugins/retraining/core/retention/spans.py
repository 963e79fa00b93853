"""What the daily cleaning may delete, and why everything else stays.

In: what storage, registry, endpoint and job service say, and documents of runs. Out: the plan of one cleaning. A span
goes when all its files are older than the age limit and no kept run refers to it. When in doubt, nothing goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from retraining.core.data.span_store import StoredObject, StoredSpan
from retraining.core.documents.deployment import Deployment
from retraining.core.documents.evaluation import EvaluateRequest
from retraining.core.documents.export import ExportRequest, Manifest, Span
from retraining.core.documents.plan import Plan, Window
from retraining.core.documents.retention import KeepRun, KeepSpan, KeptRun, ModelLeftovers, SpanSum, SpanToDelete
from retraining.core.documents.snapshot import Snapshot
from retraining.core.errors import ContractError, PlanError
from retraining.core.naming import storage
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import is_run_key
from retraining.core.naming.spans import FROZEN_SET, MARKER, TOMBSTONE, SpanPlace, span_uri

DEFAULT_AGE_DAYS = 30
LEAST_AGE_DAYS = 7
"""A job may run for a week (`timeout_hours`), and a person may take half a day to approve."""

MOST_AGE_DAYS = 3650
UNFINISHED_TIMES = 2
"""A run without an outcome may have been paused with its DAG: it is kept so many times as long."""

MOST_SPANS = 2000
"""Of one model in one cleaning; the next one goes on. It bounds the plan's size."""

EXPORTED_AGAIN = "it was exported again meanwhile"

Documents = tuple[Plan | None, Snapshot | None, ExportRequest | None, Manifest | None, EvaluateRequest | None]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The time of the cleaning (never after the real one), and how old is old."""

    as_of: datetime
    min_age_days: int

    def __post_init__(self) -> None:
        if not LEAST_AGE_DAYS <= self.min_age_days <= MOST_AGE_DAYS:
            raise PlanError(
                "Param min_age_days",
                f"{self.min_age_days}",
                f"{LEAST_AGE_DAYS} to {MOST_AGE_DAYS} days",
                "Younger spans may be in use by a run that waits for its job or for a person",
            )

    def is_old(self, time: datetime, times: int = 1) -> bool:
        """Return whether something that happened then is over the age limit, or over so many times it."""
        return time < self.as_of - timedelta(days=self.min_age_days * times)


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A run's folder: whether it has an outcome, and when it was last at work (None: it has no documents).

    That is when its newest document was written or its lease renewed.
    """

    run_key: str
    newest: datetime | None
    ended: bool


@dataclass(frozen=True, kw_only=True)
class Claims:
    """Run keys that somebody else still points to, each with words: an alias, an endpoint, a job that runs."""

    alias: Mapping[str, str] = field(default_factory=dict)
    serving: Mapping[str, str] = field(default_factory=dict)
    running: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_keys(self) -> frozenset[str]:
        """All of them."""
        return frozenset({*self.alias, *self.serving, *self.running})


def is_dry_run(run_type: str, *, asked: bool) -> bool:
    """Return whether a cleaning only says what would go: one by the schedule deletes, whatever the form says."""
    return asked and run_type != "scheduled"


def run_folder_of(run_key: str, documents: Iterable[StoredObject], lease: StoredObject | None) -> RunFolder:
    """Return what a run's folder says of it.

    Args:
        run_key: Of the run.
        documents: Objects of its folder.
        lease: Its lease, if there is one; of a run without documents it is no sign of life.
    """
    signs = [*documents]
    ended = any(item.name == f"{Deployment.kind_name()}.json" for item in signs)
    times = [item.created for item in ([*signs, lease] if signs and lease else signs)]
    return RunFolder(run_key=run_key, newest=max(times, default=None), ended=ended)


@dataclass(frozen=True, kw_only=True)
class PointedVersion:
    """A version of the model, and what points to it: its aliases, and whether it is deployed."""

    run_key: str
    version_id: str
    aliases: tuple[str, ...]
    deployed: bool


def claims_of(versions: Iterable[PointedVersion], running: Mapping[str, str]) -> Claims:
    """Return the run keys that somebody points to; what no run of ours made is nobody's business.

    Args:
        versions: Of the model, this environment's.
        running: Ids of jobs that run, by the key of their run.
    """
    ours = [version for version in versions if is_run_key(version.run_key)]
    return Claims(
        alias={
            version.run_key: f"version {version.version_id} has the alias {', '.join(sorted(version.aliases))}"
            for version in ours
            if version.aliases
        },
        serving={
            version.run_key: f"version {version.version_id} is on the endpoint" for version in ours if version.deployed
        },
        running={key: f"job {job_id} of it runs" for key, job_id in running.items() if is_run_key(key)},
    )


def reason_changed(span: SpanToDelete, objects: Iterable[StoredObject]) -> str:
    """Return why a span is not the one that was judged any more; empty: it is.

    Args:
        span: As it was judged.
        objects: Of its folder now.
    """
    for item in objects:
        if item.name == MARKER and item.generation != span.marker:
            return EXPORTED_AGAIN
        if item.name != TOMBSTONE and whole_second(item.created) > span.newest:
            return f"{item.name} was written meanwhile"
    return ""


def is_whole(span: Span, objects: Iterable[StoredObject]) -> bool:
    """Return whether all files that a span's marker (or tombstone) lists are there."""
    sizes = {item.name: item.bytes for item in objects}
    return all(sizes.get(file.file_name) == file.bytes for file in span.files)


def kept_runs(runs: Iterable[RunFolder], claims: Claims, limits: Limits) -> tuple[KeptRun, ...]:
    """Return the runs whose spans stay, in order of their keys; also those that are claimed and have no folder."""
    by_key = {run.run_key: run for run in runs}
    kept = (_kept_run(key, by_key.get(key), claims, limits) for key in sorted({*by_key, *claims.run_keys}))
    return tuple(run for run in kept if run is not None)


def _kept_run(key: str, run: RunFolder | None, claims: Claims, limits: Limits) -> KeptRun | None:
    claimed: tuple[tuple[KeepRun, Mapping[str, str]], ...] = (
        ("alias", claims.alias),
        ("serving", claims.serving),
        ("running", claims.running),
    )
    for reason, who in claimed:
        if key in who:
            return KeptRun(run_key=key, reason=reason, message=who[key])
    if run is None or run.newest is None:
        return None
    message = f"it was last at work on {run.newest:%Y-%m-%d}"
    if not limits.is_old(run.newest):
        return KeptRun(run_key=key, reason="recent", message=message)
    if not run.ended and not limits.is_old(run.newest, UNFINISHED_TIMES):
        return KeptRun(run_key=key, reason="unfinished", message=f"it has no outcome, and {message}")
    return None


class References:
    """Which spans the kept runs of one model refer to.

    Args:
        bucket: Of the settings.
        results_bucket: Of the settings.
        model: Its name.
    """

    def __init__(self, bucket: str, results_bucket: str, model: str) -> None:
        self._bucket, self._model = bucket, model
        self._spans_roots = storage.spans_roots(bucket, results_bucket, model)
        self._folders: dict[str, KeptRun] = {}
        self._windows: list[tuple[Window, KeptRun]] = []

    def add(self, run: KeptRun, documents: Documents) -> None:
        """Note what a run's documents refer to.

        Args:
            run: Whose.
            documents: Plan, snapshot, export request, manifest, evaluation request; None where there is none.

        Raises:
            ContractError: They do not say which spans the run uses.
        """
        plan, snapshot, request, manifest, comparison = documents
        folder = storage.run_uri(self._bucket, self._model, run.run_key)
        if manifest is None and run.reason in ("alias", "serving"):
            raise ContractError(
                storage.document_uri(folder, Manifest.kind_name()),
                f"no such document, and {run.message}",
                "what that version was trained on",
                "Restore the document, or take the version's alias and traffic away",
            )
        if snapshot is None and request is None and manifest is None:
            if plan is None:
                raise ContractError(
                    folder, f"no plan, snapshot or manifest, and {run.message}", "one of them", "Restore or delete it"
                )
            self._windows.append((plan.window, run))  # its snapshot may find any span of these days stored
        for uri in self._folders_of(snapshot, request, manifest, comparison):
            self._folders.setdefault(uri, run)

    def holder(self, place: SpanPlace) -> tuple[KeepSpan, KeptRun] | None:
        """Return a run that a span stays for; None when there is none."""
        run = self._folders.get(place.uri)
        if run is not None:
            return run.reason, run
        for window, run in self._windows:
            if place.day is None or window.start <= place.day < window.end:
                return "window", run
        return None

    def _folders_of(
        self,
        snapshot: Snapshot | None,
        request: ExportRequest | None,
        manifest: Manifest | None,
        comparison: EvaluateRequest | None,
    ) -> Iterator[str]:
        for work in (snapshot, request):
            if work is not None:
                yield from (span_uri(work.spans_uri, span.span, span.fingerprint) for span in work.spans)
                if work.golden is not None:
                    yield span_uri(work.spans_uri, FROZEN_SET, work.golden.fingerprint)
        if manifest is not None:
            for root in self._spans_roots:
                spans_uri = f"{root}/{manifest.schema_hash}"
                yield from (span_uri(spans_uri, span.span, span.fingerprint) for span in manifest.spans)
            yield from (folder_of(file.uri) for split in manifest.splits.values() for file in split.files)
        if comparison is not None:
            yield from (folder_of(file.uri) for file in comparison.prove_unseen)


def survey_spans(
    model: str,
    stored: Iterable[StoredSpan | StoredObject],
    references: References,
    kept: tuple[KeptRun, ...],
    limits: Limits,
    *,
    runs: int,
    most_spans: int = MOST_SPANS,
) -> ModelLeftovers:
    """Judge each span of a listing; only those that go are kept in memory.

    Args:
        model: Name.
        stored: Its span store, see `span_store.read_spans`.
        references: Of the kept runs.
        kept: These runs.
        limits: Time and age limit.
        runs: How many there are in all.
        most_spans: How many may go.
    """
    sums: dict[KeepSpan, tuple[int, int]] = defaultdict(lambda: (0, 0))
    delete, restore = list[SpanToDelete](), list[str]()
    spans = size = postponed = foreign = 0
    for item in stored:
        if isinstance(item, StoredObject):
            foreign += 1
            continue
        spans, size = spans + 1, size + item.bytes
        if reason := keep_reason(item, references, limits):
            sums[reason] = (sums[reason][0] + 1, sums[reason][1] + item.bytes)
            restore += [item.place.uri] if item.tombstone else []
        elif len(delete) < most_spans:
            delete.append(_span_to_delete(item))
        else:
            postponed += 1
    return ModelLeftovers(
        model=model,
        refused=None,
        runs=runs,
        kept_runs=kept,
        spans=spans,
        bytes=size,
        kept={reason: SpanSum(spans=count, bytes=total) for reason, (count, total) in sorted(sums.items())},
        delete=tuple(delete),
        restore=tuple(restore),
        postponed=postponed,
        foreign=foreign,
    )


def refused(model: str, error: Exception) -> ModelLeftovers:
    """Return a model of which nothing is deleted, because what its runs refer to cannot be known."""
    return ModelLeftovers(
        model=model,
        refused=f"nothing of {model} is deleted: {error}",
        runs=0,
        kept_runs=(),
        spans=0,
        bytes=0,
        kept={},
        delete=(),
        restore=(),
        postponed=0,
        foreign=0,
    )


def keep_reason(span: StoredSpan, references: References, limits: Limits) -> KeepSpan | None:
    """Return why a span stays; None when it may go."""
    held = references.holder(span.place)
    if held is not None:
        return held[0]
    return None if limits.is_old(span.newest) else "young"


def _span_to_delete(span: StoredSpan) -> SpanToDelete:
    if span.marker is not None:
        message = f"no kept run refers to it, and nothing was written to it since {span.newest:%Y-%m-%d}"
    elif span.tombstone:
        message = "an earlier cleaning was cut off while it deleted this span"
    else:
        message = f"its export was never finished, and nothing was written to it since {span.newest:%Y-%m-%d}"
    return SpanToDelete(
        uri=span.place.uri,
        span=span.place.span,
        objects=span.objects,
        bytes=span.bytes,
        newest=whole_second(span.newest),
        marker=span.marker,
        message=message,
    )


def whole_second(time: datetime) -> datetime:
    """Return a time as documents write it: UTC, cut to whole seconds."""
    return time.astimezone(UTC).replace(microsecond=0)
