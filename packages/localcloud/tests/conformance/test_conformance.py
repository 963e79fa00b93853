"""The harness of public suites: what it leaves out, what it notes, and when a run is worse than the one recorded."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from localcloud_conformance.__main__ import DOCS, RECORDED, SCOPE, SOURCES, main
from localcloud_conformance.errors import ConformanceError
from localcloud_conformance.results import Result, read_results, render_table, replace_table, shortfalls
from localcloud_conformance.runs import OWN_SOURCE
from localcloud_conformance.sources import read_releases, unpack_sources
from localcloud_conformance.suites import NAMES, SUITES

TESTS = """
import pytest

@pytest.mark.parametrize("size", [1, 2])
def test_sizes(size):
    assert size == 1

def test_teardown(broken):
    pass

@pytest.fixture
def broken():
    yield
    raise RuntimeError

@pytest.mark.skip
def test_skipped(): ...

@pytest.mark.xfail
def test_expected():
    raise RuntimeError

def test_of_keys():
    raise RuntimeError
"""


def noted(folder: Path, scope: dict[str, str]) -> dict[str, object]:
    """Return what the plugin writes of those tests."""
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "scope.json").write_text(json.dumps(scope))
    paths = {name: str(folder / f"{name}.json") for name in ("scope", "outcomes")}
    environ = {"CONFORMANCE_SCOPE": paths["scope"], "CONFORMANCE_OUTCOMES": paths["outcomes"]}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "localcloud_conformance.plugin", "test_it.py"]
    run = subprocess.run(
        words, cwd=folder, env=os.environ | environ | {"PYTHONPATH": str(OWN_SOURCE)}, capture_output=True, check=False
    )
    assert run.returncode == 1, run.stdout
    document: dict[str, object] = json.loads((folder / "outcomes.json").read_text())
    return document


def test_each_test_has_its_worst_outcome(tmp_path: Path) -> None:
    """Parameters are told apart, a broken tear-down is a failure, an expected failure a pass; the rest ran not."""
    document = noted(tmp_path, {"test_it.py::test_of_*": "there are no keys"})
    assert document["outcomes"] == {
        "test_it.py::test_sizes[1]": "passed",
        "test_it.py::test_sizes[2]": "failed",
        "test_it.py::test_teardown": "failed",
        "test_it.py::test_skipped": "skipped",
        "test_it.py::test_expected": "passed",
    }
    assert document["left_out"] == {"test_it.py::test_of_keys": "there are no keys"}
    assert document["unused"] == []


def test_a_pattern_takes_brackets_for_letters_and_must_name_a_test(tmp_path: Path) -> None:
    """`test_sizes[2]` is that test, not a set of letters; a pattern that names none is told."""
    document = noted(tmp_path, {"test_it.py::test_sizes[2]": "too large", "test_it.py::test_gone": "was there once"})
    assert document["left_out"] == {"test_it.py::test_sizes[2]": "too large"}
    assert document["unused"] == ["test_it.py::test_gone"]


def result(passed: int, *failing: str) -> Result:
    """Return a result of a suite with 10 tests in scope."""
    return Result(release="1", passed=passed, in_scope=10, skipped=0, out_of_scope=0, failing=list(failing))


@pytest.mark.parametrize(
    ("now", "worse"),
    [
        (result(9, "b"), []),
        (result(10), []),
        (result(9, "c"), ["c fails"]),
        (result(8, "b"), ["8 pass, 9 are recorded"]),
    ],
    ids=["the same", "better", "another one fails", "one did not run"],
)
def test_a_run_is_held_to_the_recorded_one(now: Result, worse: list[str]) -> None:
    """By the names of what fails, and by the count of what passes."""
    assert shortfalls(now, result(9, "b")) == worse


def test_a_suite_without_a_record_is_held_to_nothing() -> None:
    """The first run of a new one."""
    assert shortfalls(result(1, "b"), None) == []


def test_the_page_shows_what_is_recorded() -> None:
    """The table of the docs is that of the results file, of the releases that are fetched."""
    recorded = read_results(RECORDED)
    page = DOCS.read_text(encoding="utf-8")
    assert recorded
    assert replace_table(page, render_table(recorded)) == page
    releases = read_releases(SOURCES)
    assert {suite.name: releases[suite.source] for suite in SUITES if suite.name in recorded} == {
        name: each["release"] for name, each in recorded.items()
    }


def test_what_is_left_out_has_a_reason() -> None:
    """Of suites that there are, a sentence each."""
    scope = json.loads(SCOPE.read_text(encoding="utf-8"))
    assert set(scope) <= set(NAMES)
    assert not [pattern for patterns in scope.values() for pattern, reason in patterns.items() if len(reason) < 10]


def test_an_unknown_suite_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name, before anything is fetched."""
    assert main(["--environments", str(tmp_path / "none"), "--home", str(tmp_path), "gcfs"]) == 2
    assert "SUITES: gcfs. Expected some of gcsfs, google-cloud-storage" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def fetched(folder: Path, hashed: bytes) -> dict[str, Path]:
    """Unpack a source that a stand-in for pip gives, under the hash of some bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("some_client-1.0/tests/test_it.py")
        archive.addfile(member, io.BytesIO())
    (folder / "some_client-1.0.tar.gz").write_bytes(packed.getvalue())
    digest = hashlib.sha256(packed.getvalue() + hashed).hexdigest()
    (folder / "sources.txt").write_text(f"# a client\nsome-client==1.0 --hash=sha256:{digest}\n")
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\ncd {folder}\ngrep -q "$(sha256sum some_client-1.0.tar.gz | cut -d" " -f1)" sources.txt || '
        '{ echo "hashes do not match" >&2; exit 1; }\n'
    )
    python.chmod(0o755)
    return unpack_sources(folder / "sources.txt", python, folder)


def test_a_source_is_unpacked_as_it_is(tmp_path: Path) -> None:
    """Into the folder of its name and release."""
    folders = fetched(tmp_path, b"")
    assert folders == {"some-client": tmp_path / "some_client-1.0"}
    assert (folders["some-client"] / "tests" / "test_it.py").is_file()


def test_a_source_of_another_hash_is_refused(tmp_path: Path) -> None:
    """In the words of who fetched it."""
    with pytest.raises(ConformanceError, match="hashes do not match"):
        fetched(tmp_path, b"changed")
    assert not (tmp_path / "some_client-1.0").exists()
