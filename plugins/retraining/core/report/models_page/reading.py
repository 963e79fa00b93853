"""What the Models page reads, part by part: what is broken of one model keeps no other from being shown.

In: the bytes of a stored object. Out: the parts that can be read, and of each other one what is wrong with it, for
those alone who may see that model.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from retraining.core.documents import ModelOverview, Overview
from retraining.core.documents.document import Value
from retraining.core.documents.messages import describe
from retraining.core.documents.overview import ModelSummary, ShownRun, ShownVersion, WatchRow
from retraining.core.errors import ContractError
from retraining.core.naming.dags import is_model
from retraining.core.report.models_page.history import RUNS_KEPT, WATCHES_KEPT, cut
from retraining.core.untyped import JsonObject

WAY_OUT = "Start maintain: it writes the object anew"
VERSIONS_READ = 200
_V = TypeVar("_V", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class ReadModels:
    """Rows of the object of all models, and of those that cannot be read what is wrong, by model."""

    rows: tuple[ModelSummary, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)


def read_models(data: bytes, uri: str, readable: Collection[str] | None = None) -> ReadModels:
    """Read the object of all models.

    Args:
        data: Its bytes.
        uri: Its address.
        readable: Models that the reader may see; of others nothing is read and nothing said. None: all.

    Raises:
        ContractError: It is no such object; the message quotes no model's row.
    """
    found = _envelope(data, uri, Overview.kind_name()).get("models")
    if not isinstance(found, list):
        raise ContractError(uri, "no list of models", "one", WAY_OUT)
    rows: dict[str, ModelSummary] = {}
    broken: dict[str, str] = {}
    for raw in found:
        model = raw.get("model") if isinstance(raw, dict) else None
        if not isinstance(model, str) or not is_model(model) or (readable is not None and model not in readable):
            continue  # whose it is cannot be said, or is not to be said
        try:
            rows[model] = _read(ModelSummary, raw)
        except ContractError as error:
            broken[model] = _problem(error)
    return ReadModels(rows=tuple(rows.values()), broken={m: why for m, why in broken.items() if m not in rows})


def read_model(data: bytes, uri: str, model: str) -> ModelOverview:
    """Read a model's object; rows of it that cannot be read stand in `unreadable`.

    Raises:
        ContractError: It is no such object, or is another model's.
    """
    raw = _envelope(data, uri, ModelOverview.kind_name())
    unreadable = raw.get("unreadable")
    lost: dict[str, str] = dict(unreadable) if isinstance(unreadable, dict) else {}
    parts: tuple[tuple[str, type[Value], int], ...] = (
        ("runs", ShownRun, RUNS_KEPT),
        ("watches", WatchRow, WATCHES_KEPT),
        ("versions", ShownVersion, VERSIONS_READ),
    )
    for name, kind, most in parts:
        raw[name] = _readable_rows(raw.get(name), name, kind, lost)[:most]
    raw["unreadable"] = lost
    try:
        read = ModelOverview.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise ContractError(uri, describe(error, raw), "a model's object", WAY_OUT) from error
    if read.summary.model != model:
        raise ContractError(uri, f"the object of {read.summary.model}", f"that of {model}", WAY_OUT)
    return read


def _readable_rows(found: object, name: str, kind: type[Value], lost: dict[str, str]) -> list[Any]:
    kept = []
    for place, row in enumerate(found if isinstance(found, list) else []):
        try:
            _read(kind, row)
        except ContractError as error:
            lost[f"{name}[{place}]"] = _problem(error)
        else:
            kept.append(row)
    return kept


def _problem(error: ContractError) -> str:
    """Return what is wrong, as text that can be sent: a document may hold halves of characters."""
    return cut(str(error).encode(errors="replace").decode())


def _envelope(data: bytes, uri: str, kind: str) -> JsonObject:
    """Return the parts of a document of a kind, not held to their contract yet."""
    try:
        raw = json.loads(data)  # not strictly: a NaN in one model's row is that row's matter
    except (ValueError, RecursionError) as error:
        raise ContractError(uri, f"not JSON ({type(error).__name__})", "a JSON document", WAY_OUT) from error
    if not isinstance(raw, dict) or raw.get("kind") != kind or raw.get("schema_version") != 1:
        what = f"kind is {repr(raw.get('kind'))[:80]}" if isinstance(raw, dict) else f"a JSON {type(raw).__name__}"
        raise ContractError(uri, what, f"{kind!r} of this release", WAY_OUT)
    return raw


def _read(kind: type[_V], raw: object) -> _V:
    try:
        return kind.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        values = raw if isinstance(raw, dict) else {}
        raise ContractError("its row", describe(error, values), "one of this release", WAY_OUT) from error
