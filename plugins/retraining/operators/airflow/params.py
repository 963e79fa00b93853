"""The trigger form of a model's DAG, and what a filled-in form changes in the spec."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from airflow.sdk import Param

from retraining.core.catalog.capabilities import addresses, load_capabilities
from retraining.core.errors import PlanError, SpecError
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.tuning import Search
from retraining.core.suggestions import suggest

_RUN, _DATA, _TRAINING = "This run", "Data", "Training"
MAX_WINDOW_DAYS = 3650
MAX_EPOCHS = 10000
# Airflow checks the format date-time only where a further package is installed.
NO_ADDRESS = "^[^/]+$"
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def retrain_params(spec: ModelSpec) -> dict[str, Param]:
    """Params of `retrain__<model>`; the defaults are the spec's own values, so an untouched form changes nothing.

    Addresses (`module`, `text_module`, `weights`) are none: what is loaded from there is code.

    Raises:
        SpecError: A hyperparameter has the name of another Param.
    """
    params = {**_run_params(), **_spec_params(spec), **_tuning_params(spec)}
    fixed = addresses(spec, load_capabilities())
    for name, value in spec.training.hyperparameters.items():
        if name in fixed:
            continue
        if name in params:
            raise SpecError(
                f"{spec.name}.yaml, training.hyperparameters",
                f"a hyperparameter named {name!r}",
                f"a name that is not one of the form's own: {', '.join(params)}",
                "Rename it",
            )
        params[name] = _hyperparameter_param(spec, name, value)
    return params


def monitor_params(spec: ModelSpec) -> dict[str, Param]:
    """Params of `monitor__<model>`."""
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
    }


def require_known(params: Mapping[str, Any], known: Mapping[str, Param], fixed: Collection[str] = ()) -> None:
    """Refuse names that the form does not have: Airflow takes any, and a misspelt one would change nothing.

    Args:
        params: Of the run.
        known: Those of its DAG.
        fixed: Addresses in the spec, which no run may change.

    Raises:
        PlanError: There are some.
    """
    for name in params:
        if name not in known:
            if name in fixed:
                raise _no_address(name)
            way_out = f"{suggest(name, list(known))} Trigger again with that, or without it".strip()
            raise PlanError("Params", f"no Param {name!r}", f"one of: {', '.join(known)}", way_out)


def overrides(spec: ModelSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the form changed, as `ModelSpec.with_overrides` takes it; values equal to the spec's are left out.

    Raises:
        PlanError: A text is an address.
    """
    changed: dict[str, Any] = {}
    for name, path, old in (
        ("window_days", "data.window_days", spec.data.window_days),
        ("epochs", "training.epochs", spec.training.epochs),
        ("tune", "tuning.search", spec.tuning.search if spec.tuning else None),
    ):
        if params.get(name) not in (None, old):
            changed[path] = params[name]
    fixed = addresses(spec, load_capabilities())
    for name, value in spec.training.hyperparameters.items():
        wished = None if name in fixed else params.get(name)
        if isinstance(wished, str) and "/" in wished:
            raise _no_address(name)
        if isinstance(wished, list):
            wished = tuple(wished)
        if wished is not None and wished != value:
            changed[f"training.hyperparameters.{name}"] = list(wished) if isinstance(wished, tuple) else wished
    return changed


def _no_address(name: str) -> PlanError:
    return PlanError(
        f"Param {name!r}",
        "an address: what is loaded from there is code",
        "addresses in the model's YAML file only",
        "Trigger again without it, or change the file",
    )


def time_param(description: str) -> Param:
    """A time that may be left empty."""
    return Param(
        None, type=["null", "string"], format="date-time", pattern=TIME_PATTERN, section=_RUN, description=description
    )


def _run_params() -> dict[str, Param]:
    """What concerns this run alone."""
    return {
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
            description="Start although the jobs may cost more than the model's budget_usd.",
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
    """Values of the spec that a run may change."""
    return {
        "window_days": Param(
            spec.data.window_days,
            type="integer",
            minimum=spec.data.test_days + 1,
            maximum=MAX_WINDOW_DAYS,
            title="Window days",
            section=_DATA,
            description=f"Days of examples; the newest {spec.data.test_days} are the test split.",
        ),
        "epochs": Param(
            spec.training.epochs,
            type="integer",
            minimum=1,
            maximum=MAX_EPOCHS,
            title="Epochs",
            section=_TRAINING,
            description="Passes over the training split at most; early stopping may end it before.",
        ),
    }


def _tuning_params(spec: ModelSpec) -> dict[str, Param]:
    """Whether this run searches; of a model without a section `tuning` nothing."""
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
    kind: dict[str, Any]
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
