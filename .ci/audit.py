"""Ask the advisory database about every locked package: `make audit`.

In: the hash-locked requirements files, and the table of accepted advisories in docs/security.md. Out: a line for each
finding, and counts by file. Ends with 0 when every package was asked about and nothing is left to do, 1 with findings
that nobody accepted or acceptances that nothing needs any more, 2 when packages could not be asked about.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SECURITY_PAGE = ROOT / "docs" / "security.md"
ACCEPTED_ROW = re.compile(r"^\| `((?:CVE|GHSA|PYSEC)-[^`]+)` \|", re.MULTILINE)
LOCKS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-audit.txt",
    "requirements-floor.txt",
    "requirements-lineage.txt",
    "requirements-mlflow.txt",
    "requirements-uv.txt",
    "trainer/requirements.txt",
    "trainer/requirements-dev.txt",
    "trainer/requirements-gpu.txt",
    "trainer/requirements-tfio.txt",
    "trainer/requirements-tfjs.txt",
    "examples/sklearn/image/requirements.txt",
    "examples/xgboost/image/requirements.txt",
    "dev/requirements.txt",
    "packages/localcloud/src/localcloud/tuning-requirements.txt",
    "packages/bench/requirements-drift.txt",
    "packages/bench/requirements-emulators.txt",
    "packages/bench/requirements-models.txt",
    "packages/bench/requirements-tfx.txt",
    "dev/tfdv/requirements.txt",
    "packages/localcloud/clients/requirements.txt",
    "packages/localcloud/clients/dbt.txt",
    "packages/localcloud/clients/gsutil.txt",
    "packages/localcloud/clients/tables.txt",
    "packages/localcloud/conformance/dbt.txt",
    "packages/localcloud/conformance/ibis.txt",
    "packages/localcloud/conformance/requirements.txt",
    "packages/localcloud/conformance/sources.txt",
    "dev/containers/requirements.txt",
    "dev/containers/airflow-requirements.txt",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Advisory:
    """A published fault of a locked package.

    Attributes:
        ids: Its own and its aliases (CVE, GHSA, PYSEC).
        fixed_in: Versions without it; empty: none yet.
    """

    ids: frozenset[str]
    package: str
    version: str
    fixed_in: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """What the database said about one file."""

    lock: str
    asked: int
    skipped: tuple[str, ...]
    found: tuple[Advisory, ...]


def run_pip_audit(lock: str) -> Audit:
    """Ask about one lock file. Nothing is installed or resolved: the file has every version and hash.

    Raises:
        SystemExit: pip-audit gave no answer; with what it said instead.
    """
    command = [str(Path(sys.executable).parent / "pip-audit"), "--disable-pip", "--require-hashes"]
    command += ["--progress-spinner", "off", "--format", "json", "--requirement", str(ROOT / lock)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"audit: {lock}: no answer from pip-audit: {done.stderr.strip()}")
    return read_audit(lock, json.loads(done.stdout))


def read_audit(lock: str, answer: Mapping[str, Any]) -> Audit:
    """Read the JSON that pip-audit prints."""
    asked, skipped, found = 0, [], []
    for package in answer["dependencies"]:
        if "skip_reason" in package:
            skipped.append(package["name"])
            continue
        asked += 1
        found += [
            Advisory(
                ids=frozenset({fault["id"], *fault.get("aliases", ())}),
                package=package["name"],
                version=package["version"],
                fixed_in=tuple(fault.get("fix_versions", ())),
            )
            for fault in package["vulns"]
        ]
    return Audit(lock=lock, asked=asked, skipped=tuple(skipped), found=tuple(found))


def judge(audits: Iterable[Audit], accepted: frozenset[str]) -> tuple[int, list[str]]:
    """Hold the findings against what was accepted.

    Returns:
        The exit status, and the lines to print.
    """
    lines, used, open_count, skipped_count = [], set[str](), 0, 0
    for audit in audits:
        lines.append(
            f"{audit.lock}: {audit.asked} asked about, {len(audit.skipped)} not, {len(audit.found)} advisories"
        )
        skipped_count += len(audit.skipped)
        for fault in audit.found:
            names = ", ".join(sorted(fault.ids))
            if taken := fault.ids & accepted:
                used |= taken
                continue
            open_count += 1
            way_out = f"fixed in {', '.join(fault.fixed_in)}: make lock" if fault.fixed_in else "no release without it"
            lines.append(f"  {fault.package} {fault.version}: {names}; {way_out}, or accept it in docs/security.md")
    if skipped_count:
        lines.append(f"{skipped_count} packages could not be asked about: is the index's advisory database reachable?")
        return (1 if open_count else 2), lines
    stale = sorted(accepted - used)
    lines += [
        f"{name}: accepted in docs/security.md, and no locked package has it any more: take it out" for name in stale
    ]
    return (1 if open_count or stale else 0), lines


def main() -> int:
    """Audit every lock and print what was found."""
    accepted = frozenset(ACCEPTED_ROW.findall(SECURITY_PAGE.read_text(encoding="utf-8")))
    status, lines = judge([run_pip_audit(lock) for lock in LOCKS], accepted)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
