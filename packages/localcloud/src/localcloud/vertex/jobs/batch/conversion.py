"""What a model is sent of a row or a line, and what the output shows of it.

Comes in: a job's `instance_config`. Goes out: instances, and the fields beside the prediction.
https://cloud.google.com/vertex-ai/docs/predictions/get-batch-predictions#filter_and_transform_input_data
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from google.cloud.aiplatform_v1.types import BatchPredictionJob

from localcloud.vertex.wire.errors import ApiError, InvalidArgument

# A JSON value.
Json = Any
KEY = "key"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conversion:
    """How rows become instances.

    Attributes:
        is_array: An instance is an array, else an object; None: it is what a line is.
        key_field: Stands for the row in the output, and is not sent; "": none does.
        included: The only fields that are sent; empty: all but the excluded ones.
        excluded: Fields that are not sent; without a key the output shows them.
    """

    is_array: bool | None
    key_field: str
    included: tuple[str, ...]
    excluded: tuple[str, ...]

    @staticmethod
    def of(job: BatchPredictionJob) -> Conversion:
        """Return the conversion of a job; a table's rows are arrays unless it says otherwise."""
        config = job.instance_config
        of_table = job.input_config.instances_format == "bigquery"
        return Conversion(
            is_array={"array": True, "object": False}.get(config.instance_type, True if of_table else None),
            key_field=config.key_field,
            included=tuple(config.included_fields),
            excluded=tuple(config.excluded_fields),
        )

    def sent(self, fields: Sequence[str]) -> list[str]:
        """Return which fields are sent, in order."""
        hidden = {*self.excluded, self.key_field}
        return [field for field in self.included or fields if field not in hidden]

    def instance(self, row: dict[str, Json]) -> Json:
        """Return what the model is sent of a row."""
        sent = self.sent(list(row))
        return [row[field] for field in sent] if self.is_array else {field: row[field] for field in sent}

    def of_line(self, line: Json) -> tuple[Json, dict[str, Json]]:
        """Return what the model is sent of a line, and what the output shows of it.

        Raises:
            InvalidArgument: The line has no such fields.
        """
        if not isinstance(line, dict):
            if self.is_array is False or self.key_field or self.included or self.excluded:
                raise InvalidArgument(f"The line is a JSON {type(line).__name__}. Expected an object.")
            return line, {"instance": line}
        if missing := [field for field in (*self.included, self.key_field) if field and field not in line]:
            raise InvalidArgument(f"The line has no field {missing[0]!r}. It has {sorted(line)}.")
        instance = self.instance(line)
        if self.key_field:
            return instance, {KEY: line[self.key_field]}
        return instance, {**{name: line[name] for name in self.excluded if name in line}, "instance": instance}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows or lines that are sent together.

    Attributes:
        instances: What the model is sent, one each.
        shown: What the output shows of them, in the output's own form.
        problem: Why they cannot be sent.
    """

    instances: list[Json]
    shown: Any
    problem: ApiError | None = None
