"""Hold the table of files that tests hardly run to what was measured: the end of `make coverage`.

In: coverage's JSON report, and the table under "Coverage" in CONTRIBUTING.md. Out: a line for each file below the
limit that has no reason there, and for each reason that no file needs. Ends with 0 when there is neither, else with 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
LIMIT = 80
_ROW = re.compile(r"^\| `([^`]+\.py)` \| .*\S.* \|$", re.MULTILINE)


def read_table(page: str) -> set[str]:
    """Return the files that the page has a reason for."""
    _, found, rest = page.partition("\n## Coverage\n")
    if not found:
        raise SystemExit(f"{PAGE.name}: no section 'Coverage'. Expected it, with a row `| `file` | reason |` per file")
    return set(_ROW.findall(rest.partition("\n## ")[0]))


def read_report(text: str) -> dict[str, float]:
    """Return the measured files, with the share of their lines that ran, in percent."""
    return {path: float(file["summary"]["percent_covered"]) for path, file in json.loads(text)["files"].items()}


def compare(measured: Mapping[str, float], reasons: set[str]) -> Iterator[str]:
    """Yield what is not as it should be, with the way out."""
    for path, percent in sorted(measured.items()):
        if percent < LIMIT and path not in reasons:
            yield f"{path}: {percent:.1f} %. Expected {LIMIT} %: test it, or say in {PAGE.name}, Coverage, why not"
    for path in sorted(reasons):
        if measured.get(path, 100.0) >= LIMIT:
            found = f"{measured[path]:.1f} %" if path in measured else "not measured"
            yield f"{path}: {found}, and {PAGE.name} says why it is under {LIMIT} %. Take its row out"


def main(report_path: Path) -> int:
    """Print what was found; return the exit status."""
    found = list(compare(read_report(report_path.read_text()), read_table(PAGE.read_text())))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
