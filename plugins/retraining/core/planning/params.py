"""What a filled-in form changes in a model's spec, and what it may not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from retraining.core.catalog.capabilities import addresses, load_capabilities
from retraining.core.errors import PlanError, SpecError, suggest
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import YamlValues

MAX_WINDOW_DAYS = 3650
MAX_EPOCHS = 10000

NO_ADDRESS = "^[^/]+$"
"""What is loaded from an address is code: a form has none."""

DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"
# Airflow checks the format date-time only where a further package is installed.
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def hyperparameters_of_form(spec: ModelSpec, taken: Collection[str]) -> YamlValues:
    """Return the hyperparameters that a form offers, by name: all but addresses (`module`, `text_module`, `weights`).

    Args:
        spec: The model.
        taken: Names of the form's own Params.

    Raises:
        SpecError: A hyperparameter has one of these names.
    """
    fixed = addresses(spec, load_capabilities())
    offered = {name: value for name, value in spec.training.hyperparameters.items() if name not in fixed}
    for name in offered:
        if name in taken:
            raise SpecError(
                f"{spec.name}.yaml, training.hyperparameters",
                f"a hyperparameter named {name!r}",
                f"a name that is not one of the form's own: {', '.join(taken)}",
                "Rename it",
            )
    return offered


def require_known(params: Iterable[str], known: Collection[str], fixed: Collection[str] = ()) -> None:
    """Refuse names that the form does not have: Airflow takes any, and a misspelt one would change nothing.

    Args:
        params: Names of the run's Params.
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


def overrides(spec: ModelSpec, params: Mapping[str, Any], *, tune: bool = False) -> YamlValues:
    """Return what the form changed, as `ModelSpec.with_overrides` takes it; values equal to the spec's are left out.

    Args:
        spec: The model.
        params: Of the run.
        tune: Whether the monitor asked for a study.

    Raises:
        PlanError: A text is an address.
    """
    changed: YamlValues = {}
    for name, path, old in (
        ("window_days", "data.window_days", spec.data.window_days),
        ("sample_percent", "data.sample_percent", spec.data.sample_percent),
        ("epochs", "training.epochs", spec.training.epochs),
        ("tune", "tuning.search", spec.tuning.search if spec.tuning else None),
    ):
        if params.get(name) not in (None, old):
            changed[path] = params[name]
    if tune and spec.tuning is not None:
        changed["tuning.search"] = "always"
    fixed = addresses(spec, load_capabilities())
    for name, value in spec.training.hyperparameters.items():
        new = None if name in fixed else params.get(name)
        if isinstance(new, str) and "/" in new:
            raise _no_address(name)
        if isinstance(new, list):
            new = tuple(new)
        if new is not None and new != value:
            changed[f"training.hyperparameters.{name}"] = list(new) if isinstance(new, tuple) else new
    return changed


def _no_address(name: str) -> PlanError:
    return PlanError(
        f"Param {name!r}",
        "an address: what is loaded from there is code",
        "addresses in the model's YAML file only",
        "Trigger again without it, or change the file",
    )
