"""Documents of the daily cleaning: what is found and shall go, and what became of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, RunKey, Sha256, Text, Uri, UtcTime, Value
from retraining.core.spec.features import is_empty

KeepRun = Literal["alias", "serving", "running", "recent", "unfinished"]
KeepSpan = Literal["young", "alias", "serving", "running", "recent", "unfinished", "window"]
LitterKind = Literal["wakes", "uploads", "leases", "scorings"]
DeploymentOutcome = Literal["settled", "undeployed", "left"]


class KeptRun(Value):
    """A run whose spans stay, and why."""

    run_key: RunKey
    reason: KeepRun
    message: Text


class SpanSum(Value):
    """Spans that stay for one reason."""

    spans: Count
    bytes: Count


class SpanToDelete(Value):
    """A span that nothing refers to any more, as it was found.

    `objects` and `bytes` are of all its files; `newest` is when the last one was written; `marker` is the generation of
    its `span.json`, null when there is none (an export that was never finished, or a deletion that was cut off).
    """

    uri: Uri
    span: Text
    objects: Count
    bytes: Count
    newest: UtcTime
    marker: Annotated[int, Field(ge=1)] | None
    message: Text


class ModelLeftovers(Value):
    """What was found of one model. With `refused` (a sentence) nothing of it is deleted.

    `kept` counts spans by the reason why they stay. `restore` are kept spans whose deletion an earlier run had begun;
    `postponed` counts spans that are left to the next run; `foreign` counts objects in the store that are no span's.
    """

    model: ModelId
    refused: str | None
    runs: Count
    kept_runs: tuple[KeptRun, ...]
    spans: Count
    bytes: Count
    kept: dict[KeepSpan, SpanSum]
    delete: tuple[SpanToDelete, ...]
    restore: tuple[Uri, ...]
    postponed: Count
    foreign: Count


class Litter(Value):
    """Small objects without an owner below one prefix: how many there are, and how many are over the age limit."""

    what: LitterKind
    uri: Uri
    objects: Count
    old: Count
    old_bytes: Count


class FoundJob(Value):
    """A job that still runs. `silent_since` is the last sign of the task that waits for it; `cancel`: nobody waits."""

    name: Text
    state: Text
    model: ModelId
    run_key: RunKey
    created: UtcTime
    silent_since: UtcTime
    cancel: bool
    message: Text


class FoundTable(Value):
    """A run table that does not expire by itself, or should be gone. It is only reported."""

    table: Text
    message: Text


class FoundDeployment(Value):
    """A deployed model that costs and that no run brings to its end any more.

    `rollout`: its run went silent before it was done. `unclaimed`: it has no traffic, and nothing is under way.
    `staging`: it is on the endpoint for tries, and none is under way.
    """

    model: ModelId
    deployed_model_id: Text
    what: Literal["rollout", "unclaimed", "staging"]
    message: Text


class FoundVersion(Value):
    """A version of the registry that goes, and why."""

    model: ModelId
    version_name: Text
    run_key: RunKey
    message: Text


class FoundMachinePool(Value):
    """A [pool of machines](operations.md#machine-pools) that is still paid for after its end."""

    pool_id: Text
    ends: UtcTime
    message: Text


class MaintenancePlan(Document):
    """Per model which runs are kept and why, what shall go and why; written before anything is done.

    Jobs that run and who waits for them; tables that do not expire.
    """

    written_by: ClassVar[str] = "look"
    read_by: ClassVar[str] = "cancel_jobs, delete, the next cleaning"
    kind: Literal["maintenance_plan"] = "maintenance_plan"
    as_of: UtcTime
    dag_run_id: str
    dry_run: bool
    min_age_days: Annotated[int, Field(ge=1)]
    models: tuple[ModelLeftovers, ...]
    litter: tuple[Litter, ...]
    jobs: tuple[FoundJob, ...]
    tables: tuple[FoundTable, ...]
    deployments: tuple[FoundDeployment, ...] = ()
    keep_versions: Annotated[int, Field(ge=1)] | None = None
    """Of each model, the newest; null: of an earlier release, which deleted none."""
    versions: tuple[FoundVersion, ...] = ()
    machine_pools: Annotated[tuple[FoundMachinePool, ...], Field(exclude_if=is_empty)] = ()


class CleanedSpan(Value):
    """What became of a span to delete; `spared`: it changed or was needed after all, and `words` says so."""

    uri: Uri
    outcome: Literal["deleted", "spared"]
    bytes: Count
    message: Text


class CleanedModel(Value):
    """What became of one model's spans."""

    model: ModelId
    refused: str | None
    looked_at: Count
    kept: dict[KeepSpan, SpanSum]
    spans: tuple[CleanedSpan, ...]
    restored: tuple[Uri, ...]
    postponed: Count
    freed_bytes: Count


class CleanedLitter(Value):
    """What was deleted below one prefix."""

    what: LitterKind
    deleted: Count
    freed_bytes: Count


class CleanedJob(Value):
    """What became of a job that nobody waits for; `left`: it ended by itself, or somebody looks at it again."""

    name: Text
    outcome: Literal["cancelled", "left"]
    message: Text


class CleanedDeployment(Value):
    """What became of a deployed model; `settled`: its rollout was completed or taken back."""

    model: ModelId
    deployed_model_id: Text
    outcome: DeploymentOutcome
    message: Text


class CleanedVersion(Value):
    """What became of a version; `left`: something points to it now, and `words` says what."""

    model: ModelId
    version_name: Text
    outcome: Literal["deleted", "left"]
    message: Text


class CleanedMachinePool(Value):
    """What became of a pool of machines; `left`: it is gone, or another one has its id now."""

    pool_id: Text
    outcome: Literal["deleted", "left"]
    message: Text


class Maintenance(Document):
    """What was kept because of what, what was deleted, spared after all or refused; bytes freed; jobs cancelled."""

    written_by: ClassVar[str] = "delete"
    read_by: ClassVar[str] = "people"
    kind: Literal["maintenance"] = "maintenance"
    as_of: UtcTime
    dag_run_id: str
    dry_run: bool
    """true: nothing was done."""
    plan_sha256: Sha256
    models: tuple[CleanedModel, ...]
    litter: tuple[CleanedLitter, ...]
    jobs: tuple[CleanedJob, ...]
    tables: tuple[FoundTable, ...]
    deployments: tuple[CleanedDeployment, ...] = ()
    versions: tuple[CleanedVersion, ...] = ()
    machine_pools: Annotated[tuple[CleanedMachinePool, ...], Field(exclude_if=is_empty)] = ()
    freed_bytes: Count
    message: Text
    """All of it in a sentence."""
