"""Where a scoring reads and writes: places of the model's YAML file, and never a folder or table of this system.

In: the section `scoring` of the YAML file, and the same with what the form changed. Out: nothing, or a refusal. A form
is filled in by whoever may trigger runs; the YAML file is changed by whoever may change code.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from retraining.core.bucket_folders import RESERVED_MODELS
from retraining.core.documents.document import MODEL_PATTERN
from retraining.core.errors import PlanError
from retraining.core.naming import bigquery
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.settings import Settings
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.scoring import Scoring


def require_places(spec: ModelSpec, asked: Scoring, settings: Settings) -> None:
    """Refuse a source or destination that is no place of the YAML file's, or one of this system's own.

    Args:
        spec: The model.
        asked: Its section `scoring`, with what the form changed.
        settings: Where things are.

    Raises:
        PlanError: It is; names the Param.
    """
    if spec.scoring is not None and asked != spec.scoring:
        _require_allowed(spec, spec.scoring, asked, settings.project)
    for name in ("files", "destination"):
        uri = getattr(asked, name) or ""
        if uri.startswith("gs://"):
            fixed = f"{uri}/" if name == "destination" else uri.partition("*")[0]
            _require_foreign_folder(f"scoring.{name} of {spec.name}", fixed, settings)
    if asked.files is None:
        _require_foreign_table(f"scoring.destination of {spec.name}", asked.destination, settings)


def _require_allowed(spec: ModelSpec, own: Scoring, asked: Scoring, project: str) -> None:
    """Refuse what the form names and the file does not allow; what its own `files` match is allowed."""
    fixed, wildcard, _ = (own.files or "").partition("*")
    files = (*own.allow_sources, fixed) if wildcard else own.allow_sources
    for name, value, named, allowed, key in (
        ("table", asked.table, own.table, own.allow_sources, "allow_sources"),
        ("files", asked.files, own.files, files, "allow_sources"),
        ("destination", asked.destination, own.destination, own.allow_destinations, "allow_destinations"),
    ):
        if value is None or _full(value, project) == _full(named, project) or _is_in_place(value, allowed, project):
            continue
        raise PlanError(
            f"Param {name} of {spec.name}",
            repr(value),
            f"{_listed(named, allowed)}, as {spec.name}.yaml has scoring.{name} and scoring.{key}",
            f"Trigger again with one of these, or add the place to scoring.{key} in {spec.name}.yaml",
        )
    folders = {posixpath.dirname(each) for each in (own.query, spec.data.query) if each}
    if asked.query not in (None, own.query) and not _is_below(posixpath.normpath(asked.query), folders):
        raise PlanError(
            f"Param query of {spec.name}",
            repr(asked.query),
            f"a file beside the model's own queries, in {', '.join(sorted(folders)) or 'no folder'}",
            f"Trigger again with one of these, or name the query in {spec.name}.yaml",
        )


def _full(place: str | None, project: str) -> str | None:
    return place if place is None or place.startswith("gs://") else bigquery.full_table(place, project)


def _is_in_place(value: str, allowed: Iterable[str], project: str) -> bool:
    return _is_in_folder(value, allowed) if value.startswith("gs://") else _is_table_in(value, allowed, project)


def _is_table_in(table: str, datasets: Iterable[str], project: str) -> bool:
    dataset = bigquery.full_table(table, project).rpartition(".")[0]
    return dataset in {each if "." in each else f"{project}.{each}" for each in datasets}


def _is_in_folder(uri: str, folders: Iterable[str]) -> bool:
    fixed = uri.partition("*")[0]
    if not ObjectAddress.parse(fixed).is_plain:
        return False
    return any(each.startswith("gs://") and fixed.startswith(each) for each in folders)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    """Tell whether a file is in one of the folders; below one of them too, where it is not that of all queries."""
    folder = posixpath.dirname(path)
    return any(folder == each or (each and folder.startswith(f"{each}/")) for each in folders)


def _require_foreign_folder(where: str, fixed: str, settings: Settings) -> None:
    """Refuse the folders of models and of this system: every first folder that a model could have for its name is one.

    So the folder of a model of tomorrow, or one that a later release adds, is closed today. A bucket that has documents
    alone, as jobs write elsewhere (`results_bucket`), is closed whole.
    """
    address = ObjectAddress.parse(fixed)
    folder = address.first_folder
    if settings.results_bucket != settings.bucket == address.bucket:
        expected = f"another bucket than that of the documents: jobs write nothing in gs://{settings.bucket}"
        raise PlanError(where, fixed, expected, f"For example gs://{settings.results_bucket}/for-scoring/…")
    is_ours = not folder or folder in RESERVED_MODELS or re.match(MODEL_PATTERN, folder)
    if address.bucket == settings.results_bucket and is_ours:
        raise PlanError(
            where,
            f"{fixed} in gs://{address.bucket}, where every folder that a model could be named after is this system's",
            "another bucket, or a folder there with a hyphen in its name: no model has one",
            f"For example gs://{address.bucket}/for-scoring/…",
        )


def _require_foreign_table(where: str, table: str, settings: Settings) -> None:
    """Refuse the names of this system's tables: run tables, request logs, the ledger and so on."""
    full = bigquery.full_table(table, settings.project)
    own = f"{settings.project}.{settings.dataset}"
    if full.lower().startswith(f"{own.lower()}.") and bigquery.is_reserved_table(full):
        raise PlanError(where, f"{table}, a name of this system's tables in {own}", "another", "Name another table")


def _listed(own: str | None, allowed: tuple[str, ...]) -> str:
    return ", ".join([*([own] if own else []), *(f"what is in {each}" for each in allowed)]) or "none"
