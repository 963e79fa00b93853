"""Fixtures of pytest, there wherever this package is installed.

`localcloud` is a running local cloud for the session, started by the first test that asks for it; the process's
environment leads Google's clients to it from then on. `localcloud_project` is a project of the test's own, with nothing
in it, in which clients work that name none. The setting `localcloud_config` of pytest names a configuration file,
`localcloud_python` the interpreter of another environment that the local cloud runs in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from localcloud.testing import RunningCloud


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the setting."""
    parser.addini("localcloud_config", "file of bucket, variables and images of the fixture localcloud", default="")
    parser.addini("localcloud_python", "interpreter that has the local cloud, where this one has it not", default="")


@pytest.fixture(scope="session")
def localcloud(pytestconfig: pytest.Config) -> Iterator[RunningCloud]:
    """Give a running local cloud; `os.environ` leads to it until the session ends."""
    from localcloud.testing import start  # a session without such a test imports nothing of it

    config, python = (_path(pytestconfig, f"localcloud_{name}") for name in ("config", "python"))
    with start(config=config, python=python) as cloud, pytest.MonkeyPatch.context() as patch:
        for name, value in cloud.environ.items():
            patch.setenv(name, value) if value else patch.delenv(name, raising=False)
        yield cloud


@pytest.fixture
def localcloud_project(localcloud: RunningCloud, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the id of a project that only this test uses; clients that name none work in it."""
    project = localcloud.take_project()
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    return project


def _path(pytestconfig: pytest.Config, setting: str) -> Path | None:
    named = pytestconfig.getini(setting)
    return pytestconfig.rootpath / named if named else None
