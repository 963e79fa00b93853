"""`python -m localcloud_conformance`: run suites, print their shares, hold them to what is recorded.

Exit code 0: nothing is worse than recorded. 1: something is. 2: refused.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from localcloud_conformance.errors import ConformanceError
from localcloud_conformance.results import (
    Result,
    read_results,
    render_table,
    replace_table,
    result_of,
    shortfalls,
    write_results,
)
from localcloud_conformance.runs import run_suite
from localcloud_conformance.sources import put_data, read_releases, unpack_sources
from localcloud_conformance.suites import NAMES, SUITES

HOME = Path(__file__).resolve().parents[2]
DOCS = HOME.parent / "docs" / "conformance.md"
RECORDED, SOURCES, SCOPE = (HOME / name for name in ("results.json", "sources.txt", "out_of_scope.json"))

FETCHER = "conformance"
"""The environment that fetches the sources: it has pip, and what builds their metadata."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that are named, or all."""
    parser = argparse.ArgumentParser(prog="localcloud_conformance")
    parser.add_argument("--environments", type=Path, required=True, help="folder of the clients' environments")
    parser.add_argument("--home", type=Path, required=True, help="folder of the sources and of the logs")
    parser.add_argument("--record", action="store_true", help="keep what comes of it, and write the docs' table")
    parser.add_argument("suites", nargs="*")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except ConformanceError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    unknown = sorted(set(options.suites) - set(NAMES))
    if unknown:
        raise ConformanceError(
            "SUITES", found=", ".join(unknown), expected=f"some of {', '.join(NAMES)}", way_out="Name those"
        )
    home, environments = options.home.absolute(), options.environments.absolute()
    folders = unpack_sources(SOURCES, _python_of(environments, FETCHER), home / "sources")
    worse = []
    for suite in SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        started, log = time.monotonic(), home / f"{suite.name}.log"
        scope = json.loads(SCOPE.read_text(encoding="utf-8")).get(suite.name, {})
        python = _python_of(environments, suite.clients)
        put_data(folders[suite.source], suite.data, HOME)
        outcome = run_suite(suite, folder=folders[suite.source], python=python, scope=scope, log=log)
        result = result_of(outcome, read_releases(SOURCES)[suite.source])
        _say(suite.name, result, time.monotonic() - started, log)
        recorded = read_results(RECORDED)
        worse += [f"{suite.name}: {sentence}" for sentence in shortfalls(result, recorded.get(suite.name))]
        if options.record:
            _record({**recorded, suite.name: result})
    for sentence in [] if options.record else worse:
        print(f"conformance: {sentence}", file=sys.stderr)
    return 1 if worse and not options.record else 0


def _python_of(environments: Path, name: str) -> Path:
    return environments / name / "bin" / "python"


def _record(results: dict[str, Result]) -> None:
    """Keep results, and show them in the docs."""
    write_results(RECORDED, results)
    DOCS.write_text(replace_table(DOCS.read_text(encoding="utf-8"), render_table(results)), encoding="utf-8")


def _say(name: str, result: Result, seconds: float, log: Path) -> None:
    share = f"{result['passed']}/{result['in_scope']} passed"
    beside = f"{result['skipped']} skipped by itself, {result['out_of_scope']} out of scope"
    print(f"{name} {result['release']}: {share} ({beside}; {seconds:.0f} s; {log})", flush=True)
    for test in result["failing"]:
        print(f"  fails: {test}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
