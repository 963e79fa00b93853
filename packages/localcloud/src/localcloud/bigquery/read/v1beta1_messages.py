"""The messages of google.cloud.bigquery.storage.v1beta1, which no Google library ships any more, built from a table.

In: names, numbers and types as Google published them
(https://github.com/googleapis/googleapis/tree/master/google/cloud/bigquery/storage/v1beta1). Out: `MESSAGES`, protobuf
classes by name. Enums are numbers here and oneofs plain fields: on the wire that is the same.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from localcloud.untyped import Untyped

_PACKAGE = "google.cloud.bigquery.storage.v1beta1"
_TIMESTAMP = ".google.protobuf.Timestamp"

_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "TableReference": {"project_id": (1, "string"), "dataset_id": (2, "string"), "table_id": (3, "string")},
    "TableModifiers": {"snapshot_time": (1, _TIMESTAMP)},
    "TableReadOptions": {"selected_fields": (1, "repeated string"), "row_restriction": (2, "string")},
    "AvroSchema": {"schema": (1, "string")},
    "AvroRows": {"serialized_binary_rows": (1, "bytes"), "row_count": (2, "int64")},
    "ArrowSchema": {"serialized_schema": (1, "bytes")},
    "ArrowRecordBatch": {"serialized_record_batch": (1, "bytes"), "row_count": (2, "int64")},
    "Stream": {"name": (1, "string")},
    "StreamPosition": {"stream": (1, "Stream"), "offset": (2, "int64")},
    "ReadSession": {
        "name": (1, "string"),
        "expire_time": (2, _TIMESTAMP),
        "streams": (4, "repeated Stream"),
        "avro_schema": (5, "AvroSchema"),
        "arrow_schema": (6, "ArrowSchema"),
        "table_reference": (7, "TableReference"),
        "table_modifiers": (8, "TableModifiers"),
        "sharding_strategy": (9, "int32"),
    },
    "CreateReadSessionRequest": {
        "table_reference": (1, "TableReference"),
        "table_modifiers": (2, "TableModifiers"),
        "requested_streams": (3, "int32"),
        "read_options": (4, "TableReadOptions"),
        "format": (5, "int32"),
        "parent": (6, "string"),
        "sharding_strategy": (7, "int32"),
    },
    "ReadRowsRequest": {"read_position": (1, "StreamPosition")},
    "Progress": {"at_response_start": (1, "float"), "at_response_end": (2, "float")},
    "StreamStatus": {
        "estimated_row_count": (1, "int64"),
        "fraction_consumed": (2, "float"),
        "is_splittable": (3, "bool"),
        "progress": (4, "Progress"),
    },
    "ThrottleStatus": {"throttle_percent": (1, "int32")},
    "ReadRowsResponse": {
        "status": (2, "StreamStatus"),
        "avro_rows": (3, "AvroRows"),
        "arrow_record_batch": (4, "ArrowRecordBatch"),
        "throttle_status": (5, "ThrottleStatus"),
        "row_count": (6, "int64"),
    },
    "BatchCreateReadSessionStreamsRequest": {"session": (1, "ReadSession"), "requested_streams": (2, "int32")},
    "BatchCreateReadSessionStreamsResponse": {"streams": (1, "repeated Stream")},
    "FinalizeStreamRequest": {"stream": (2, "Stream")},
    "SplitReadStreamRequest": {"original_stream": (1, "Stream"), "fraction": (2, "float")},
    "SplitReadStreamResponse": {"primary_stream": (1, "Stream"), "remainder_stream": (2, "Stream")},
}


def _build() -> dict[str, Untyped]:
    file = descriptor_pb2.FileDescriptorProto(
        name="google/cloud/bigquery/storage/v1beta1/storage.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[timestamp_pb2.DESCRIPTOR.name],
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


def _add_field(message: Untyped, name: str, number: int, kind: str) -> None:
    proto = descriptor_pb2.FieldDescriptorProto
    repeated, kind = kind.startswith("repeated "), kind.removeprefix("repeated ")
    field = message.field.add(name=name, number=number)
    field.label = proto.LABEL_REPEATED if repeated else proto.LABEL_OPTIONAL
    scalar = getattr(proto, f"TYPE_{kind.upper()}", None) if kind.islower() else None
    field.type = proto.TYPE_MESSAGE if scalar is None else scalar
    if scalar is None:
        field.type_name = kind if kind.startswith(".") else f".{_PACKAGE}.{kind}"


MESSAGES = _build()
"""Classes by name, as Google's generated modules would have them."""
