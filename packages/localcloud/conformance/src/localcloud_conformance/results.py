"""What was reached: `results.json`, what a run is held to, and the table of the docs.

The file has for each suite its release, the counts of tests that passed, ran, were skipped by the suite and are out of
scope, and the names of those that fail. A run is worse where fewer pass, or where a test fails that is not named there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from localcloud_conformance.runs import Outcome

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
HEAD = (
    "| suite | release | passed | in scope | share | skipped by itself | out of scope |\n|---|---|---|---|---|---|---|"
)


class Result(TypedDict):
    """A suite's part of the file."""

    release: str
    passed: int
    in_scope: int
    skipped: int
    out_of_scope: int
    failing: list[str]


def result_of(outcome: Outcome, release: str) -> Result:
    """Return what is kept of an outcome."""
    return Result(
        release=release,
        passed=len(outcome.passed),
        in_scope=outcome.in_scope,
        skipped=len(outcome.skipped),
        out_of_scope=len(outcome.left_out),
        failing=sorted(outcome.failed),
    )


def shortfalls(result: Result, recorded: Result | None) -> list[str]:
    """Return what is worse than recorded, a sentence each; nothing of a suite that was not recorded."""
    if recorded is None:
        return []
    new = [f"{test} fails" for test in result["failing"] if test not in recorded["failing"]]
    if result["passed"] < recorded["passed"]:
        new.append(f"{result['passed']} pass, {recorded['passed']} are recorded")
    return new


def read_results(path: Path) -> dict[str, Result]:
    """Return what is recorded, by suite; nothing where there is no file."""
    recorded: dict[str, Result] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return recorded


def write_results(path: Path, results: Mapping[str, Result]) -> None:
    """Write the file."""
    path.write_text(json.dumps(dict(sorted(results.items())), indent=2) + "\n", encoding="utf-8")


def render_table(results: Mapping[str, Result]) -> str:
    """Return the table of the docs."""
    rows = [
        f"| {name} | {result['release']} | {result['passed']} | {result['in_scope']} "
        f"| {100 * result['passed'] / result['in_scope']:.1f} % | {result['skipped']} | {result['out_of_scope']} |"
        for name, result in sorted(results.items())
    ]
    return "\n".join([HEAD, *rows])


def replace_table(page: str, table: str) -> str:
    """Return a page of the docs with another table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"
