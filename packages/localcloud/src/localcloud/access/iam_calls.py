"""What a gRPC call and a message of Google's ask for, as the IAM table names it.

In: a method's path and its request. Out: the method's name in `service.json`, and the resources it concerns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localcloud.access.iam import Resources, forms, pattern_of

Message = Any  # a request of Google's, plain or proto-plus: they publish no types


def asked(path: str, request: Message) -> tuple[str, Resources]:
    """Name a call: `/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows` is `BigQueryRead.ReadRows`."""
    plain = type(request).pb(request) if hasattr(type(request), "pb") else request
    texts = list(_texts(plain))
    named = {each: sorted({match[0] for text in texts if (match := pattern_of(each).match(text))}) for each in forms()}
    return name_of(path), {**named, **_table_of(plain)}


def name_of(path: str) -> str:
    """Return a call's name by its path alone."""
    service, _, name = path.strip("/").rpartition("/")
    kind = service.rsplit(".", 1)[-1].replace("BigQueryStorage", "BigQueryRead")  # v1beta1's name of the same
    return f"{kind}.{name}"


def about(resources: Resources) -> str:
    """Return what a fault's target may name: of what a call concerns, the innermost."""
    return max((name for names in resources.values() for name in names), key=lambda name: name.count("/"), default="")


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


def _table_of(message: Message) -> Resources:
    """Return the dataset of the table that v1beta1 of the Storage Read API names in parts."""
    table = getattr(message, "table_reference", None)
    return {} if table is None else {"dataset": [f"projects/{table.project_id}/datasets/{table.dataset_id}"]}


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
