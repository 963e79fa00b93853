"""The images of the examples' frameworks, held to the contract of trainers in containers of podman's."""

from __future__ import annotations

import os
import subprocess

import pytest

from containers.engine import Engine
from containers.images import EXAMPLE_IMAGES
from demo.checkout import REPOSITORY_PATH

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]
TRAINER_PYTHON = REPOSITORY_PATH / ".venv" / "trainer" / "bin" / "python"


@pytest.mark.parametrize("image", EXAMPLE_IMAGES.values(), ids=EXAMPLE_IMAGES)
def test_an_image_keeps_the_contract(engine: Engine, image: str) -> None:
    """As `make check-trainer IMAGE=…` says; no container is left."""
    done = subprocess.run(
        [TRAINER_PYTHON, "-m", "pytest", "-q", "tests/trainer/conformance"],
        cwd=REPOSITORY_PATH,
        env={**os.environ, **engine.environment(), "TRAINER_IMAGE": image},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert engine.podman("ps", "--all", "--quiet") == ""
