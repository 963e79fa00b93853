"""Who may do what, while an IAM table is in force: principal -> role -> resource. Without a table everybody may all.

In: a table (`POST /iam` on Vertex AI's REST address; a file in the state directory), and who calls which method on
what. Out: nothing, or `DeniedError` with permission, resource and principal. Which role has which permission, and which
method asks for which one, is in the `service.json` of each service; a method that has no row there is refused.

    {"bindings": [{"principal": "a@local-project.iam.gserviceaccount.com", "role": "roles/bigquery.jobUser",
                   "resource": "projects/local-project"}]}

A resource is `projects/P`, `buckets/B` or another of the forms in `service.json`; a binding on a project holds for all
that is in it. One on a bucket may have a condition of one form, by which it holds for objects
whose names begin so, and not for the bucket itself (nor for listing it), as on Cloud Storage
(https://cloud.google.com/iam/docs/conditions-resource-attributes#resource-name):

    "condition": {"expression": "resource.name.startsWith('projects/_/buckets/B/objects/PREFIX')"}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from localcloud.errors import CallError
from localcloud.projects import Projects
from localcloud.services import services
from localcloud.state import State

Resources = Mapping[str, Sequence[str]]
"""What a call concerns, by kind (`project`, `bucket`, …), as `service.json` names the kinds."""
Table = dict[str, Any]
Bindings = dict[tuple[str, str], list[tuple[str, frozenset[str]]]]
"""Principal and resource -> the beginning of objects' names that a binding holds for (empty: all), and permissions."""

_CONDITION = re.compile(r"""resource\.name\.startsWith\((['"])projects/_/buckets/([^/'"]+)/objects/([^'"]+)\1\)""")
_NAME = re.compile(r"\b[A-Z]\b")  # in the form of a resource
_BINDING = {"principal", "role", "resource"}


class DeniedError(CallError):
    """The caller may not do this."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "PERMISSION_DENIED")


class TableError(ValueError):
    """The document is no IAM table."""


class Iam:
    """The table in force, for every server of a local cloud.

    Args:
        state: The state directory; its `iam.json` is looked at anew for each call.
    """

    def __init__(self, state: State, projects: Projects) -> None:
        self._path = state.iam_path
        self._projects = projects
        self._seen: tuple[int, int] | None = None
        self._bindings: Bindings = {}

    def table(self) -> Table | None:
        """Return the table in force, None without one."""
        try:
            table: Table = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        return table

    def put(self, document: object) -> Table:
        """Put a table in force, in place of any other, for all servers at once; gives it back.

        Raises:
            TableError: It is none.
        """
        table = check_table(document)
        temporary = self._path.with_suffix(f".{os.getpid()}.new")
        temporary.write_text(json.dumps(table, indent=2) + "\n")
        temporary.replace(self._path)
        return table

    def delete(self) -> None:
        """Take the table back: everybody may all again."""
        self._path.unlink(missing_ok=True)

    def in_force(self) -> bool:
        """Return whether there is a table; costs one look at the file system."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._seen = None
            return False
        version = status.st_ino, status.st_mtime_ns
        if version != self._seen:
            self._bindings = _permissions_of(self.table() or {"bindings": []})
            self._seen = version
        return True

    def check(self, principal: str, method: str, resources: Resources) -> None:
        """Let a call pass, or not.

        Args:
            principal: The caller's e-mail address.
            method: As `service.json` names it.
            resources: What the call concerns. A kind that the method needs and that is empty here asks for nothing.

        Raises:
            DeniedError: A table is in force, and does not grant a permission that the method needs.
        """
        if not self.in_force():
            return
        needed = methods().get(method)
        if needed is None:
            raise DeniedError(
                f"The IAM table of the local cloud has no row for {method}, called by {principal}. Expected a method"
                " of the service's service.json. Add the row, or take the table back (DELETE /iam)."
            )
        for permission, kind in needed.items():
            for resource in resources.get(kind, ()):
                if not self._is_granted(principal, permission, resource):
                    raise DeniedError(_refusal(principal, permission, resource))

    def granted(self, principal: str, permissions: Sequence[str], resource: str) -> list[str]:
        """Return those of some permissions that a principal has on a resource, as `testIamPermissions` answers."""
        if not self.in_force():
            return list(permissions)
        return [each for each in permissions if self._is_granted(principal, each, resource)]

    def policy(self, resource: str) -> dict[str, Any]:
        """Return what the table binds on a resource itself, as `getIamPolicy` does; without one everybody has all."""
        if (table := self.table()) is None:
            every = [{"role": role, "members": ["allAuthenticatedUsers"]} for role in sorted(roles())]
            return {"version": 1, "etag": "ACAB", "bindings": every}
        named = self._projects.with_ids(resource)
        found = [
            {
                "role": each["role"],
                "members": [f"serviceAccount:{each['principal']}"],
                **({"condition": each["condition"]} if "condition" in each else {}),
            }
            for each in table["bindings"]
            if self._projects.with_ids(each["resource"]) == named
        ]
        # https://cloud.google.com/iam/docs/policies#versions: 3 where a binding has a condition, whatever is asked for.
        version = 3 if any("condition" in each for each in found) else 1
        return {"version": version, "etag": "ACAB", "bindings": found}

    def _is_granted(self, principal: str, permission: str, resource: str) -> bool:
        return any(
            permission in permissions and resource.startswith(beginning)
            for each in self._lineage(resource)
            for beginning, permissions in self._bindings.get((principal, each), ())
        )

    def _lineage(self, resource: str) -> Iterator[str]:
        """Yield a resource and what it is in: a table, its dataset, its project."""
        if resource.startswith("buckets/"):
            bucket = resource.split("/")[1]
            yield f"buckets/{bucket}"
            yield f"projects/{self._projects.owner(bucket)}"
            return
        parts = self._projects.with_ids(resource).split("/")
        for length in range(len(parts), 0, -2):
            yield "/".join(parts[:length])


