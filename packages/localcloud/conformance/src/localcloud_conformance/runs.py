"""One run of a suite: a local cloud of its own, the suite's pytest beside it, and what came of its tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from localcloud.testing import start
from localcloud_conformance.errors import ConformanceError
from localcloud_conformance.suites import Suite

PROJECTS = 1
TEST_TIMEOUT_S = 300
ENDED = (0, 1)
"""Pytest's exit codes of a run that came to its end; a test may have failed."""
OWN_SOURCE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a suite.

    Attributes:
        passed: Tests that passed.
        failed: Tests that did not, or whose set-up or tear-down did not.
        skipped: Tests that the suite itself skipped.
        left_out: Tests that are out of scope.
    """

    passed: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]
    left_out: frozenset[str]

    @property
    def in_scope(self) -> int:
        """How many tests ran."""
        return len(self.passed) + len(self.failed)


def run_suite(suite: Suite, *, folder: Path, python: Path, scope: Mapping[str, str], log: Path) -> Outcome:
    """Run a suite against a local cloud that is started for it.

    Args:
        folder: The unpacked source.
        python: The interpreter of the clients' environment.
        scope: Patterns of tests that are out of scope, with their reasons.
        log: Where the output of pytest goes.

    Raises:
        ConformanceError: It came to no end, ran no test, or a pattern names no test.
    """
    with start(spare_projects=PROJECTS) as cloud, tempfile.TemporaryDirectory() as notes:
        written = Path(notes) / "outcomes.json"
        (Path(notes) / "scope.json").write_text(json.dumps(dict(scope)), encoding="utf-8")
        environ = {**os.environ, **cloud.environ, **suite.environment(cloud.project)}
        environ |= {"CONFORMANCE_SCOPE": str(Path(notes) / "scope.json"), "CONFORMANCE_OUTCOMES": str(written)}
        environ["PYTHONPATH"] = os.pathsep.join([cloud.environ["PYTHONPATH"].split(os.pathsep)[0], str(OWN_SOURCE)])
        environ = {name: value for name, value in environ.items() if value}
        words = [str(python), "-m", "pytest", "-p", "localcloud_conformance.plugin", f"--timeout={TEST_TIMEOUT_S}"]
        # A source that says nothing of pytest would be given the settings of the folders above it.
        (Path(notes) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        words += ["-c", str(Path(notes) / "pytest.ini"), f"--rootdir={folder}", f"--confcutdir={folder}"]
        words += [
            "-p",
            "no:cacheprovider",
            "--color=no",
            "-v",
            "-rfE",
            "--continue-on-collection-errors",
            *suite.options,
            *suite.tests,
        ]
        with log.open("w", encoding="utf-8") as output:
            run = subprocess.run(words, cwd=folder, env=environ, stdout=output, stderr=subprocess.STDOUT, check=False)
        if run.returncode not in ENDED or not written.exists():
            raise _no_end(suite, log)
        document = json.loads(written.read_text(encoding="utf-8"))
    return _read_outcome(suite, document, log)


def _read_outcome(suite: Suite, document: Mapping[str, Mapping[str, str]], log: Path) -> Outcome:
    if document["unused"]:
        raise ConformanceError(
            "out_of_scope.json",
            found=f"{suite.name} has no test for {', '.join(document['unused'])}",
            expected="a pattern for a test that there is",
            way_out="Remove it",
        )
    of = {
        kind: frozenset(test for test, outcome in document["outcomes"].items() if outcome == kind)
        for kind in ("passed", "failed", "skipped")
    }
    if not of["passed"] | of["failed"]:
        raise _no_end(suite, log)
    return Outcome(**of, left_out=frozenset(document["left_out"]))


def _no_end(suite: Suite, log: Path) -> ConformanceError:
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])
    print(tail, file=sys.stderr)
    return ConformanceError(
        suite.name,
        found="pytest came to no end, or ran no test",
        expected="outcomes of all its tests",
        way_out=f"Look at {log}",
    )
