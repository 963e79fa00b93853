"""Documents of what happened to the model after the verdict: its version, its place on the endpoint."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, Number, RunKey, Text, Value


class Registration(Document):
    """The version in the registry."""

    kind: Literal["registration"] = "registration"
    model: ModelId
    run_key: RunKey
    model_name: Text
    version_id: Text
    version_name: Text
    aliases: tuple[str, ...]


class SmokeTest(Value):
    """Golden requests sent to the endpoint, and the largest distance from the saved model's own answers."""

    requests: Count
    max_abs_error: Number


class Deployment(Document):
    """What the endpoint serves after this run; `deployed` is false when nothing was changed, and `words` says why."""

    kind: Literal["deployment"] = "deployment"
    model: ModelId
    run_key: RunKey
    deployed: bool
    words: Text
    endpoint_name: str | None
    deployed_model_id: str | None
    traffic: dict[str, Annotated[int, Field(ge=0, le=100)]]
    version_name: str | None
    previous_version_name: str | None
    smoke_test: SmokeTest | None
    log_table: str | None