def check_table(document: object) -> Table:
    """Return a document that is an IAM table.

    Raises:
        TableError: It is none.
    """
    bindings = document.get("bindings") if isinstance(document, dict) else None
    if not isinstance(document, dict) or set(document) != {"bindings"} or not isinstance(bindings, list):
        raise TableError(
            'iam: expected {"bindings": [{"principal": E-MAIL, "role": "roles/…", "resource": "projects/…"}]}.'
        )
    for number, binding in enumerate(bindings):
        where = f"iam: bindings[{number}]"
        if not isinstance(binding, dict) or set(binding) - {"condition"} != _BINDING:
            raise TableError(f"{where}: {binding!r}. Expected the keys {sorted(_BINDING)}, and condition.")
        if binding["role"] not in roles():
            raise TableError(f"{where}: role {binding['role']!r}. Expected one of: {', '.join(sorted(roles()))}.")
        if not any(pattern_of(kind).fullmatch(str(binding["resource"])) for kind in forms()):
            *others, last = forms().values()
            expected = f"{', '.join(others)} or {last}"
            raise TableError(f"{where}: resource {binding['resource']!r}. Expected {expected}.")
        _beginning(binding, where)
    return {"bindings": bindings}


@cache
def roles() -> dict[str, frozenset[str]]:
    """Return each role's permissions."""
    names = dict.fromkeys(role for service in services() for role in service.roles)
    return {role: frozenset(each for service in services() for each in service.roles.get(role, ())) for role in names}


@cache
def methods() -> dict[str, Mapping[str, str]]:
    """Return for each method the permissions that it needs, and of which kind of resource."""
    return {method: needed for service in services() for method, needed in service.methods.items()}


@cache
def forms() -> dict[str, str]:
    """Return how each kind of resource is named: a project and what is in it first, a capital for each name."""
    every = {kind: form for service in services() for kind, form in service.resources.items()}
    return dict(sorted(every.items(), key=lambda row: (not row[1].startswith("projects/"), row[1])))


@cache
def pattern_of(kind: str) -> re.Pattern[str]:
    """Return what names resources of a kind."""
    return re.compile(_NAME.sub("[^/]+", forms()[kind]))


def object_resource(bucket: str, name: str) -> str:
    """Return the resource that an object is; without a name the bucket."""
    return f"buckets/{bucket}/objects/{name}" if name else f"buckets/{bucket}"


def _permissions_of(table: Table) -> Bindings:
    permissions: Bindings = {}
    for number, binding in enumerate(table["bindings"]):
        held = _beginning(binding, f"iam: bindings[{number}]"), roles()[binding["role"]]
        permissions.setdefault((binding["principal"], binding["resource"]), []).append(held)
    return permissions


def _beginning(binding: Mapping[str, Any], where: str) -> str:
    """Return how a resource must begin for a binding to hold; empty: it has no condition.

    Raises:
        TableError: Its condition has another form, or is of another bucket.
    """
    if "condition" not in binding:
        return ""
    condition = binding["condition"]
    expression = str(condition.get("expression")) if isinstance(condition, dict) else repr(condition)
    found = _CONDITION.fullmatch(expression.strip())
    if found is None or binding["resource"] != f"buckets/{found[2]}":
        raise TableError(
            f"{where}: condition {expression!r} on {binding['resource']!r}. Expected a binding on buckets/B with"
            " resource.name.startsWith('projects/_/buckets/B/objects/PREFIX')."
        )
    return object_resource(found[2], found[3])


def _refusal(principal: str, permission: str, resource: str) -> str:
    having = ", ".join(sorted(role for role, permissions in roles().items() if permission in permissions))
    return (
        f"Permission '{permission}' denied on resource '{resource}' (or it may not exist) for {principal}."
        f" Expected a role that has it: {having or 'none of the local cloud'}."
    )
