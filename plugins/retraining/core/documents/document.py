"""What all documents share: strict reading, one way of writing, a digest of the stored bytes.

JSON that is stored without a contract of its own is read here too, as strictly.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, date, datetime
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)

from retraining.core.documents.json_text import read_json
from retraining.core.documents.messages import describe
from retraining.core.errors import ContractError
from retraining.core.untyped import JsonObject
from retraining.core.values import Amount as Amount
from retraining.core.values import Number as Number
from retraining.core.values import Share as Share
from retraining.core.values import Value as Value

# A document is written once: clearing its task alone finds it again.
DELETE_IT = "Delete this object, then clear the task that wrote it and what follows"
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
MODEL_PATTERN = r"^[a-z][a-z0-9_]{0,40}$"
RUN_KEY_PATTERN = r"^\d{8}t\d{6}z-[0-9a-f]{12}$"


def _whole_second_utc(value: datetime) -> datetime:
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError("a time needs its zone: write it in UTC with a trailing Z")
    value = value.astimezone(UTC)
    if value.microsecond:
        raise ValueError("times are whole seconds")
    return value


def format_time(value: datetime) -> str:
    """Write a time as `2013-11-20T03:00:00Z`."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


UtcTime = Annotated[
    datetime,
    AfterValidator(_whole_second_utc),
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema({"type": "string", "pattern": TIME_PATTERN}),
]
Day = Annotated[date, WithJsonSchema({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"})]
"""UTC day."""
Count = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
SchemaHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
"""First 32 hex digits of the SHA-256 of a span's counts and checksums."""
Crc32c = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]{6}==$")]
"""Base64 of the big-endian CRC32C, as Cloud Storage reports it."""
RunKey = Annotated[str, StringConstraints(pattern=RUN_KEY_PATTERN)]
"""The run's time, and a hash of everything that decides its result."""
ModelId = Annotated[str, StringConstraints(pattern=MODEL_PATTERN)]
Uri = Annotated[str, StringConstraints(pattern=r"^gs://[^/]+/.+$")]
Address = Annotated[str, StringConstraints(pattern=r"^(gs://[a-z0-9][a-z0-9._-]*/|/).+$")]
"""Cloud Storage address; an absolute path outside the cloud, where the trainer is run by hand."""
TableName = Annotated[str, StringConstraints(pattern=r"^[^.`\s]+\.[^.`\s]+\.[^.`\s]+$")]
"""project.dataset.table"""
Text = Annotated[str, StringConstraints(min_length=1)]
Positive = Annotated[int, Field(ge=1)]


class Document(Value):
    """A whole document: `kind` names its contract, `schema_version` the edition of it.

    Of a kind that is stored, docs/documents.md says what its docstring says; links in it are those of that page.
    """

    schema_version: Literal[1] = 1
    written_by: ClassVar[str]
    """Tasks and jobs, as that page names them."""
    read_by: ClassVar[str]
    """As `written_by`; files beside the code, such as the price list, have neither."""
    is_strict: ClassVar[bool] = True
    """Whether nothing is converted on the way in, in parts that are a spec's neither."""

    @classmethod
    def kind_name(cls) -> str:
        """Return the kind, which is also the stem of the object's name and of the schema's file."""
        return str(get_args(cls.model_fields["kind"].annotation)[0])

    @classmethod
    def parse(cls, data: bytes | str, where: str = "") -> Self:
        """Read a document.

        Args:
            data: JSON text.
            where: Its address, for the message when it is wrong.

        Raises:
            ContractError: It is not JSON, of another kind, or not what its contract says.
        """
        where = where or f"{cls.kind_name()}.json"
        raw = read_object(data, where, DELETE_IT)
        for key, expected in (("kind", cls.kind_name()), ("schema_version", 1)):
            if raw.get(key) != expected:
                raise ContractError(
                    where,
                    f"{key} is {repr(raw.get(key))[:80]}",
                    f"{expected!r}",
                    f"Read it with the release that wrote it. Or: {DELETE_IT[0].lower()}{DELETE_IT[1:]}",
                )
        try:
            text = json.dumps(cls.upgrade(raw))
            return cls.model_validate_json(text, strict=cls.is_strict or None, by_alias=True, by_name=False)
        except ValidationError as error:
            raise ContractError(
                where,
                describe(error, raw),
                f"a document of kind {cls.kind_name()}, as docs/documents.md describes it",
                DELETE_IT,
            ) from error

    @classmethod
    def upgrade(cls, raw: JsonObject) -> JsonObject:
        """Return what an earlier release wrote as it is written now; a kind with an older form fills this."""
        return raw

    def to_json(self) -> JsonObject:
        """Return the document as JSON values, for XCom and for templates."""
        values: JsonObject = self.model_dump(mode="json", by_alias=True)
        return values

    def to_bytes(self) -> bytes:
        """Return the bytes that are stored: sorted keys, two spaces, UTF-8, a newline at the end."""
        text = json.dumps(self.to_json(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode()

    def digest(self) -> str:
        """SHA-256 of the stored bytes, in hex."""
        return digest(self.to_bytes())


class RequestDocument(Document):
    """What a job is asked; Airflow writes it where no job may write."""

    digest_required: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the result counts only with this document's digest; false: of an earlier release, or for its image."""


class ResultDocument(Document):
    """What a job leaves, which counts for the request alone that it was made for."""

    request_digest: Annotated[Sha256 | None, Field(exclude_if=lambda value: value is None)] = None
    """SHA-256 of the request's bytes as the job read them; null: of an earlier release."""


def canonical_json(value: object) -> bytes:
    """One spelling per value: sorted keys, no spaces, UTF-8, no NaN. What hashes are taken of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


LOOK = "Look who wrote it, delete it, and clear the task that should have written it"


def read_object(data: bytes | str, where: str, way_out: str = LOOK) -> JsonObject:
    """Return a stored JSON object.

    Args:
        data: Its bytes.
        where: Its address.
        way_out: What a person does where it is none.

    Raises:
        ContractError: It is none.
    """
    try:
        value = read_json(data)
    except ValueError as error:
        raise ContractError(where, f"not JSON ({error})", "a JSON object", way_out) from error
    if not isinstance(value, dict):
        raise ContractError(where, f"a JSON {type(value).__name__}", "a JSON object", way_out)
    return value
