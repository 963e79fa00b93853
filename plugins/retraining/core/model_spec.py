"""A model's whole specification.

In: `include/models/<name>.yaml` and a run's overrides. Out: a frozen, validated `ModelSpec`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from retraining.core import spec_sections as sections
from retraining.core.bucket_folders import RESERVED_MODELS
from retraining.core.errors import PlanError, SpecError
from retraining.core.spec_cluster import Section, resolve_tier, strategy_problem
from retraining.core.spec_file import explain
from retraining.core.spec_pending import refuse_pending
from retraining.core.spec_tuning import REPORTED, Tuning
from retraining.core.sql_text import PARAMETERS, require_select
from retraining.core.suggestions import suggest
from retraining.core.yaml_text import SpecText, read_spec_file


class ModelSpec(Section):
    """What to train, from what, how to judge, deploy and watch it.

    `schedule` is a cron expression in UTC; null: only by hand or by the monitor. `budget_usd` is what a run's jobs may
    cost at list prices when each runs until its timeout.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    description: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    owner: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "retraining"
    tags: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...], Field(max_length=50)
    ] = ()
    schedule: sections.Cron | None = None
    budget_usd: Annotated[float, Field(gt=0, le=10**9)] | None = None
    data: sections.Data
    features: Annotated[tuple[sections.Feature, ...], Field(min_length=1, max_length=sections.MAX_FEATURES)]
    label: sections.Label
    training: sections.Training
    tuning: Tuning | None = None
    evaluation: sections.Evaluation
    deployment: sections.Deployment = Field(default_factory=sections.Deployment)
    monitoring: sections.Monitoring = Field(default_factory=sections.Monitoring)

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> Self:
        seen: set[str] = set()
        for name in self.feature_names:
            if name.lower() in seen:
                raise ValueError(f"feature {name!r} stands twice (BigQuery does not tell case apart)")
            seen.add(name.lower())
        for role, name in (
            ("label.name", self.label.name),
            ("data.key", self.data.key),
            ("data.event_time", self.data.event_time),
        ):
            if name.lower() in seen:
                raise ValueError(f"{role} is {name!r}, which is also a feature: the model would see what it must not")
        if len({self.label.name.lower(), self.data.key.lower(), self.data.event_time.lower()}) < 3:
            raise ValueError("label.name, data.key and data.event_time must be three different columns")
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        answers = [self.label.name] if self.label.kind == "multiclass" else []
        numbers = [feature.name for feature in self.features if feature.kind == "numeric"]
        for where, columns, known in (
            ("evaluation.slices", self.evaluation.slices, self.feature_names),
            ("monitoring.drift.features", tuple(self.monitoring.drift.features), [*self.feature_names, *answers]),
            ("data.checks.max_null_fraction", tuple(self.data.checks.max_null_fraction), self.feature_names),
            ("data.checks.ranges", tuple(self.data.checks.ranges), numbers),
        ):
            for column in columns:
                if column not in known:
                    raise ValueError(_unknown(where, column, known))
        for parameter in self.tuning.parameters if self.tuning else ():
            names = list(self.training.hyperparameters)
            if parameter.name not in names:
                raise ValueError(_unknown("tuning.parameters", parameter.name, names))
        reported = list(REPORTED[self.label.kind])
        if self.tuning and self.tuning.metric not in reported:
            raise ValueError(_unknown("tuning.metric", self.tuning.metric, reported))
        return self

    @model_validator(mode="after")
    def _only_values_are_compared(self) -> Self:
        whole = {feature.name: _WHOLE[feature.kind] for feature in self.features if feature.kind in _WHOLE}
        for where, columns in (
            ("evaluation.slices", self.evaluation.slices),
            ("monitoring.drift.features", tuple(self.monitoring.drift.features)),
            ("data.checks.ranges", tuple(self.data.checks.ranges)),
        ):
            for column in columns:
                if column in whole:
                    raise ValueError(f"{where} names {column!r}, which is {whole[column]}: it has no values to compare")
        return self

    @model_validator(mode="after")
    def _files_hold_the_features(self) -> Self:
        for feature in self.features:
            if feature.kind not in ("image", "sequence"):
                continue
            what = "an image that the export resizes" if feature.kind == "image" else "a sequence"
            if self.training.input != "tfrecord":
                raise ValueError(
                    f"training.input {self.training.input} cannot hold {feature.name!r}, {what}; expected tfrecord. "
                    "Remove the key"
                )
            if feature.kind == "sequence" and self.data.layout.rows_per_record > 1:
                raise ValueError(
                    f"data.layout.rows_per_record {self.data.layout.rows_per_record} cannot hold {feature.name!r}, "
                    f"{what}; expected 1. Remove the key"
                )
        return self

    @model_validator(mode="after")
    def _strategy_fits_cluster(self) -> Self:
        cluster = resolve_tier(self.training.cluster)
        workers, servers = cluster.workers, cluster.parameter_servers
        assert cluster.chief is not None  # noqa: S101 - a tier and CUSTOM alike have one
        problem = strategy_problem(
            self.training.strategy, cluster.chief, workers.count if workers else 0, servers.count if servers else 0
        )
        if problem:
            raise ValueError(f"training.{problem}")
        return self

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the file's order."""
        return [feature.name for feature in self.features]

    def with_overrides(self, overrides: Mapping[str, Any]) -> ModelSpec:
        """Another spec with some values replaced.

        Args:
            overrides: Dotted path to value, for example `{"data.window_days": 30,
                "training.hyperparameters": {"dropout": 0.2}}`. A mapping is merged into the one it meets.

        Raises:
            PlanError: A path is not in the spec, or the result is not a valid spec.
        """
        if not overrides:
            return self
        values = self.model_dump(mode="json")
        for path, value in overrides.items():
            if path.split(".")[0] in ("name", "owner", "tags", "schedule"):
                raise PlanError(self.name, f"an override of {path!r}", "a value of this run", "Change the YAML file")
            _replace(values, path.split("."), value, self.name)
        try:
            return ModelSpec.model_validate(values)
        except ValidationError as error:
            found = explain(error, SpecText(f"{self.name} with overrides", values, {}), ModelSpec)
            raise PlanError(found.where, found.found, found.expected, found.way_out or "Correct the Params") from error


