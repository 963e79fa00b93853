"""Whether a model's files are such that a run takes them, and what is worth a word about them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from retraining.core.catalog.amounts import MachineGroup, jobs_of, require_quota, scoring_job
from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.catalog.containers import (
    Containers,
    load_containers,
    require_explanations,
    require_serving_container,
    require_training_container,
)
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.catalog.machine_pools import require_machine_pool
from retraining.core.catalog.machines import all_machines
from retraining.core.catalog.trainers import require_trainer, trainer_path
from retraining.core.errors import RetrainingError, SpecError
from retraining.core.program import command_line
from retraining.core.spec.files import (
    load_assertions,
    load_frozen_set_query,
    load_labels_query,
    load_query,
    load_scoring_query,
    load_spec,
)
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.own_gates import require_gates
from retraining.core.spec.quotas import Quotas
from retraining.core.spec.sql_file import hashes_rows, used_parameters

TRAINER_WORDS = "what its command describe prints, docs/trainer-contract.md"


def check_model(
    path: Path,
    include: Path,
    region: str | None = None,
    day: date | None = None,
    *,
    quotas: Quotas | None = None,
    cloud: bool = False,
    stage: str | None = None,
) -> tuple[str, list[str]]:
    """Return one line about a model, and its warnings. With a region its accelerators must be there.

    Args:
        path: Of its YAML file.
        include: The folder with its SQL.
        region: Where it runs.
        day: Containers that ended by then are warned of; None: by the day of their table.
        quotas: What its jobs must fit into.
        cloud: Whether BigQuery and the bucket are asked next (`check-queries`): then nothing is said of what they know.
        stage: Of `environments.yaml`; empty: the file as it is; None: that of this environment.

    Raises:
        SpecError: Its YAML or SQL file is wrong.
        QuotaError: One of its jobs needs more than a region's quota.
    """
    spec = load_spec(path, stage)
    sql = _load_files(spec, include)
    require_trainable(spec, load_capabilities())
    require_trainer(spec, include)
    hardware = load_hardware(include)
    require_machines(spec, hardware, region)
    alone = require_machine_pool(spec, include)
    require_quota(quotas, hardware, region, spec.name, all_jobs(spec))
    require_past_reviews(spec, day)
    containers = load_containers(include)
    require_training_container(spec, containers)
    require_serving_container(spec, "", containers)
    warnings = [
        *warnings_of(spec, sql),
        *contradictions_of(spec),
        *([alone] if alone else []),
        *ended_containers(spec, containers, day or containers.effective),
    ]
    said = [*(f"warning: {warning}" for warning in warnings), *not_looked_at(spec, include, cloud=cloud)]
    return _ok_line(spec, stage), said


def _load_files(spec: ModelSpec, include: Path) -> str:
    """Return the text of the examples query, if all that the model's file names can be read.

    Raises:
        SpecError: An SQL file, or a gate of the team's own, is wrong.
    """
    sql = load_query(spec, include)
    load_frozen_set_query(spec, include)
    load_labels_query(spec, include)
    load_assertions(spec, include)
    require_gates(spec, include)
    if spec.scoring is not None and spec.scoring.query is not None:
        load_scoring_query(spec.name, spec.scoring.query, include)
    return sql


def _ok_line(spec: ModelSpec, stage: str | None) -> str:
    features = " and ".join(
        [*([f"{len(spec.features)} features"] if spec.features else []), *(pattern.names for pattern in spec.patterns)]
    )
    name = f"{spec.name} in {stage}" if stage else spec.name
    return f"{name}: ok ({features}, {spec.training.model}, {spec.schedule or 'no schedule'})"


def all_jobs(spec: ModelSpec) -> dict[str, tuple[MachineGroup, ...]]:
    """Return the machines of each job that a model may have: those of its runs, and its scoring's."""
    scoring = scoring_job(spec.scoring.machine, spec.scoring.replicas) if spec.scoring else {}
    return {**jobs_of(spec, all_machines(spec)), **scoring}


