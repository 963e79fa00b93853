"""Where the operators' tests are: the settings, and plans that agree with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retraining.core.naming.environments import Environment
from retraining.core.settings import Settings

SETTINGS = Settings(
    project="local-project",
    region="us-central1",
    bucket="bucket",
    dataset="retraining",
    trainer_image="us-central1-docker.pkg.dev/local-project/retraining/trainer:1",
    trainer_package=None,
    serving_image="us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
    environment="bucket",
    gcp_conn_id="google_cloud_default",
    service_account=None,
    max_bytes_billed=10**13,
    wake_interval_s=60,
    watch_s=0,
)

PLACES = ("project", "region", "bucket", "dataset", "environment", "trainer_image", "trainer_package", "serving_image")


def here(plan: Mapping[str, Any], model: str = "flight_delays") -> dict[str, Any]:
    """An example's plan as a run of this model makes it here: a task works by no plan of another place."""
    places = {name: getattr(SETTINGS, name) for name in PLACES}
    run_uri = f"gs://{SETTINGS.bucket}/{model}/runs/{plan['run_key']}"
    return {**plan, **places, "model": model, "run_uri": run_uri}


ENVIRONMENT = Environment(label="bucket", bucket="bucket")
