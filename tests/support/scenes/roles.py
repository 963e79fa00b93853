"""The roles of docs/composer.md, row by row, as the local cloud's IAM table takes them, and who the rows are about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
JOBS_ACCOUNT = "trainer@local-project.iam.gserviceaccount.com"
PRINCIPALS = {
    "the connection's account": "local-cloud@local-project.iam.gserviceaccount.com",
    "the jobs' account": JOBS_ACCOUNT,
    "Vertex AI's service agent": "service-123456789012@gcp-sa-aiplatform.iam.gserviceaccount.com",
}
SOURCE = "roles_source"
NOT_TRIED = {"roles/artifactregistry.reader"}  # the local cloud pulls no images


class Role(NamedTuple):
    """One row of the table. `on` is a resource, or `<beginning of names> in <bucket>`: a condition on it."""

    who: str
    role: str
    on: str


def table_rows(path: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of a page, without its own heading."""
    section = (ROOT / path).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def documented_roles() -> list[Role]:
    """Return the rows of the roles table; an empty first cell is that of the row above."""
    found: list[Role] = []
    for who, role, on, _ in table_rows("docs/composer.md", "## 4. Roles"):
        named = re.sub(r" \(.*\)", "", who) or found[-1].who
        found += [Role(named, role.strip("`"), each) for each in on.replace("`", "").split(", ")]
    return found


def condition(bucket: str, beginning: str) -> dict[str, str]:
    """The condition by which a binding on a bucket holds for objects whose names begin so."""
    return {"expression": f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{beginning}")'}


class Roles:
    """Puts documented roles in force on a local cloud.

    Args:
        local_cloud: Which.
    """

    def __init__(self, local_cloud: Any) -> None:
        self._http = local_cloud.http
        self._url = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"
        project = f"projects/{local_cloud.project}"
        self._resources = {
            "project": project,
            "source datasets": f"{project}/datasets/{SOURCE}",
            "RETRAINING_DATASET": f"{project}/datasets/{local_cloud.dataset}",
            "RETRAINING_BUCKET": f"buckets/{local_cloud.bucket}",
            "RETRAINING_RESULTS_BUCKET": f"buckets/{local_cloud.bucket}",
            "RETRAINING_SERVICE_ACCOUNT": f"{project}/serviceAccounts/{JOBS_ACCOUNT}",
        }

    def grant(self, *, without: Role | None = None, accounts: Mapping[str, str] | None = None) -> None:
        """Put all documented roles in force, or all but those of one row's account and role.

        Args:
            without: A row.
            accounts: Of models that have one each, by name, beside the shared one.
        """
        rows = [row for row in documented_roles() if row.role not in NOT_TRIED]
        bindings = [self._binding(row) for row in rows if without is None or row[:2] != without[:2]]
        for model, account in (accounts or {}).items():
            theirs = [row for row in rows if PRINCIPALS[row.who] == JOBS_ACCOUNT]
            bindings += [self._binding(row, account, f"{model}/") for row in theirs]
            acts = f"projects/{account.partition('@')[2].partition('.')[0]}/serviceAccounts/{account}"
            may = {"principal": PRINCIPALS["the connection's account"], "role": "roles/iam.serviceAccountUser"}
            bindings.append({**may, "resource": acts})
        answer = self._http.post(self._url, json={"bindings": bindings}, timeout=30)
        assert answer.status_code == 200, answer.text

    def _binding(self, row: Role, account: str = "", below: str = "") -> dict[str, Any]:
        beginning, _, resource = row.on.rpartition(" in ")
        made = {"principal": account or PRINCIPALS[row.who], "role": row.role, "resource": self._resources[resource]}
        bucket = str(made["resource"]).removeprefix("buckets/")
        return {**made, "condition": condition(bucket, f"{beginning}{below}")} if beginning else made

    def allow_all(self) -> None:
        """Take the table back."""
        assert self._http.delete(self._url, timeout=30).status_code == 200

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Hold everybody to the documented roles until the block ends."""
        self.grant()
        try:
            yield
        finally:
            self.allow_all()
