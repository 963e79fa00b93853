"""A long run of tests that is stopped goes on where it was: `--go-on FILE` leaves out the files that passed before.

The file has a line for each finished file of tests, with its seconds; whoever gives it names it after the commit, so
that nothing is left out of which anything changed. By file, as the tests of many a file go on with each other's world.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--go-on", type=Path, default=None, metavar="FILE", help="leave out the files of tests that passed before"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the record while tests run."""
    path: Path | None = config.getoption("--go-on")
    if path is not None:
        config.pluginmanager.register(FinishedFiles(path), "finished-files")


class FinishedFiles:
    """Which files of tests have passed, and in which time.

    Args:
        path: Of the record; made when a first file has passed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = read_seconds(path)
        self._left: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(trylast=True)  # after `-m` and `-k`
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed."""
        done = [item for item in items if file_of(item.nodeid) in self._before]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if file_of(item.nodeid) not in self._before]
        self._left.update(file_of(item.nodeid) for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a file when its last test has passed, or was skipped."""
        file = file_of(report.nodeid)
        self._seconds[file] += report.duration
        if report.failed:
            self._failed.add(file)
        if report.when != "teardown":
            return
        self._left[file] -= 1
        if self._left[file] == 0 and file not in self._failed:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as record:
                record.write(json.dumps({"file": file, "seconds": round(self._seconds[file], 1)}) + "\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say that all is well where nothing is left to run, as all of it passed before."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._before:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what all that passed took, in this run and before."""
        seconds = read_seconds(self._path).values()
        earlier = f", {len(self._before)} of them before" if self._before else ""
        terminalreporter.write_line(f"{len(seconds)} files passed in {sum(seconds) / 60:.0f} minutes{earlier}")


def read_seconds(path: Path) -> dict[str, float]:
    """Return the seconds of the files that passed; a line that was cut off counts for none."""
    return dict(_lines(path.read_text(encoding="utf-8").splitlines())) if path.is_file() else {}


def _lines(lines: Iterable[str]) -> Iterable[tuple[str, float]]:
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        yield row["file"], row["seconds"]


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]
