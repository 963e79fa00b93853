"""The trigger forms of a model's DAGs; what a filled-in form changes is decided in `core/planning/params`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match

from retraining.core.documents.document import MODEL_PATTERN
from retraining.core.naming.stage_runs import EXAMPLE, PARAM, TEXT_PATTERN
from retraining.core.naming.vertex import PREVIOUS
from retraining.core.planning.params import (
    DATE_PATTERN,
    MAX_EPOCHS,
    MAX_WINDOW_DAYS,
    NO_ADDRESS,
    TIME_PATTERN,
    hyperparameters_of_form,
)
from retraining.core.promotion.rollbacks import LONGEST_REASON, STAY
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.scoring import (
    DESTINATION_PATTERN,
    FILES_PATTERN,
    MAX_REPLICAS,
    SQL_PATTERN,
    TABLE_PATTERN,
    VERSION_PATTERN,
    Scoring,
)
from retraining.core.spec.tuning import Search
from retraining.core.untyped import JsonObject
from retraining.core.walk_forward.plan import AT_ONCE, EVERY, HORIZONS

_FORMATS = FormatChecker()
_RUN, _DATA, _TRAINING, _SCORING = "This run", "Data", "Training", "Scoring"


def give_params(dag: DAG, params: Mapping[str, Param]) -> None:
    """Give a DAG its form, after its tasks.

    Each task of a DAG that has params gets a copy of them, made anew for each class that the task's is derived from:
    two fifths of the time to parse a hundred models. Airflow gives a running task its DAG's params without it.

    The values are held to their schemas here: Airflow's own check, past which they are set, first holds each schema to
    the schema of schemas, which is a quarter of that time, and is done where somebody fills in the form.

    Raises:
        ValueError: A value that an untouched form has is not as the form allows.
    """
    for name, param in params.items():
        wrong = best_match(Draft202012Validator(param.schema, format_checker=_FORMATS).iter_errors(param.value))
        if wrong is not None:
            raise ValueError(f"DAG {dag.dag_id}, Param {name}: {wrong.message}")
    object.__setattr__(dag, "params", ParamsDict(dict(params)))


def retrain_params(spec: ModelSpec) -> dict[str, Param]:
    """Make the Params of `retrain__<model>`; their defaults are the spec's own, so an untouched form changes nothing.

    Addresses (`module`, `text_module`, `weights`) are none: what is loaded from there is code.

    Raises:
        SpecError: A hyperparameter has the name of another Param.
    """
    params = {**_run_params(), **_spec_params(spec), **_tuning_params(spec)}
    for name, value in hyperparameters_of_form(spec, params).items():
        params[name] = _hyperparameter_param(spec, name, value)
    return params


def monitor_params(spec: ModelSpec) -> dict[str, Param]:
    """Make the Params of `monitor__<model>`."""
    return {
        "as_of": time_param("End of the requests' window (UTC). Empty: the run's own time."),
        "retrain_as_of": time_param("As of when a retraining that this run orders computes. Empty: as of this run."),
        "window_hours": Param(
            spec.monitoring.window_hours,
            type="integer",
            minimum=1,
            maximum=24 * 90,
            title="Window hours",
            section=_DATA,
            description="Hours of requests before the run's time that are compared with the training data.",
        ),
        "multivariate": Param(
            False,
            type="boolean",
            title="Multivariate drift",
            section=_DATA,
            description="Train a classifier that tells requests from training examples: costs a query and a job.",
        ),
    }


def score_params(spec: ModelSpec) -> dict[str, Param]:
    """Make the Params of `score__<model>`; their defaults are the spec's own. None for a model that scores nothing."""
    scoring = spec.scoring
    if scoring is None:
        return {}
    return {
        "as_of": time_param("The query's @as_of, and the day that is replaced (UTC). Empty: the run's own time."),
        "force": Param(
            False,
            type="boolean",
            title="Force",
            section=_RUN,
            description="Score again although a scoring with the same inputs is recorded.",
        ),
        "table": _text_param(TABLE_PATTERN, "Table to score, dataset.table. Empty: the spec's table or query."),
        "query": _text_param(SQL_PATTERN, "Query to score, a path below include/sql. Empty: the spec's."),
        "files": _text_param(FILES_PATTERN, "JSON lines to score, gs://bucket/folder/*.json. Empty: the spec's."),
        **_scoring_params(scoring),
    }


