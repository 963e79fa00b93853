"""The roles that a project must give, as docs/composer.md and infra/ list them, with what each is asked about.

`retraining doctor` makes a line of each. The tests hold the rows against both lists, and the permissions against those
that the methods of this software need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Who = Literal["connection", "jobs", "agent"]
"""The connection's account, the jobs' account, Vertex AI's service agent."""
On = Literal["project", "sources", "dataset", "bucket", "results", "results-jobs", "account", "repository"]

APIS = (
    "aiplatform.googleapis.com",
    "artifactregistry.googleapis.com",
    "bigquery.googleapis.com",
    "bigquerystorage.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "secretmanager.googleapis.com",
    "serviceusage.googleapis.com",
    "storage.googleapis.com",
)
"""What a project enables, as infra/ does; Resource Manager and Service Usage are `retraining doctor`'s own."""


@dataclass(frozen=True, kw_only=True)
class NeededRole:
    """A role that somebody needs on something.

    Attributes:
        role: Without `roles/`.
        permissions: Those of it that are needed; empty: of an account that nobody else can ask for, whose role is
            looked for in the policy.
    """

    who: Who
    role: str
    on: On
    permissions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How its line is called."""
        return f"{self.who}/{self.role}@{self.on}"


def _of(service: str, kinds: Sequence[str], verbs: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{service}.{kind}.{verb}" for kind in kinds for verb in verbs)


_JOBS = ("batchPredictionJobs", "customJobs", "hyperparameterTuningJobs")
_ENDPOINTS = ("create", "delete", "deploy", "explain", "get", "list", "predict", "undeploy", "update")
VERTEX = (
    *_of("aiplatform", _JOBS, ("cancel", "create", "delete", "get", "list")),
    *_of("aiplatform", ("endpoints",), _ENDPOINTS),
    *_of("aiplatform", ("modelEvaluationSlices", "modelEvaluations"), ("get", "import", "list")),
    *_of("aiplatform", ("models",), ("delete", "get", "list", "update", "upload")),
)
"""Of roles/aiplatform.user: what jobs, the registry, evaluations and endpoints are asked with."""
OBJECTS = _of("storage", ("objects",), ("create", "delete", "get", "list", "update"))
TABLES = _of("bigquery", ("tables",), ("create", "delete", "get", "getData", "list", "update", "updateData"))

ROLES = (
    NeededRole(who="connection", role="aiplatform.user", on="project", permissions=VERTEX),
    NeededRole(who="connection", role="bigquery.jobUser", on="project", permissions=("bigquery.jobs.create",)),
    NeededRole(
        who="connection",
        role="bigquery.dataViewer",
        on="sources",
        permissions=("bigquery.tables.get", "bigquery.tables.getData"),
    ),
    NeededRole(who="connection", role="bigquery.dataEditor", on="dataset", permissions=TABLES),
    NeededRole(who="connection", role="storage.objectUser", on="bucket", permissions=OBJECTS),
    NeededRole(who="connection", role="storage.objectUser", on="results", permissions=OBJECTS),
    NeededRole(who="connection", role="logging.viewer", on="project", permissions=("logging.logEntries.list",)),
    NeededRole(who="connection", role="monitoring.viewer", on="project", permissions=("monitoring.timeSeries.list",)),
    NeededRole(
        who="connection", role="iam.serviceAccountUser", on="account", permissions=("iam.serviceAccounts.actAs",)
    ),
    NeededRole(who="jobs", role="bigquery.readSessionUser", on="project"),
    NeededRole(who="jobs", role="bigquery.dataViewer", on="dataset"),
    NeededRole(who="jobs", role="storage.objectViewer", on="bucket"),
    NeededRole(who="jobs", role="storage.objectViewer", on="results"),
    NeededRole(who="jobs", role="storage.objectUser", on="results-jobs"),
    NeededRole(who="agent", role="aiplatform.serviceAgent", on="project"),
    NeededRole(who="agent", role="artifactregistry.reader", on="repository"),
    NeededRole(who="agent", role="bigquery.dataEditor", on="dataset"),
    NeededRole(who="agent", role="bigquery.readSessionUser", on="project"),
    NeededRole(who="agent", role="bigquery.jobUser", on="project"),
)


@dataclass(frozen=True, kw_only=True)
class Binding:
    """A role that a policy gives to somebody; `condition` is its expression, empty without one."""

    role: str
    member: str
    condition: str = ""


EVERYBODY = ("allAuthenticatedUsers", "allUsers")
_CONTAINING = {
    "roles/bigquery.dataViewer": ("READER", "WRITER", "OWNER", "roles/bigquery.dataEditor", "roles/bigquery.dataOwner"),
    "roles/bigquery.dataEditor": ("WRITER", "OWNER", "roles/bigquery.dataOwner"),
    "roles/storage.objectViewer": ("roles/storage.objectUser", "roles/storage.objectAdmin"),
    "roles/storage.objectUser": ("roles/storage.objectAdmin",),
}
"""Roles that contain another, and a dataset's names of basic roles."""


def is_bound(bindings: Sequence[Binding], role: str, account: str, beginning: str = "") -> bool:
    """Return whether one of some bindings gives an account a role, or one that contains it.

    Args:
        bindings: Of a resource, and of what it is in.
        role: With `roles/`.
        account: E-mail address.
        beginning: Of objects' names, `projects/_/buckets/…`: a binding under the condition of it counts too.
    """
    roles = {role, *_CONTAINING.get(role, ())}
    expression = f'resource.name.startsWith("{beginning}")' if beginning else ""
    return any(
        each.role in roles
        and each.member.removeprefix("serviceAccount:") in (account, *EVERYBODY)
        and each.condition.replace("'", '"').strip() in ("", expression)
        for each in bindings
    )
