"""The plan of a scoring: who is scored, by which version, into which table, at what price.

A scoring reads and writes in places of the model's YAML file, and never in a folder or table of this system. A form is
filled in by whoever may trigger runs; the YAML file is changed by whoever may change code.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retraining.core.bucket_folders import RESERVED_MODELS
from retraining.core.catalog.cost import Prices, batch_estimate
from retraining.core.documents.document import MODEL_PATTERN, digest
from retraining.core.documents.plan import Machines, Plan, Pool, Query, Trigger
from retraining.core.documents.scoring import Destination, ScoringLog, ScoringPlan, ScoringSource, ScoringVersion
from retraining.core.documents.training import Report
from retraining.core.errors import PlanError, SpecError, suggest
from retraining.core.naming import bigquery, storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.run_keys import RunKey
from retraining.core.planning.windows import AsOf
from retraining.core.promotion.versions import Version
from retraining.core.settings import Settings
from retraining.core.spec.features import OUTPUT_NAMES, Label, class_count
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.scoring import Scoring
from retraining.core.untyped import JsonObject, YamlValues


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
            f"{_listed_places(named, allowed)}, as {spec.name}.yaml has scoring.{name} and scoring.{key}",
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
    """Return whether a file is in one of the folders; below one of them too, where it is not that of all queries."""
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


def _listed_places(own: str | None, allowed: tuple[str, ...]) -> str:
    return ", ".join([*([own] if own else []), *(f"what is in {each}" for each in allowed)]) or "none"


"""What the trainer calls a model's answer; of another trainer's model with one output it is that one."""

SOURCES = ("table", "query", "files")
OVERRIDES = ("table", "query", "files", "destination", "version", "machine", "replicas")
"""Params that stand for keys of the section `scoring`."""


@dataclass(frozen=True, kw_only=True)
class AskedScoring:
    """What a run was asked to do, and by whom; `force` makes a new attempt of a scoring that is done."""

    as_of: AsOf
    trigger: Trigger
    dag_id: str
    dag_run_id: str
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """Who scores: the version, what its run says of it, and the account that the model has of its own.

    `log_share` is the share of the rows that is kept for the monitor; None: of a model with an endpoint, none.
    """

    version: Version
    trained: Plan
    report: Report
    service_account: str | None = None
    log_share: float | None = None


def with_params(spec: ModelSpec, params: Mapping[str, Any]) -> Scoring:
    """Return the section with what the form changed; of table, query and files the one that is given counts.

    Raises:
        PlanError: Several are given, or a value cannot be.
        SpecError: The spec has no such section.
    """
    scoring = spec.scoring
    if scoring is None:
        raise SpecError(f"{spec.name}.yaml", "no section scoring", "one", "Add it (docs/deployment.md#scoring-in-bulk)")
    given = {name: params[name] for name in OVERRIDES if params.get(name) is not None}
    sources = [name for name in SOURCES if name in given]
    if len(sources) > 1:
        raise PlanError("Params", " and ".join(sources), "one of them", "Trigger again with one")
    values = scoring.model_dump(mode="json")
    if sources:
        values |= dict.fromkeys(SOURCES)
    try:
        return Scoring.model_validate({**values, **given})
    except ValueError as error:
        text = re.sub(r"\s*\[type=.*?\]|\s*For further information.*", "", str(error)).replace("\n", " ")
        raise PlanError("Params", text, "values as in docs/deployment.md#scoring-in-bulk", "Trigger again") from error


def choose_version(model: str, asked: str, versions: Sequence[Version]) -> Version:
    """Return the version of an alias or id.

    Raises:
        PlanError: There is none, or no run of ours made it.
    """
    found = next((each for each in versions if asked == each.version_id or asked in each.aliases), None)
    if found is None:
        known = sorted({name for each in versions for name in (each.version_id, *each.aliases)})
        way_out = suggest(asked, known) or "Trigger again with one of these, or retrain the model first"
        raise PlanError(f"Param version of {model}", repr(asked), f"one of: {', '.join(known) or 'none yet'}", way_out)
    if not found.run_key:
        expected = "a version that retrain__… registered: its run's documents say what it reads"
        raise PlanError(found.version_name, "no run of this system made it", expected, "Name another version")
    return found


def build_scoring_plan(
    asked: AskedScoring,
    *,
    model: str,
    scoring: Scoring,
    sql: str | None,
    scorer: Scorer,
    settings: Settings,
    prices: Prices | None,
) -> ScoringPlan:
    """Return the plan.

    Args:
        asked: By whom, for when.
        model: Whose version.
        scoring: The spec's section, with what the form changed.
        sql: Text of `scoring.query`.
        settings: Where things are.
        prices: For the estimate.

    Raises:
        PlanError: The destination is the source, or the version's signature is none that rows can be sent to.
    """
    signature = _signature(scorer)
    source, destination = _source(scoring, sql, settings.project), _destination(scoring, asked, settings.project)
    _require_other_table(destination.table, source)
    key = _key(asked, source, destination, scorer.version, settings.environment)
    machines = batch_machines(scoring)
    return ScoringPlan(
        model=model,
        run_key=key,
        as_of=asked.as_of.value,
        as_of_source=asked.as_of.source,
        **{name: getattr(asked, name) for name in ("trigger", "dag_id", "dag_run_id")},
        attempt=asked.dag_run_id if asked.force else None,
        run_uri=storage.scoring_uri(settings.bucket, model, key),
        source=source,
        version=_asked_version(scoring.version, scorer.version),
        **_keys(scorer, scoring),
        **signature,
        answer_size=_answer_size(scorer.trained.spec.label),
        input_table=bigquery.scoring_table(settings.project, settings.dataset, model, key),
        destination=destination,
        **scoring.model_dump(include={"machine", "replicas", "batch_size"}),
        timeout_s=machines.timeout_s,
        estimate_usd=batch_estimate(machines, prices, settings.region) if prices else None,
        service_account=scorer.service_account,
        log=_log(scorer, scoring, model, settings),
        **{name: getattr(settings, name) for name in ("project", "region", "bucket", "dataset", "environment")},
    )


def batch_machines(scoring: Scoring) -> Machines:
    """Return the machines of the job: all that it may grow to, until it is given up."""
    pool = Pool(machine=scoring.machine, count=scoring.replicas)
    return Machines(pools=(pool,), spot=False, timeout_s=round(scoring.timeout_hours * 3600))


def explain(plan: ScoringPlan) -> list[str]:
    """Return what the scoring will do, a line per fact, for the task log."""
    source = plan.source.query.path if plan.source.query else plan.source.table or plan.source.files
    day = f", the day {plan.destination.day}" if plan.destination.day else ", whole"
    price = plan.estimate_usd
    lines = [
        f"scoring {plan.run_key} of {plan.model}, started by {plan.trigger.kind} ({plan.trigger.reason})",
        f"as of {plan.as_of:%Y-%m-%d %H:%M:%S} UTC, from {plan.as_of_source}",
        f"the rows of {source}",
        f"by version {plan.version.version_id} ({plan.version.asked}) of run {plan.version.run_key}",
        f"into {plan.destination.table}{day}",
        f"on up to {plan.replicas} {plan.machine}, given up after {plan.timeout_s / 3600:g} hours",
    ]
    if price is None:
        return [*lines, f"price unknown: no list price for {plan.machine} in {plan.region}"]
    rate = f"{sum(price.per_hour.values()):.2f} USD an hour, at most {price.at_most:.2f}"
    return [*lines, f"{rate}, at list prices of {price.prices_date}, for one job; queries and lost jobs come on top"]


def _source(scoring: Scoring, sql: str | None, project: str) -> ScoringSource:
    if scoring.query and sql:
        return ScoringSource(query=Query(path=scoring.query, sql=sql, sha256=digest(sql.encode())))
    if scoring.files:
        return ScoringSource(files=scoring.files)
    return ScoringSource(table=bigquery.full_table(str(scoring.table), project))


def _destination(scoring: Scoring, asked: AskedScoring, project: str) -> Destination:
    day = asked.as_of.value.date() if scoring.partition else None
    if scoring.files:
        return Destination(table=f"{scoring.destination}/{day}" if day else scoring.destination)
    return Destination(table=bigquery.full_table(scoring.destination, project), day=day)


def _log(scorer: Scorer, scoring: Scoring, model: str, settings: Settings) -> ScoringLog | None:
    if scorer.log_share is None or scoring.files:
        return None
    table = bigquery.scoring_log_table(settings.project, settings.dataset, model)
    return ScoringLog(table=table, share=scorer.log_share)


def _asked_version(asked: str, version: Version) -> ScoringVersion:
    return ScoringVersion(
        asked=asked, version_id=version.version_id, version_name=version.version_name, run_key=version.run_key
    )


def _answer_size(label: Label) -> int | None:
    """Return how many numbers an answer has; None: one."""
    if label.kind == "multiclass":
        return class_count(label)
    return (len(label.quantiles) or None) if label.kind == "regression" else None


def _key(
    asked: AskedScoring, source: ScoringSource, destination: Destination, version: Version, environment: str
) -> str:
    """Return the key of a scoring: one with the same inputs has the same documents."""
    decides = {
        "source": [source.table, source.query and source.query.sha256, *([source.files] if source.files else [])],
        "destination": destination.model_dump(mode="json"),
        "version": version.version_name,
        "environment": environment,
        "attempt": asked.dag_run_id if asked.force else None,
    }
    return str(RunKey.of(asked.as_of.value, decides))


def _signature(scorer: Scorer) -> YamlValues:
    """Return the features that the version reads, and its output."""
    by_name = {feature.name: feature for feature in scorer.trained.spec.features}
    inputs, outputs = scorer.report.signature.inputs, scorer.report.signature.outputs
    unknown = [name for name in inputs if name not in by_name and name not in outputs]
    output = next((name for name in OUTPUT_NAMES if name in outputs), None)
    if output is None and len(outputs) == 1:
        output = next(iter(outputs))
    if not inputs or unknown or output is None:
        found = f"a signature with inputs {_listed(inputs)} and outputs {_listed(outputs)}"
        expected = f"inputs among {_listed(by_name)}, and an output {' or '.join(OUTPUT_NAMES)}"
        raise PlanError(scorer.version.version_name, found, expected, "Name another version, or retrain the model")
    return {"features": tuple(by_name[name] for name in by_name if name in inputs), "output": output}


def _keys(scorer: Scorer, scoring: Scoring) -> JsonObject:
    """Return the key's name, and its type where the version takes it and gives it back."""
    key = scorer.trained.spec.data.key
    dtype = scorer.report.signature.inputs.get(key)
    if dtype is None:
        return {"key": key}
    if scoring.files:
        found = f"version {scorer.version.version_id} takes the key with each row; a batch prediction of files keeps it"
        way_out = "Load the files into a table and name that as scoring.table"
        raise PlanError("scoring.files", found, "a table or a query", way_out)
    return {"key": key, "key_input": "INTEGER" if dtype == "int64" else "STRING"}


def _require_other_table(destination: str, source: ScoringSource) -> None:
    """Refuse a destination that is read: the next run would score its own answers, or nothing."""
    short = destination.partition(".")[2].lower()
    read, query = (source.table or "").lower() == destination.lower(), source.query
    if query is not None:
        plain = query.sql.replace("`", "").lower()
        read = re.search(rf"(?<![\w-]){re.escape(short)}(?![\w$-])", plain) is not None
    if read:
        where = query.path if query else "scoring.table"
        found = f"it reads {destination}, which is the destination"
        raise PlanError(where, found, "a destination of its own", "Name another table as destination")


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"
