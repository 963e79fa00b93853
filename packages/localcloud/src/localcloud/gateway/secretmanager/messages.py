"""The messages of google.cloud.secretmanager.v1, whose library the local cloud does not have, built from a table.

In: names, numbers and types as Google published them
(https://github.com/googleapis/googleapis/tree/master/google/cloud/secretmanager/v1). Out: `MESSAGES`, protobuf classes
by name. Oneofs are plain fields here: on the wire that is the same.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2

from localcloud.untyped import Untyped

PACKAGE = "google.cloud.secretmanager.v1"
_TIMESTAMP, _DURATION = ".google.protobuf.Timestamp", ".google.protobuf.Duration"
_REPEATED, _OPTIONAL, _MAP = "repeated ", "optional ", "map "

_Fields = dict[str, tuple[int, str]]
_NAMED: _Fields = {"name": (1, "string"), "etag": (2, "string")}
_PAGE: _Fields = {"page_size": (2, "int32"), "page_token": (3, "string"), "filter": (4, "string")}
_FIELDS: dict[str, _Fields] = {
    "CustomerManagedEncryption": {"kms_key_name": (1, "string")},
    "Replication": {"automatic": (1, "Replication.Automatic"), "user_managed": (2, "Replication.UserManaged")},
    "Replication.Automatic": {"customer_managed_encryption": (1, "CustomerManagedEncryption")},
    "Replication.UserManaged": {"replicas": (1, "repeated Replication.UserManaged.Replica")},
    "Replication.UserManaged.Replica": {
        "location": (1, "string"), "customer_managed_encryption": (2, "CustomerManagedEncryption"),
    },
    "Topic": {"name": (1, "string")},
    "Rotation": {"next_rotation_time": (1, _TIMESTAMP), "rotation_period": (2, _DURATION)},
    "PolicyMember": {"iam_policy_name_principal": (1, "string"), "iam_policy_uid_principal": (2, "string")},
    "Secret": {
        "name": (1, "string"),
        "replication": (2, "Replication"),
        "create_time": (3, _TIMESTAMP),
        "labels": (4, "map string"),
        "topics": (5, "repeated Topic"),
        "expire_time": (6, _TIMESTAMP),
        "ttl": (7, _DURATION),
        "etag": (8, "string"),
        "rotation": (9, "Rotation"),
        "version_aliases": (11, "map int64"),
        "annotations": (13, "map string"),
        "version_destroy_ttl": (14, _DURATION),
        "customer_managed_encryption": (15, "CustomerManagedEncryption"),
        "tags": (16, "map string"),
        "secret_type": (17, "int32"),
        "policy_member": (18, "PolicyMember"),
    },
    "AutomaticStatus": {},
    "ReplicaStatus": {"location": (1, "string")},
    "UserManagedStatus": {"replicas": (1, "repeated ReplicaStatus")},
    "ReplicationStatus": {"automatic": (1, "AutomaticStatus"), "user_managed": (2, "UserManagedStatus")},
    "SecretVersion": {
        "name": (1, "string"),
        "create_time": (2, _TIMESTAMP),
        "destroy_time": (3, _TIMESTAMP),
        "state": (4, "State"),
        "replication_status": (5, "ReplicationStatus"),
        "etag": (6, "string"),
        "client_specified_payload_checksum": (7, "bool"),
    },
    "SecretPayload": {"data": (1, "bytes"), "data_crc32c": (2, "optional int64")},
    "ListSecretsRequest": {"parent": (1, "string"), **_PAGE},
    "ListSecretsResponse": {
        "secrets": (1, "repeated Secret"), "next_page_token": (2, "string"), "total_size": (3, "int32"),
    },
    "CreateSecretRequest": {"parent": (1, "string"), "secret_id": (2, "string"), "secret": (3, "Secret")},
    "AddSecretVersionRequest": {"parent": (1, "string"), "payload": (2, "SecretPayload")},
    "GetSecretRequest": {"name": (1, "string")},
    "DeleteSecretRequest": _NAMED,
    "ListSecretVersionsRequest": {"parent": (1, "string"), **_PAGE},
    "ListSecretVersionsResponse": {
        "versions": (1, "repeated SecretVersion"), "next_page_token": (2, "string"), "total_size": (3, "int32"),
    },
    "GetSecretVersionRequest": {"name": (1, "string")},
    "AccessSecretVersionRequest": {"name": (1, "string")},
    "AccessSecretVersionResponse": {"name": (1, "string"), "payload": (2, "SecretPayload")},
    "DisableSecretVersionRequest": _NAMED,
    "EnableSecretVersionRequest": _NAMED,
    "DestroySecretVersionRequest": _NAMED,
}  # fmt: skip
_STATES = ("STATE_UNSPECIFIED", "ENABLED", "DISABLED", "DESTROYED")


def _build() -> dict[str, Untyped]:
    file = descriptor_pb2.FileDescriptorProto(
        name="google/cloud/secretmanager/v1/local.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=[timestamp_pb2.DESCRIPTOR.name, duration_pb2.DESCRIPTOR.name],
    )
    states = file.enum_type.add(name="State")
    for number, name in enumerate(_STATES):
        states.value.add(name=name, number=number)
    made: dict[str, Untyped] = {}
    for name, fields in _FIELDS.items():
        outer, _, own = name.rpartition(".")
        message = made[name] = (made[outer].nested_type if outer else file.message_type).add(name=own)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _FIELDS}


def _add_field(message: Untyped, name: str, number: int, kind: str) -> None:
    proto = descriptor_pb2.FieldDescriptorProto
    field = message.field.add(name=name, number=number, label=proto.LABEL_OPTIONAL)
    if kind.startswith(_MAP):
        entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, kind.removeprefix(_MAP))
        field.label, field.type = proto.LABEL_REPEATED, proto.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"
        return
    if kind.startswith(_REPEATED):
        field.label = proto.LABEL_REPEATED
    if kind.startswith(_OPTIONAL):  # whether it was given is told from its being 0
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    kind = kind.removeprefix(_REPEATED).removeprefix(_OPTIONAL)
    if kind.islower() and not kind.startswith("."):
        field.type = getattr(proto, f"TYPE_{kind.upper()}")
        return
    field.type = proto.TYPE_ENUM if kind == "State" else proto.TYPE_MESSAGE
    field.type_name = kind if kind.startswith(".") else f".{PACKAGE}.{kind}"


MESSAGES = _build()
"""Classes by name, as Google's generated modules would have them."""
