"""What stands in for a DAG whose file is broken: it says so, and the DAGs of other files are not touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context

from retraining.core.program import command_line
from retraining.hooks.airflow_exceptions import AirflowFailException
from retraining.operators.airflow.task_defaults import BOUNDED


class RefuseSpecOperator(BaseOperator):
    """Fail with the whole message about a model's spec.

    Args:
        message: Of the SpecError.
    """

    ui_color = "#f7d7d7"

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> None:  # noqa: ARG002 - Airflow's signature
        """Fail for good."""
        raise AirflowFailException(self.message)


def refusing_dag(
    dag_id: str, path: Path, error: Exception, runbook: str, *, what: str, tag: str, include: Path | None = None
) -> DAG:
    """Make a DAG whose one task fails with what is wrong with a file.

    Args:
        dag_id: That of the DAG in whose place it stands.
        path: The file.
        error: What is wrong with it.
        runbook: Has places for `{file}`, the file's name, `{path}`, `{what}`, `{message}` and `{check}`, the command
            that checks files.
        what: The file should be, as people call it.
        tag: Of the DAG in whose place it stands.
        include: The folder that `{path}` begins in; None: the runbook has no place for it.
    """
    message = str(error)
    with DAG(
        dag_id=dag_id,
        description=f"{path.name} is not a valid {what}",
        doc_md=runbook.replace("{check}", command_line("check-models"))
        .replace("{file}", path.name)
        .replace("{path}", path.relative_to(include).as_posix() if include else path.name)
        .replace("{what}", what)
        .replace("{message}", message),
        schedule=None,
        catchup=False,
        default_args={"owner": "retraining", "retries": 0, **BOUNDED},
        tags=[tag, "invalid-spec"],
    ) as dag:
        RefuseSpecOperator(task_id="read_spec", message=message)
    return dag
