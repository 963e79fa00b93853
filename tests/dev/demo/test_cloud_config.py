"""What the local cloud is told about this project: the settings of the DAGs, and the trainer's image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demo.checkout import CLOUD_CONFIG_PATH, REPOSITORY_PATH
from localcloud.environment.config import Config, read_config
from localcloud.state import Settings
from localcloud.vertex.processes.images import Images
from retraining.core import settings


@pytest.fixture
def config() -> Config:
    """The file."""
    return read_config(CLOUD_CONFIG_PATH)


@pytest.fixture
def variables(config: Config) -> dict[str, str]:
    """What a client of the local cloud gets."""
    return config.client_variables(Settings(bucket=str(config.bucket)))


def test_settings_of_the_project(variables: dict[str, str]) -> None:
    """Every RETRAINING_ value, ready to use; those without a row of the settings' table are the hooks' own."""
    version = re.search(r'^__version__ = "(.+)"', (REPOSITORY_PATH / "trainer/__init__.py").read_text(), re.MULTILINE)
    assert version is not None
    assert variables == {
        "RETRAINING_PROJECT": "local-project",
        "RETRAINING_REGION": "us-central1",
        "RETRAINING_BUCKET": "local-retraining",
        "RETRAINING_DATASET": "retraining",
        "RETRAINING_TRAINER_IMAGE": f"us-central1-docker.pkg.dev/local-project/retraining/trainer:{version[1]}",
        "RETRAINING_SERVING_IMAGE": "us-central1-docker.pkg.dev/local-project/retraining/tensorflow-serving:2.19.1",
        "RETRAINING_GCP_CONN_ID": "google_cloud_default",
        "RETRAINING_WAKE_INTERVAL_S": "2",
        "RETRAINING_WATCH_S": "120",
    }
    assert settings.load(variables).trainer_image == variables["RETRAINING_TRAINER_IMAGE"]


@pytest.mark.parametrize("use", ["training", "serving"])
def test_images_stand_for_the_trainers_environment(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """The trainer's own image has the checkout on its path, Google's containers have TensorFlow."""
    monkeypatch.delenv("LOCALCLOUD_TRAINER_PYTHON", raising=False)
    uri = variables["RETRAINING_TRAINER_IMAGE" if use == "training" else "RETRAINING_SERVING_IMAGE"]
    image = Images(CLOUD_CONFIG_PATH).find_image(uri, "training" if use == "training" else "serving")
    assert image is not None
    python = Path(REPOSITORY_PATH, ".venv/trainer/bin/python")
    assert (image.python.exists(), image.python.samefile(python)) == (True, True)
    assert [root.resolve() for root in image.import_roots] == ([REPOSITORY_PATH] if use == "training" else [])
