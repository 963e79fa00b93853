"""The task that keeps the Models page up to date, for DAGs that have no other place for it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from retraining.core.settings import include_path
from retraining.core.spec.teams import find_specs, plain_name
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator


class RefreshModelsPageOperator(CloudOperator):
    """Bring a model's part of the Models page up to date, from what was written since the last time.

    Args:
        model: Its name; a template of it, or empty for every model: then all is read anew, rows without a file go,
            and the page is also written as files into the bucket, for those who have no page in Airflow.

    Returns:
        The models whose part was written.
    """

    template_fields = ("model",)

    def __init__(self, *, model: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> list[str]:
        """Read, write."""
        # What makes the page is not needed to parse a DAG.
        from retraining.operators.report.models_files import write_files
        from retraining.operators.report.models_refresh import drop_others, refresh_model

        del context
        if self.model:
            refresh_model(cloud, self.model)
            return [self.model]
        models = [plain_name(path) for path in find_specs(include_path())]
        for model in models:
            refresh_model(cloud, model, anew=True)
        drop_others(cloud, models)
        write_files(cloud, models)
        return models