def load_spec(path: Path) -> ModelSpec:
    """Read, parse and validate one file.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    text = read_spec_file(path)
    twin = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
    if twin.is_file():
        raise SpecError(path.name, f"{twin.name} beside it", "one file per model", "Remove one of them")
    try:
        spec = ModelSpec.model_validate(text.values)
    except ValidationError as error:
        raise explain(error, text, ModelSpec) from error
    if problem := name_problem(spec.name):
        line = text.line(("name",))
        raise SpecError(f"{path.name}, line {line}", *problem, "Rename the model and its file")
    if spec.name != path.stem:
        raise SpecError(
            f"{path.name}, line {text.line(('name',))}",
            f"name is {spec.name!r}",
            f"{path.stem!r}, as the file is called",
            "Rename one of them",
        )
    refuse_pending(spec, text)
    return spec


def name_problem(name: str) -> tuple[str, str] | None:
    """What is found and what was expected of a name that no model may have; None: it may.

    Held to where a file is read: a plan that an earlier release made of such a model can still be read.
    """
    if name in RESERVED_MODELS:
        return f"name is {name!r}, a folder of the bucket that is no model's", f"none of {_listed(RESERVED_MODELS)}"
    if name.endswith("_"):
        return f"name is {name!r}", "a letter or digit at its end: endpoints' ids have - for _, and none at the end"
    return None


def load_query(spec: ModelSpec, include: Path) -> str:
    """Text of the spec's examples query.

    Raises:
        SpecError: The file is missing, empty, outside include/sql, or not one SELECT with its parameters.
    """
    return _read_sql(spec.data.query, f"{spec.name}.yaml, data.query", include, PARAMETERS)


def load_golden_query(spec: ModelSpec, include: Path) -> str | None:
    """Text of the query of the spec's frozen set; None: it has none.

    Raises:
        SpecError: The file is missing, empty, outside include/sql, or not one SELECT with its parameters.
    """
    wanted = spec.data.golden_query
    return None if wanted is None else _read_sql(wanted, f"{spec.name}.yaml, data.golden_query", include, ())


def _read_sql(name: str, where: str, include: Path, parameters: tuple[str, ...]) -> str:
    folder = (include / "sql").resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise SpecError(where, f"{name!r} leads outside", "a file below include/sql")
    if not path.is_file():
        known = sorted(str(found.relative_to(folder)) for found in folder.rglob("*.sql"))
        raise SpecError(where, f"no file {name!r}", "a file below include/sql", suggest(name, known))
    try:
        sql = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(where, f"{name!r} cannot be read ({error})", "a UTF-8 text file") from error
    if not sql.strip():
        raise SpecError(where, f"{name!r} is empty", "a SELECT that gives one row per example")
    require_select(sql, f"{where}, {name}", parameters)
    return sql


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def find_specs(include: Path) -> list[Path]:
    """Files of all models, sorted by name.

    Raises:
        SpecError: There is no folder `models`.
    """
    folder = include / "models"
    if not folder.is_dir():
        raise SpecError(str(folder), "no such folder", "one YAML file per model in it", "Run make bundle again")
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())


def plain_name(path: Path) -> str:
    """What a model's DAGs are called after; of a file whose name no DAG can have, something like it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:200]


def _replace(values: dict[str, Any], path: list[str], value: object, name: str) -> None:
    target = values
    for depth, part in enumerate(path[:-1]):
        step = target.get(part)
        if not isinstance(step, dict):
            raise PlanError(
                name, f"no {'.'.join(path[: depth + 1])!r}", f"one of: {', '.join(target)}", suggest(part, list(target))
            )
        target = step
    last = path[-1]
    free = path[:-1] in _FREE_KEYS
    if last not in target and not free:
        raise PlanError(name, f"no {'.'.join(path)!r}", f"one of: {', '.join(target)}", suggest(last, list(target)))
    old = target.get(last)
    if isinstance(old, dict) and isinstance(value, Mapping):
        target[last] = {**copy.deepcopy(old), **value}
    else:
        target[last] = value


_WHOLE = {"image": "an image", "sequence": "a sequence", "text": "a text"}
_FREE_KEYS = (
    ["training", "hyperparameters"],
    ["data", "checks", "max_null_fraction"],
    ["data", "checks", "ranges"],
    ["data", "checks", "severity"],
    ["monitoring", "drift", "features"],
)


def _unknown(where: str, name: str, known: list[str]) -> str:
    return " ".join(
        part for part in (f"{where} names {name!r}; expected one of: {', '.join(known)}.", suggest(name, known)) if part
    )