def require_past_reviews(spec: ModelSpec, day: date | None) -> None:
    """Refuse a file that says that a person made a test on a day to come.

    Args:
        spec: What the file says.
        day: Today, UTC; None: it is not known.

    Raises:
        SpecError: It does.
    """
    for review in spec.reviews:
        if day is not None and review.day > day:
            raise SpecError(
                f"{spec.name}.yaml, reviews, {review.test}",
                f"day {review.day}",
                f"a day up to {day}",
                "Write the day on which the test was made",
            )


def warnings_of(spec: ModelSpec, sql: str) -> list[str]:
    """Return what is allowed and yet worth a word, about a query that was taken."""
    where, warnings = f"{spec.name}.yaml, data.query, {spec.data.source_name}", []
    if spec.data.split == "hash" and "as_of" not in used_parameters(sql):
        ignored = (
            "it ignores @as_of, so that a run of an earlier time reads what is there now, and no backfill is possible"
        )
        warnings.append(f"{where}: {ignored}")
    if hashes_rows(sql, spec.data.key):
        hashed = (
            f"{spec.data.key} is a hash of the whole row: equal rows are one example, and a row in which a value "
            "changes is another one: it may move between train, validation and test, and be tested on what it taught. "
            "Name a column that stays, or several, in place of it"
        )
        warnings.append(f"{where}: {hashed}")
    return warnings


def contradictions_of(spec: ModelSpec) -> list[str]:
    """Return the limits of the monitor's policy of which one makes another one idle."""
    monitoring, policy = spec.monitoring, spec.monitoring.policy
    actions = dict(policy.actions)
    where, warnings, age = f"{spec.name}.yaml, monitoring", [], monitoring.max_age_days
    if policy.max_retrainings_per_week == 0 and age is not None and actions["age"] in ("retrain", "tune"):
        warnings.append(
            f"{where}: max_age_days is {age} and policy.actions.age {actions['age']}, and yet "
            "policy.max_retrainings_per_week is 0: none will ever be ordered. Allow some, or write age: warn"
        )
    within = policy.rollback_within_hours
    if "rollback" in actions.values() and monitoring.cooldown_hours > within:
        warnings.append(
            f"{where}: cooldown_hours is {monitoring.cooldown_hours:g}, longer than policy.rollback_within_hours "
            f"{within:g}: in between a champion that an order made and that errs can neither be left nor replaced. "
            "Shorten the one, or lengthen the other"
        )
    return warnings


def ended_containers(spec: ModelSpec, containers: Containers, day: date) -> list[str]:
    """Return why `plan` would refuse a run of a day, or a later one, for what Vertex AI takes away.

    That is pre-built containers, and the explanations of answers.
    """
    found = []
    try:
        require_training_container(spec, containers, day)
    except RetrainingError as error:
        found.append(str(error))
    try:
        require_serving_container(spec, "", containers, day)
    except RetrainingError as error:
        found.append(str(error))
    try:
        found += filter(None, [require_explanations(spec, "", containers, day)])
    except RetrainingError as error:
        found.append(str(error))
    return found


def not_looked_at(spec: ModelSpec, include: Path, *, cloud: bool = False) -> list[str]:
    """Return what of a model is known to nobody but its cloud or its image."""
    parts = []
    looks = f"{command_line('check-models', RETRAINING_PROJECT='…', RETRAINING_REGION='…')} looks"
    if spec.patterns and not cloud:
        named = ", ".join(pattern.names for pattern in spec.patterns)
        parts.append(f"which columns the features {named} are ({looks})")
    if spec.data.files is not None and not cloud:
        uris = ", ".join(spec.data.files.uris)
        parts.append(f"whether there are files {uris}, and whether they have these columns ({looks})")
    trainer = trainer_path(spec, include)
    if trainer is not None and not trainer.is_file():
        parts.append(
            f"whether {spec.training.runtime.image} can train it (no trainers/{trainer.name}: {TRAINER_WORDS})"
        )
    return [f"{spec.name}.yaml: not looked at: {part}" for part in parts]
