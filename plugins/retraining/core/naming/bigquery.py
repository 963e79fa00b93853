"""Names in BigQuery: tables, and ids of query jobs by which a task meets its own again."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from retraining.core.documents.plan import Plan
from retraining.core.naming.run_keys import frozen_set_key, stamp

_BATCH_OUTPUT = re.compile(r"(?:predictions|errors)_(\d{4}_\d{2}_\d{2}T\d{2}_\d{2}_\d{2})_\d{3}Z_\d{3}")
_RUN_TABLE = re.compile(r"(run|scored?|files|objects)_[a-z][a-z0-9_]*__\d{8}t\d{6}z_[0-9a-f]{12}")

RESERVED_PREFIXES = ("golden_", "requests_", "retraining_")
"""How the names begin of this system's tables that stay."""


def is_reserved_table(name: str) -> bool:
    """Return whether a full name is one that this system, or Vertex AI for it, gives to its tables."""
    short = name.rpartition(".")[2].lower()
    return (
        is_run_table(short)
        or _BATCH_OUTPUT.fullmatch(name.rpartition(".")[2]) is not None
        or short.startswith(RESERVED_PREFIXES)
    )


def run_table(plan: Plan) -> str:
    """Run table as `project.dataset.table`."""
    return f"{plan.project}.{plan.dataset}.run_{plan.model}__{plan.run_key.replace('-', '_')}"


def files_table(plan: Plan) -> str:
    """Rows of the run's source files as `project.dataset.table`."""
    return f"{plan.project}.{plan.dataset}.files_{plan.model}__{plan.run_key.replace('-', '_')}"


def objects_table(plan: Plan) -> str:
    """Return the listing of the objects that the run's images are, as `project.dataset.table`."""
    return f"{plan.project}.{plan.dataset}.objects_{plan.model}__{plan.run_key.replace('-', '_')}"


def time_of_batch_output(name: str) -> datetime | None:
    """Return when Vertex AI named a table of predictions, or of their errors, by its full name; None: it is neither."""
    found = _BATCH_OUTPUT.fullmatch(name.rpartition(".")[2])
    try:
        return datetime.strptime(found[1], "%Y_%m_%dT%H_%M_%S").replace(tzinfo=UTC) if found else None
    except ValueError:  # no time: somebody else's name
        return None


def is_run_table(name: str) -> bool:
    """Return whether a table, by its full name, is of one run or scoring: its rows, what was loaded for it, answers."""
    return _RUN_TABLE.fullmatch(name.rpartition(".")[2]) is not None


def frozen_set_table(plan: Plan) -> str:
    """Return the table of the frozen set as `project.dataset.table`: one per text of its query.

    Raises:
        ContractError: The plan has none.
    """
    return f"{plan.project}.{plan.dataset}.golden_{plan.model}__{frozen_set_key(plan)}"


def scoring_table(project: str, dataset: str, model: str, key: str) -> str:
    """Return the table of a scoring's instances as `project.dataset.table`."""
    return f"{project}.{dataset}.score_{model}__{key.replace('-', '_')}"


def scored_table(project: str, dataset: str, model: str, key: str) -> str:
    """Return the table of a scoring's answers, before they go to the destination, as `project.dataset.table`."""
    return f"{project}.{dataset}.scored_{model}__{key.replace('-', '_')}"


def scoring_claims_table(project: str, dataset: str) -> str:
    """Return the table of who takes which destination of scorings, as `project.dataset.table`."""
    return f"{project}.{dataset}.retraining_claims"


def full_table(name: str, project: str) -> str:
    """Return `project.dataset.table` of a name that may leave the project out."""
    return name if name.count(".") > 1 else f"{project}.{name}"


def request_log_table(project: str, dataset: str, model: str) -> str:
    """Return the table the endpoint logs requests and answers to, as `project.dataset.table`."""
    return f"{project}.{dataset}.requests_{model}"


def scoring_log_table(project: str, dataset: str, model: str) -> str:
    """Return the table of what a model without an endpoint scored and answered, as `project.dataset.table`."""
    return f"{project}.{dataset}.retraining_scored_{model}"


def ledger_table(project: str, dataset: str) -> str:
    """Return the table of all models' decisions whether to retrain, as `project.dataset.table`."""
    return f"{project}.{dataset}.retraining_ledger"


def ledger_beside(log_table: str) -> str:
    """Return the ledger's table in the dataset of a request log."""
    project, dataset, _ = log_table.rsplit(".", 2)
    return ledger_table(project, dataset)


def ledger_job_id(environment: str, model: str, asked: str) -> str:
    """Return the deterministic BigQuery job id of a statement on the ledger; `asked`: which row, and what of it."""
    short = hashlib.sha1(f"{environment}|{asked}".encode(), usedforsecurity=False).hexdigest()[:20]
    return f"{model}__ledger__{short}"


def query_job_id(plan: Plan, purpose: str, attempt: str) -> str:
    """Return the deterministic BigQuery job id: the same task asking again meets its own job.

    Args:
        plan: The run.
        purpose: `snapshot`, `fingerprint`, `statistics`, …
        attempt: What tells a wanted repetition from a retry, for example `ti.max_tries`.
    """
    asked_by = f"{plan.environment or plan.bucket}|{plan.dag_run_id}|{attempt}"
    short = hashlib.sha1(asked_by.encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{plan.model}__{purpose}__{plan.run_key}__{short}"


def monitor_job_id(environment: str, model: str, as_of: datetime, attempt: str) -> str:
    """Return the deterministic BigQuery job id of a monitor's question."""
    short = hashlib.sha1(f"{environment}|{attempt}".encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{model}__requests__{stamp(as_of)}__{short}"


def new_day_job_id(environment: str, model: str, as_of: datetime, attempt: str) -> str:
    """Return the deterministic BigQuery job id of a count of a source's days; see `query_job_id`."""
    short = hashlib.sha1(f"{environment}|{attempt}".encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{model}__new_day__{stamp(as_of)}__{short}"


def ramp_job_id(environment: str, model: str, run_key: str, step: str) -> str:
    """Return the deterministic BigQuery job id of a ramp's question for answers; `step`: its share and minutes."""
    short = hashlib.sha1(f"{environment}|{step}".encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{model}__answers__{run_key}__{short}"


def scoring_job_id(environment: str, model: str, key: str, purpose: str, attempt: str) -> str:
    """Return the deterministic BigQuery job id of a scoring's statement; see `query_job_id`."""
    short = hashlib.sha1(f"{environment}|{attempt}".encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{model}__score_{purpose}__{key}__{short}"
