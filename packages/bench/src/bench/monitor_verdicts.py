"""The verdicts of TensorFlow Data Validation, NannyML and Evidently on windows of `bench.monitor_limits`, beside ours.

In: the flights of 2013, and two Python interpreters, one with NannyML and Evidently, one with TensorFlow Data
Validation. Out: of a part of the windows, how many each calls a shift (`monitor_verdicts.json`), each at its defaults:

- ours: the limits by the training days;
- TensorFlow Data Validation: any anomaly by the schema that it infers from the training days. Of distances it has no
  threshold; with `VERTEX_THRESHOLD` it gets that of Vertex AI Model Monitoring, which measures with it;
- NannyML: the univariate calculator, each day of training a chunk, and a window another one;
- Evidently: the test that it chooses for a column, from all training days.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench import monitor_baselines, monitor_limits, monitor_references
from bench.flights import WEATHER
from bench.monitor_limits import Column, Window
from bench.origin import with_origin

RESULT_PATH = Path(__file__).with_name("monitor_verdicts.json")
MONTHS = (6, 12)
PER_FEATURE = 4
"""Windows of one kind, feature and month: the three tools take minutes of these alone."""
VERTEX_THRESHOLD = 0.3
CHANGING = ("day_of_week", *WEATHER)
RULES = ("by the days", "tfdv_schema", "tfdv_distance", "nannyml", "evidently")
Verdicts = dict[str, Counter[str]]


def sampled_windows(
    month: int, training: Mapping[str, Sequence[Column]], real: Mapping[str, Sequence[Column]]
) -> dict[str, list[Window]]:
    """Return by feature some windows of a month, evenly from each kind.

    Those without any value are left out: two of the tools refuse them, and the monitor names them (`feature_gone`).
    """
    by_kind: dict[tuple[str, str], list[Window]] = defaultdict(list)
    for window in monitor_limits.windows_of(month, training, real):
        if any(value is not None for value in window.values):
            by_kind[window.feature, window.what].append(window)
    found: dict[str, list[Window]] = defaultdict(list)
    for (feature, _), windows in by_kind.items():
        places = np.linspace(0, len(windows) - 1, min(PER_FEATURE, len(windows))).astype(int)
        found[feature].extend(windows[place] for place in places)
    return dict(found)


def judge_all(both: str, tfdv: str) -> tuple[Verdicts, dict[str, Any]]:
    """Return by kind of window how often each calls it a shift and (`of`) how many there are; and the tools' versions.

    Args:
        both: Python with NannyML and Evidently.
        tfdv: Python with TensorFlow Data Validation.
    """
    days: dict[str, Sequence[Column]] = {}
    windows: dict[str, list[Window]] = {}
    for month in MONTHS:
        training, real = monitor_limits.days_of(month)
        for feature, of in sampled_windows(month, training, real).items():
            days[f"{feature} {month}"], windows[f"{feature} {month}"] = training[feature], of
    features = {name: {"days": days[name], "windows": [one.values for one in of]} for name, of in windows.items()}
    asked = {"features": features, "threshold": VERTEX_THRESHOLD}
    tools = {"nannyml": both, "evidently": both, "tfdv": tfdv}
    with ThreadPoolExecutor(len(tools)) as pool:  # each waits for a process of its own
        asked_for = {
            tool: pool.submit(monitor_references.ask, python, f"{tool}_windows", asked)
            for tool, python in tools.items()
        }
    answers = {tool: answer.result() for tool, answer in asked_for.items()}
    found: Verdicts = defaultdict(Counter)
    for name, of in windows.items():
        verdicts = _ours(days[name], of)
        for answer in answers.values():
            verdicts |= answer["answers"][name]
        for place, window in enumerate(of):
            found[kind_of(window)].update({"of": 1} | {rule: int(verdicts[rule][place]) for rule in RULES})
    return dict(found), {tool: answer["versions"] for tool, answer in answers.items()}


def kind_of(window: Window) -> str:
    """Return what the page calls it: real days of the weather are apart, for weather has seasons."""
    changes = window.what == "real days" and window.feature in CHANGING
    return "real days, weekday and weather" if changes else window.what


def table_rows(known: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the rows of the table in `docs/monitoring.md`."""
    rows = []
    for what, of in known.items():
        shares = [f"{100 * of[rule] / of['of']:.0f} %" for rule in RULES]
        rows.append(f"| {what} | {of['of']:,} | {' | '.join(shares)} |")
    return rows


def _ours(days: Sequence[Column], windows: Sequence[Window]) -> dict[str, list[bool]]:
    baseline, rows = monitor_baselines.calibrated(days, monitor_limits.LEAST_ROWS)
    return {
        "by the days": [monitor_limits.verdicts(window, baseline, rows)["by the days"] for window in windows],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask all, and write the result."""
    parser = argparse.ArgumentParser(prog="bench.monitor_verdicts", description=__doc__)
    parser.add_argument("both", help="Python with NannyML and Evidently")
    parser.add_argument("tfdv", help="Python with TensorFlow Data Validation")
    options = parser.parse_args(arguments)

    def ask() -> dict[str, Any]:
        found, versions = judge_all(options.both, options.tfdv)
        return {
            "windows": {what: dict(sorted(counted.items())) for what, counted in found.items()},
            "versions": versions,
        }

    known = with_origin(ask)
    RESULT_PATH.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table_rows(known["windows"])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
