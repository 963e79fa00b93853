"""What a gRPC call and a message of Google's ask for, as the IAM table names it.

In: a method's path and its request. Out: the method's name in `service.json`, and the resources it concerns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from localcloud.access.iam import Resources

Message = Any  # a request of Google's, plain or proto-plus: they publish no types
_PROJECT = re.compile(r"projects/[^/]+")
_DATASET = re.compile(r"projects/[^/]+/datasets/[^/]+")


def asked(path: str, request: Message) -> tuple[str, Resources]:
    """Name a call: `/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows` is `BigQueryRead.ReadRows`."""
    service, _, name = path.strip("/").rpartition("/")
    kind = service.rsplit(".", 1)[-1].replace("BigQueryStorage", "BigQueryRead")  # v1beta1's name of the same
    plain = type(request).pb(request) if hasattr(type(request), "pb") else request
    texts = list(_texts(plain))
    projects = sorted({match[0] for text in texts if (match := _PROJECT.match(text))})
    return f"{kind}.{name}", {"project": projects, "dataset": _datasets(plain, texts)}


def about(resources: Resources) -> str:
    """Give what a fault's target may name: the call's dataset, or else its project."""
    return next((name for kind in ("dataset", "project") for name in resources.get(kind, ())), "")


def service_accounts(message: Message) -> list[str]:
    """Return the service accounts that a message wants something to run as."""
    accounts = []
    for field, value in message.ListFields():
        if field.name == "service_account" and isinstance(value, str):
            accounts.append(f"projects/{project_of(value)}/serviceAccounts/{value}")
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for child in value if field.is_repeated else [value]:
                accounts += service_accounts(child)
    return accounts


def project_of(account: str) -> str:
    """Return the project that a service account (name@project.iam.gserviceaccount.com) is in."""
    return account.partition("@")[2].partition(".")[0]


def _datasets(message: Message, texts: list[str]) -> list[str]:
    table = getattr(message, "table_reference", None)  # v1beta1
    if table is not None:
        return [f"projects/{table.project_id}/datasets/{table.dataset_id}"]
    return sorted({match[0] for text in texts if (match := _DATASET.match(text))})


def _texts(message: Message) -> Iterator[str]:
    """Yield all texts of a message that can be names of resources."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            if field.message_type.GetOptions().map_entry or field.message_type.full_name.startswith("google.protobuf"):
                continue
            for child in value if field.is_repeated else [value]:
                yield from _texts(child)
        elif field.cpp_type == field.CPPTYPE_STRING and field.type != field.TYPE_BYTES:
            yield from list(value) if field.is_repeated else [value]
