"""For every test: a Python that cannot run it says which one can; what needs servers is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.environment import require_environment
from tests.support.session_guardian import watch_session

pytest_plugins = [
    "tests.support.local_cloud",  # its fixtures, for the tests of the packages too
    "tests.support.finished_files",  # `--go-on`
]
SERVERS = frozenset({"local_cloud", "localcloud_commands"})


HELD_OPEN = watch_session()
"""Until this process ends, however: then what it started ends too."""


def named_paths(arguments: list[str]) -> list[Path]:
    """Return the files and folders that the command line names."""
    return [Path(argument.split("::")[0]).resolve() for argument in arguments]


def pytest_plugin_registered(plugin: object) -> None:
    """Look at what the command line names before the conftest files of its folders are imported."""
    if isinstance(plugin, pytest.Config):
        for path in named_paths(plugin.known_args_namespace.file_or_dir):
            require_environment(path)


@pytest.hookimpl(trylast=True)  # after pytest's own, so that --ignore comes first
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> None:
    """Look at each file and folder in what is named before it is imported; pytest asks about their neighbours too."""
    if any(collection_path.is_relative_to(path) for path in named_paths(config.args)):
        require_environment(collection_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the servers of the local cloud, by the fixtures it asks for."""
    for item in items:
        if SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker("cloud")
