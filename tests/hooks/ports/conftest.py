"""One suite, two clouds: whatever is said here of a port holds in memory and on the local cloud."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.support.scenes.port_stage import LocalStage, MemoryStage, Stage


@pytest.fixture(params=["memory", pytest.param("local", marks=pytest.mark.cloud)])
def stage(request: pytest.FixtureRequest) -> Stage:
    """A cloud, and what happens behind it."""
    return MemoryStage() if request.param == "memory" else LocalStage(request.getfixturevalue("local_hooks"))


@pytest.fixture
def cloud(stage: Stage) -> Any:
    """What the ports are asked of."""
    return stage.cloud


@pytest.fixture
def folder(cloud: Any) -> str:
    """A folder of this test's own."""
    return f"gs://{cloud.settings.bucket}/tests/{uuid.uuid4().hex}"