def walk_forward_params() -> dict[str, Param]:
    """Make the Params of `walk_forward__<model>`."""
    return {
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            section=_RUN,
            description="Only say which versions, spans and jobs there would be, and what they may cost.",
        ),
        "first": _date_param("The first date as of which a version is trained. Empty: so that there are 13."),
        "last": _date_param("The last one. Empty: the newest that has days for all horizons after it."),
        "every": Param(
            EVERY, type="integer", minimum=1, maximum=92, title="Every", section=_DATA, description="Days between two."
        ),
        "horizons": Param(
            list(HORIZONS),
            type="array",
            items={"type": "integer", "minimum": 1, "maximum": 366},
            minItems=1,
            maxItems=12,
            title="Horizons",
            section=_DATA,
            description="Ages in days up to which versions are summed up, a line each.",
        ),
        **_walk_forward_run_params(),
    }


def _walk_forward_run_params() -> dict[str, Param]:
    return {
        "at_once": Param(
            AT_ONCE,
            type="integer",
            minimum=1,
            maximum=50,
            title="At once",
            section=_RUN,
            description="How many versions are trained at a time.",
        ),
        "force": Param(
            False,
            type="boolean",
            title="Force",
            section=_RUN,
            description="Make everything anew although equal versions are stored, as after late rows.",
        ),
        "over_budget": Param(
            False,
            type="boolean",
            title="Over budget",
            section=_RUN,
            description="Go on although the month's budgets or the spec's would be passed.",
        ),
    }


def _date_param(description: str) -> Param:
    return Param(None, type=["null", "string"], pattern=DATE_PATTERN, section=_DATA, description=description)


def notify_test_params(models: Sequence[str]) -> dict[str, Param]:
    """Make the Params of `notify_test`, which is of all models."""
    return {
        "model": Param(
            type="string",
            pattern=MODEL_PATTERN,
            examples=list(models),
            title="Model",
            section=_RUN,
            description="Whose owners and channels get a trial message.",
        )
    }


def rollback_params(models: Sequence[str], only: str | None = None) -> dict[str, Param]:
    """Make the Params of `rollback`, which is of all models: the form proposes those that have a spec.

    Args:
        models: These.
        only: The one model that a DAG of its own takes.
    """
    title, of_whom = "Model", "Whose champion."
    if only is None:
        known = list(models)
        model = Param(
            description=of_whom, type="string", pattern=MODEL_PATTERN, examples=known, title=title, section=_RUN
        )
    else:
        model = Param(only, description=of_whom, type="string", title=title, section=_RUN, enum=[only])
    return {
        "model": model,
        "to": Param(
            PREVIOUS,
            type="string",
            pattern=f"^({PREVIOUS}|{STAY}|[0-9]+)$",
            title="To",
            section=_RUN,
            description=(
                "previous, or the id of a version. While a deployment is under way, previous ends it. "
                "stay: nothing goes back, only the pause changes."
            ),
        ),
        "from_version": Param(
            None,
            type=["null", "string"],
            pattern="^[0-9]+$",
            title="From version",
            section=_RUN,
            description="The id of the version that errs; empty: whichever serves, or is being deployed.",
        ),
        "reason": Param(
            "",
            type="string",
            maxLength=LONGEST_REASON,
            title="Reason",
            section=_RUN,
            description="For whoever reads it later.",
        ),
        "pause_until": _pause_param(),
    }


def _pause_param() -> Param:
    return Param(
        None,
        type=["null", "string"],
        pattern=r"^(\d{4}-\d{2}-\d{2}|[1-9]\d{0,2} days?)$",
        examples=["3 days", "7 days", "14 days"],
        title="Pause until",
        section=_RUN,
        description=(
            "The first day (UTC) on which retrain__… begins again without Force: 2026-12-01, or 7 days from today. "
            "Empty: as it is, and the next promoted run replaces the version again; with stay, the pause ends."
        ),
    )


def _scoring_params(scoring: Scoring) -> dict[str, Param]:
    """Make the Params of the section's values that a run may change."""
    return {
        "destination": Param(
            scoring.destination,
            type="string",
            pattern=DESTINATION_PATTERN,
            section=_SCORING,
            description="Table that the answers go to, dataset.table; of files a folder, gs://bucket/folder.",
        ),
        "version": Param(
            scoring.version,
            type="string",
            pattern=VERSION_PATTERN,
            section=_SCORING,
            description="Alias or id of the version that scores.",
        ),
        "machine": Param(
            scoring.machine,
            type="string",
            pattern="^[a-z0-9-]{1,100}$",
            section=_SCORING,
            description="Machine type of the job.",
        ),
        "replicas": Param(
            scoring.replicas,
            type="integer",
            minimum=1,
            maximum=MAX_REPLICAS,
            title="Replicas",
            section=_SCORING,
            description="Machines of the job.",
        ),
    }


