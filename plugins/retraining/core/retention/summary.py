"""One cleaning in words: the table for the task log, and the document of what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retraining.core.documents.retention import (
    CleanedDeployment,
    CleanedJob,
    CleanedLitter,
    CleanedMachinePool,
    CleanedModel,
    CleanedVersion,
    FoundVersion,
    KeepSpan,
    Maintenance,
    MaintenancePlan,
    ModelLeftovers,
    SpanSum,
)
from retraining.core.errors import ContractError
from retraining.core.naming.vertex import ResourceName

REASONS: dict[KeepSpan, str] = {
    "alias": "of a version with an alias",
    "serving": "of a version that serves",
    "running": "of a run whose job runs",
    "recent": "of recent runs",
    "unfinished": "of unfinished runs",
    "window": "in the window of a run without a snapshot",
    "young": "too young",
}
SHOWN = 50
"""Spans that the log names one by one."""

_MB = 1_000_000
_HEAD = ("model", "kept", "goes", "MB", "because")


def plan_lines(plan: MaintenancePlan) -> list[str]:
    """Return what a plan says, a line per fact, for the task log."""
    rows = [
        (
            model.model,
            str(model.spans - len(model.delete) - model.postponed),
            str(len(model.delete)),
            _megabytes(sum(span.bytes for span in model.delete)),
            _reason(model),
        )
        for model in plan.models
    ]
    lines = [f"as of {plan.as_of:%Y-%m-%d %H:%M} UTC, older than {plan.min_age_days} days", *_table(_HEAD, rows)]
    going = [span for model in plan.models for span in model.delete]
    lines += [f"goes: {span.uri}: {span.message}" for span in going[:SHOWN]]
    if len(going) > SHOWN:
        lines.append(f"goes: {len(going) - SHOWN} more, all of them in the document")
    for folder in plan.litter:
        lines.append(f"{folder.what}: {folder.old} of {folder.objects} below {folder.uri} are over the age limit")
    for job in plan.jobs:
        job_id = ResourceName.parse(job.name).resource_id
        lines.append(f"job {job_id} of {job.run_key} {'ends' if job.cancel else 'stays'}: {job.message}")
    lines += [f"table {table.table}: {table.message}" for table in plan.tables]
    lines += [f"deployed model {item.deployed_model_id} of {item.model}: {item.message}" for item in plan.deployments]
    lines += [f"goes: {_version(item)} of run {item.run_key}: {item.message}" for item in plan.versions]
    lines += [f"goes: pool {item.pool_id}: {item.message}" for item in plan.machine_pools]
    return [*lines, "dry run: nothing is deleted or cancelled"] if plan.dry_run else lines


def result_lines(done: Maintenance) -> list[str]:
    """Return what was done, a line per fact, for the task log."""
    rows = []
    for cleaned in done.models:
        deleted = [span for span in cleaned.spans if span.outcome == "deleted"]
        spared = len(cleaned.spans) - len(deleted)
        reason = cleaned.refused or _reasons(cleaned.kept) + (f", {spared} spared after all" if spared else "")
        rows.append(
            (
                cleaned.model,
                str(cleaned.looked_at - len(deleted)),
                str(len(deleted)),
                _megabytes(cleaned.freed_bytes),
                reason,
            )
        )
    lines = _table(("model", "kept", "deleted", "MB", "because"), rows)
    for cleaned in done.models:
        lines += [f"spared: {span.uri}: {span.message}" for span in cleaned.spans if span.outcome == "spared"]
        lines += [f"restored: {uri}" for uri in cleaned.restored]
    lines += [
        f"deployed model {item.deployed_model_id} of {item.model} {item.outcome}: {item.message}"
        for item in done.deployments
    ]
    lines += [f"{_version(item)} {item.outcome}: {item.message}" for item in done.versions]
    lines += [f"pool {item.pool_id} {item.outcome}: {item.message}" for item in done.machine_pools]
    return [*lines, done.message]


def conclude(
    plan: MaintenancePlan,
    plan_sha256: str,
    models: Sequence[CleanedModel],
    small_objects: Sequence[CleanedLitter],
    jobs: Sequence[CleanedJob],
    deployments: Sequence[CleanedDeployment] = (),
    versions: Sequence[CleanedVersion] = (),
    machine_pools: Sequence[CleanedMachinePool] = (),
) -> Maintenance:
    """Return the document of a cleaning.

    Args:
        plan: What it meant to do.
        plan_sha256: Of the stored plan.
        models: What became of the spans; in a dry run too: nothing.
        small_objects: What was deleted beside them.
        jobs: What became of jobs that nobody waits for.
        deployments: What became of deployed models that no run brings to its end.
        versions: What became of old versions of the registry.
        machine_pools: What became of pools that nobody closed.
    """
    message = _dry_run_message(plan) if plan.dry_run else _message(models, small_objects, jobs, deployments)
    if gone := sum(item.outcome == "deleted" for item in versions):
        message += f" {_some(gone, 'version')} of the registry deleted."
    if gone := sum(item.outcome == "deleted" for item in machine_pools):
        message += f" {_some(gone, 'pool')} of machines deleted."
    return Maintenance(
        as_of=plan.as_of,
        dag_run_id=plan.dag_run_id,
        dry_run=plan.dry_run,
        plan_sha256=plan_sha256,
        models=tuple(models),
        litter=tuple(small_objects),
        jobs=tuple(jobs),
        tables=plan.tables,
        deployments=tuple(deployments),
        versions=tuple(versions),
        machine_pools=tuple(machine_pools),
        freed_bytes=sum(model.freed_bytes for model in models) + sum(item.freed_bytes for item in small_objects),
        message=f"{message}{_refused(models)}",
    )


def _dry_run_message(plan: MaintenancePlan) -> str:
    going = [span for model in plan.models for span in model.delete]
    message = (
        f"Dry run: {_some(len(going), 'span')} with {_megabytes(sum(span.bytes for span in going))} MB would go, "
        f"and {_some(sum(job.cancel for job in plan.jobs), 'job')} would be cancelled."
    )
    if plan.deployments:
        message += f" {_some(len(plan.deployments), 'deployed model')} would be brought to an end."
    if plan.versions:
        message += f" {_some(len(plan.versions), 'version')} of the registry would be deleted."
    if plan.machine_pools:
        message += f" {_some(len(plan.machine_pools), 'pool')} of machines would be deleted."
    return message


def _message(
    models: Sequence[CleanedModel],
    small_objects: Sequence[CleanedLitter],
    jobs: Sequence[CleanedJob],
    deployments: Sequence[CleanedDeployment],
) -> str:
    deleted = sum(span.outcome == "deleted" for model in models for span in model.spans)
    small = sum(item.deleted for item in small_objects)
    freed = sum(model.freed_bytes for model in models) + sum(item.freed_bytes for item in small_objects)
    cancelled = sum(job.outcome == "cancelled" for job in jobs)
    message = (
        f"{_some(deleted, 'span')} and {_some(small, 'small object')} deleted, {_megabytes(freed)} MB; "
        f"{_some(cancelled, 'job')} cancelled."
    )
    if ended := sum(item.outcome != "left" for item in deployments):
        message += f" {_some(ended, 'deployed model')} brought to an end."
    return message


def _refused(models: Sequence[CleanedModel]) -> str:
    refusals = [model.model for model in models if model.refused]
    return f" Nothing of {', '.join(refusals)} was deleted." if refusals else ""


def require_none_refused(done: Maintenance, uri: str) -> None:
    """Refuse to end well when nothing of a model could be deleted; asked when all others are done.

    Args:
        done: What was done.
        uri: Of that document.

    Raises:
        ContractError: There is such a model.
    """
    refusals = [model.refused for model in done.models if model.refused]
    if refusals:
        way_out = "Mend what is named; the next cleaning goes on"
        raise ContractError(uri, "; ".join(refusals), "nothing that is refused", way_out)


def untouched(model: ModelLeftovers, refused: str | None = None) -> CleanedModel:
    """Return a model of which nothing was deleted: in a dry run, or because of a refusal."""
    return CleanedModel(
        model=model.model,
        refused=refused or model.refused,
        looked_at=model.spans,
        kept=dict(model.kept),
        spans=(),
        restored=(),
        postponed=model.postponed,
        freed_bytes=0,
    )


def _reason(model: ModelLeftovers) -> str:
    if model.refused:
        return model.refused
    more = f", {model.postponed} more tomorrow" if model.postponed else ""
    foreign = f", {model.foreign} objects that are no span's" if model.foreign else ""
    return _reasons(model.kept) + more + foreign


def _reasons(kept: dict[KeepSpan, SpanSum]) -> str:
    message = [f"{kept[reason].spans} {message}" for reason, message in REASONS.items() if reason in kept]
    return ", ".join(message) if message else "no span is kept"


def _version(item: FoundVersion | CleanedVersion) -> str:
    return f"version {ResourceName.parse(item.version_name).version} of {item.model}"


def _some(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _megabytes(size: int) -> str:
    return f"{size / _MB:,.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the columns as wide as their widest cell; the last one is free."""
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in cells
    ]
