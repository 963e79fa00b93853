"""What stands in for a model whose spec is broken: one task that says what is wrong."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.hooks.airflow_exceptions import AirflowFailException


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
