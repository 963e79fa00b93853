"""The DAGs: a module per kind of them; each arranges tasks and does nothing else.

A DAG file is three lines: its docstring, and

    from retraining.dags import build_dags

    globals().update(build_dags())

Airflow parses only files that have the words `airflow` and `dag` in them; the docstring is the place for the first.
"""

from __future__ import annotations

from importlib import import_module

from airflow.sdk import DAG, get_parsing_context

from retraining.core.naming.dags import MACHINE_POOL, ROLLBACK, WALK_FORWARD
from retraining.core.settings import include_path

KINDS = {
    "retrain": "retrain__",
    "monitor": "monitor__",
    "score": "score__",
    "walk_forward": f"{WALK_FORWARD}__",
    "machine_pools": f"{MACHINE_POOL}__",
    "rollback": ROLLBACK,
    "maintain": "maintain",
    "notify_test": "notify_test",
}
"""Module: how the ids of its DAGs begin."""


def build_dags(*kinds: str) -> dict[str, DAG]:
    """Return DAGs by id, of the models in `include_path()`; to a worker that runs a task, the task's alone.

    Args:
        kinds: Names of modules in this package, one file of a DAG folder for each or for some; none: all of them.

    Raises:
        SettingsError: There is no folder of models.
        ValueError: There is no such kind.
    """
    if unknown := set(kinds) - KINDS.keys():
        raise ValueError(f"{', '.join(sorted(unknown))}: no kind of DAGs. Expected of: {', '.join(KINDS)}")
    include, only = include_path(), get_parsing_context().dag_id
    dags: dict[str, DAG] = {}
    for kind in kinds or KINDS:
        # The modules of other kinds are not imported: most files and all tasks need one.
        if only is None or only.startswith(KINDS[kind]):
            dags |= import_module(f"{__name__}.{kind}").build_dags(include, only)
    return dags