def _text_param(pattern: str, description: str) -> Param:
    return Param(None, type=["null", "string"], pattern=pattern, section=_SCORING, description=description)


def time_param(description: str) -> Param:
    """Make the Param of a time that may be left empty."""
    return Param(
        None, type=["null", "string"], format="date-time", pattern=TIME_PATTERN, section=_RUN, description=description
    )


def _run_params() -> dict[str, Param]:
    """Make the Params that concern this run alone."""
    return {
        PARAM: Param(
            None,
            type=["null", "string"],
            pattern=TEXT_PATTERN,
            title="Taken from",
            section=_RUN,
            description=(
                "Stage and run whose version is taken over and judged here, in the place of a training, as "
                f"{EXAMPLE}. Empty: train."
            ),
        ),
        "as_of": time_param("Only what was known at this time (UTC) is used. Empty: the run's own time."),
        "force": Param(
            False,
            type="boolean",
            title="Force",
            section=_RUN,
            description="Start a new attempt although a run with the same inputs is recorded.",
        ),
        "over_budget": Param(
            False,
            type="boolean",
            title="Over budget",
            section=_RUN,
            description="Start although the jobs may cost more than budget_usd, or than a month's budget has left.",
        ),
        "deploy": Param(
            True,
            type="boolean",
            title="Deploy",
            section=_RUN,
            description="Let a promoted model take the traffic. Off: it is registered only. A backfill never deploys.",
        ),
    }


def _spec_params(spec: ModelSpec) -> dict[str, Param]:
    """Make the Params of the spec's values that a run may change."""
    window_days = Param(
        spec.data.window_days,
        type="integer",
        minimum=spec.data.test_days + 1,
        maximum=MAX_WINDOW_DAYS,
        title="Window days",
        section=_DATA,
        description=f"Days of examples; the newest {spec.data.test_days} are the test split.",
    )
    return {
        **({"window_days": window_days} if spec.data.split == "time" else {}),
        "sample_percent": Param(
            spec.data.sample_percent,
            type="number",
            minimum=0.001,
            maximum=100,
            title="Sample percent",
            section=_DATA,
            description="Share of the examples, by hash of the key: the same ones in every run.",
        ),
        "epochs": Param(
            spec.training.epochs,
            type="integer" if spec.training.epochs else ["null", "integer"],
            minimum=1,
            maximum=MAX_EPOCHS,
            title="Epochs",
            section=_TRAINING,
            description="Passes over the training split at most; early stopping may end it before. Empty: the recipe.",
        ),
    }


def _tuning_params(spec: ModelSpec) -> dict[str, Param]:
    """Make the Param whether this run searches; none of a model without a section `tuning`."""
    if spec.tuning is None:
        return {}
    return {
        "tune": Param(
            spec.tuning.search,
            type="string",
            enum=list(get_args(Search)),
            title="Tune",
            section=_TRAINING,
            description=(
                f"Search for hyperparameters in this run. auto: when the last study is {spec.tuning.every_days} days "
                "old, or the champion lost quality."
            ),
        )
    }


def _hyperparameter_param(spec: ModelSpec, name: str, value: object) -> Param:
    kind: JsonObject
    if isinstance(value, bool):
        kind = {"type": "boolean"}
    elif isinstance(value, int):
        kind = {"type": "integer"}
    elif isinstance(value, float):
        kind = {"type": "number"}
    elif isinstance(value, str):
        kind = {"type": "string", "minLength": 1, "pattern": NO_ADDRESS}
    else:
        value, kind = list(value), {"type": "array"}  # type: ignore[call-overload]  # the spec has scalars and tuples
    searched = next((item for item in spec.tuning.parameters if item.name == name), None) if spec.tuning else None
    bounds = f" Tuning searches {searched.min:g} to {searched.max:g}." if searched and searched.max is not None else ""
    return Param(
        value,
        title=name.replace("_", " ").capitalize(),
        section=_TRAINING,
        description=f"Hyperparameter `{name}` of model {spec.training.model}.{bounds}",
        **kind,
    )
