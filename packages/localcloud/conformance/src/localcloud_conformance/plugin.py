"""The plugin of pytest that a suite is run with: leaves out what is out of scope, notes what came of each test.

It runs in the clients' environment, and changes nothing of a suite. Comes in by the environment: CONFORMANCE_SCOPE, a
JSON file of `{pattern of a test's id: reason}`, and CONFORMANCE_OUTCOMES, where a JSON document goes at the end:
`{"outcomes": {test: "passed" | "failed" | "skipped"}, "left_out": {test: reason}, "unused": [pattern]}`.
"""

from __future__ import annotations

import fnmatch
import json
import os
from pathlib import Path
from typing import Any

import pytest

WORST_LAST = ("passed", "skipped", "failed")


class Outcomes:
    """What came of the tests of a session."""

    def __init__(self, scope: dict[str, str]) -> None:
        self.scope = scope
        self.outcomes: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.unused: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the tests that a pattern of the scope names."""
        used = set()
        for item in items:
            pattern = next((each for each in self.scope if matches(item.nodeid, each)), None)
            if pattern is not None:
                used.add(pattern)
                self.left_out[item.nodeid] = self.scope[pattern]
        self.unused = [pattern for pattern in self.scope if pattern not in used]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self.left_out])
        items[:] = [item for item in items if item.nodeid not in self.left_out]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the worst of a test's set-up, call and tear-down; an expected failure is a pass."""
        outcome = "passed" if hasattr(report, "wasxfail") and report.skipped else report.outcome
        known = self.outcomes.get(report.nodeid, "passed")
        self.outcomes[report.nodeid] = max(known, outcome, key=WORST_LAST.index)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that could not be read, or that skips itself whole."""
        if not report.passed:
            self.outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the document."""
        document: dict[str, Any] = {"outcomes": self.outcomes, "left_out": self.left_out, "unused": self.unused}
        Path(os.environ["CONFORMANCE_OUTCOMES"]).write_text(json.dumps(document), encoding="utf-8")


def matches(test: str, pattern: str) -> bool:
    """Say whether a pattern names a test; brackets in both are letters, as in ids of parameters."""
    return fnmatch.fnmatchcase(test, pattern.replace("[", "[[]"))


def pytest_configure(config: pytest.Config) -> None:
    """Take part in the session."""
    scope = json.loads(Path(os.environ["CONFORMANCE_SCOPE"]).read_text(encoding="utf-8"))
    config.pluginmanager.register(Outcomes(scope), "conformance-outcomes")
