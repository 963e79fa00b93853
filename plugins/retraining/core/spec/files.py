"""Models' files: found, read, and refused when anything is wrong with them.

In: `include/models/<name>.yaml` and the SQL that it names. Out: a `ModelSpec`, or a message with all findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from retraining.core.bucket_folders import RESERVED_MODELS
from retraining.core.errors import SpecError, suggest
from retraining.core.settings import stage_name
from retraining.core.spec.messages import explain
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.source_files import EVERY_ROW
from retraining.core.spec.sql_file import AS_OF, PARAMETERS, require_select, require_time_travel
from retraining.core.spec.stages import lay_over, require_same_places
from retraining.core.spec.teams import as_team_has_it, folder_of
from retraining.core.spec.yaml_file import SpecText, read_spec_file

REMOVED: dict[tuple[str, ...], tuple[str, str]] = {
    ("deployment", "canary", "max_error_rate"): (
        "deployment.canary.max_error_increase: how much more often than the version before, in the same minutes",
        "Write max_error_increase: 0.002, which lets pass two more errors in a thousand requests, or leave it out",
    ),
    ("deployment", "canary_percent"): (
        "deployment.canary, which has the steps and what must hold at each",
        "Write deployment.canary: {percent: [10, 50, 100]}, or no canary: a version has all traffic at once",
    ),
}
"""Keys of earlier releases, by their path: what is expected in their place, and the way out."""


def load_spec(path: Path, stage: str | None = None) -> ModelSpec:
    """Read and parse one file, lay over it what its stage changes, and validate what comes of it.

    Args:
        path: Of the file, in the folder `models`.
        stage: Of `environments.yaml` beside that folder; None: the one that this Airflow environment is
            (`RETRAINING_STAGE`); empty: none, the file as it is.

    Raises:
        SpecError: Anything is wrong with it, or with what the stage says; the message has all findings, with lines.
    """
    text = _as_stage_and_team_have_it(path, stage)
    _refuse_removed(text)
    duplicate = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
    if duplicate.is_file():
        raise SpecError(path.name, f"{duplicate.name} beside it", "one file per model", "Remove one of them")
    try:
        spec = ModelSpec.model_validate(text.values)
    except ValidationError as error:
        raise explain(error, text, ModelSpec) from error
    if problem := name_problem(spec.name):
        raise SpecError(text.place(("name",)), *problem, "Rename the model and its file")
    if spec.name != path.stem:
        raise SpecError(
            text.place(("name",)),
            f"name is {spec.name!r}",
            f"{path.stem!r}, as the file is called",
            "Rename one of them",
        )
    return spec


def _as_stage_and_team_have_it(path: Path, stage: str | None) -> SpecText:
    text = read_spec_file(path)
    if stage is None:
        require_same_places(path)
    return as_team_has_it(lay_over(text, path, stage_name() if stage is None else stage), path)


def _refuse_removed(text: SpecText) -> None:
    """Refuse a key of an earlier release by its name.

    Raises:
        SpecError: The file has one.
    """
    for path, (expected, way_out) in REMOVED.items():
        values: object = text.values
        for section in path[:-1]:
            values = values.get(section) if isinstance(values, dict) else None
        if isinstance(values, dict) and path[-1] in values:
            raise SpecError(text.place(path), f"{'.'.join(path)} is {values[path[-1]]}", expected, way_out)


def name_problem(name: str) -> tuple[str, str] | None:
    """Return what is found and what was expected of a name that no model may have; None: it may.

    Held to where a file is read: a plan that an earlier release made of such a model can still be read.
    """
    if name in RESERVED_MODELS:
        return f"name is {name!r}, a folder of the bucket that is no model's", f"none of {_listed(RESERVED_MODELS)}"
    if name.endswith("_"):
        return f"name is {name!r}", "a letter or digit at its end: endpoints' ids have - for _, and none at the end"
    return None


def load_query(spec: ModelSpec, include: Path) -> str:
    """Return the text of the spec's examples query; of files without one: every row.

    Raises:
        SpecError: The file is missing, empty, outside include/sql, or not one SELECT with its parameters.
    """
    data, where = spec.data, f"{spec.name}.yaml, data.query"
    if data.query is None:
        return EVERY_ROW
    known = AS_OF if data.split == "hash" else PARAMETERS
    # Files are loaded whole, whatever the query takes of them.
    required, optional = ((), known) if data.files or data.split == "hash" else (known, ())
    sql = _read_sql(data.query, where, folder_of(include, spec.name), required, optional)
    require_time_travel(sql, f"{where}, {data.query}", asked=data.time_travel)
    return sql


def load_frozen_set_query(spec: ModelSpec, include: Path) -> str | None:
    """Return the text of the query of the spec's frozen set; None: it has none.

    Raises:
        SpecError: The file is missing, empty, outside include/sql, or not one SELECT with its parameters.
    """
    path = spec.data.golden_query
    if path is None:
        return None
    return _read_sql(path, f"{spec.name}.yaml, data.golden_query", folder_of(include, spec.name), ())


def load_assertions(spec: ModelSpec, include: Path) -> dict[str, str]:
    """Return the texts of the queries of the spec's own assertions, by their names.

    Raises:
        SpecError: A file is missing, empty, outside include/sql, or not one SELECT with the parameters of examples at
            most.
    """
    known = AS_OF if spec.data.split == "hash" else PARAMETERS
    folder = folder_of(include, spec.name)
    return {
        item.name: _read_sql(item.query, f"{spec.name}.yaml, data.assertions, {item.name}", folder, (), known)
        for item in spec.data.assertions
    }


def load_scoring_query(model: str, path: str, include: Path) -> str:
    """Return the text of a query whose rows are scored.

    Raises:
        SpecError: The file is missing, empty, outside include/sql, or not one SELECT that uses `@as_of` at most.
    """
    return _read_sql(path, f"{model}, scoring.query", folder_of(include, model), (), ("as_of",))


def load_labels_query(spec: ModelSpec, include: Path) -> str | None:
    """Return the text of the query of the labels by which the monitor judges answers; None: the examples query is it.

    Raises:
        SpecError: The file is missing, empty, outside include/sql, or not one SELECT with its parameters at most.
    """
    path = spec.monitoring.performance.labels_query
    where = f"{spec.name}.yaml, monitoring.performance.labels_query"
    return None if path is None else _read_sql(path, where, folder_of(include, spec.name), (), PARAMETERS)


def _read_sql(name: str, where: str, home: Path, parameters: tuple[str, ...], optional: tuple[str, ...] = ()) -> str:
    folder = (home / "sql").resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise SpecError(where, f"{name!r} leads outside", "a file below include/sql")
    if not path.is_file():
        known = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.sql"))
        raise SpecError(where, f"no file {name!r}", "a file below include/sql", suggest(name, known))
    try:
        sql = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(where, f"{name!r} cannot be read ({error})", "a UTF-8 text file") from error
    if not sql.strip():
        raise SpecError(where, f"{name!r} is empty", "a SELECT that gives one row per example")
    require_select(sql, f"{where}, {name}", parameters, optional)
    return sql


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
