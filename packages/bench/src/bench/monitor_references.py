"""`make monitor-references`: what NannyML, Evidently and TensorFlow Data Validation say of the same small inputs.

In: two Python interpreters, one with NannyML and Evidently, one with TensorFlow Data Validation. Out:
`tests/core/monitoring/references.json`: inputs drawn from fixed seeds, each tool's answers, and all versions.
`tests/core/monitoring/test_references.py` holds the monitor's functions to them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH

RESULT_PATH = REPOSITORY_PATH / "tests" / "core" / "monitoring" / "references.json"
ROWS = 120
Side = Sequence[float | None] | Mapping[str, int]
_ABC = {"AA": 60, "B6": 36, "UA": 24}


def make_inputs() -> dict[str, Any]:
    """Return the cases: categories as counts by value (`""` is missing), numbers as lists (null is missing)."""
    categories = [
        _case("same shares", _ABC, {"AA": 30, "B6": 18, "UA": 12}),
        _case("moved shares", _ABC, {"AA": 20, "B6": 50, "UA": 30}),
        _case("a new value", _ABC, {"AA": 40, "B6": 24, "UA": 6, "F9": 30}),
        _case("a value gone", _ABC, {"AA": 70, "B6": 30}),
        _case("missing categories", _ABC, {"AA": 30, "B6": 30, "UA": 20, "": 20}),
        _case("nothing in common", _ABC, {"F9": 50, "WN": 50}),
    ]
    first = _normal(0)
    numbers = [
        _case("same distribution", first, _normal(1)),
        _case("half a deviation up", first, _normal(2, mean=0.5)),
        _case("two deviations up", first, _normal(3, mean=2.0)),
        _case("three times as wide", first, _normal(4, deviation=3.0)),
        _case("missing numbers", first, [*_normal(5)[:90], *[None] * 30]),
        _case("counts of a few values", _counts(6, 2.0), _counts(7, 4.0)),
    ]
    return {"categories": categories, "numbers": numbers, "estimate": _estimate()}


def _case(name: str, reference: Side, current: Side) -> dict[str, Any]:
    return {"name": name, "reference": reference, "current": current}


def _normal(seed: int, *, mean: float = 0.0, deviation: float = 1.0) -> list[float]:
    return [round(float(value), 3) for value in np.random.default_rng(seed).normal(mean, deviation, ROWS)]


def _counts(seed: int, mean: float) -> list[float]:
    return [float(count) for count in np.random.default_rng(seed).poisson(mean, ROWS)]


def _estimate() -> dict[str, Any]:
    """Return scores that are too sure of themselves, with labels; no two scores are equal."""
    random = np.random.default_rng(8)

    def draw(rows: int, shift: float) -> dict[str, Any]:
        logits = random.normal(shift, 1.5, rows)
        labels = random.random(rows) < 1 / (1 + np.exp(-logits))
        scores = 1 / (1 + np.exp(-2.5 * logits))
        return {"scores": scores.round(9).tolist(), "labels": labels.astype(int).tolist()}

    return {"reference": draw(400, -1.0), "current": draw(250, -0.5)}


def ask(python: str, tool: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return what one tool says in its own environment."""
    environment = os.environ | {"PYTHONPATH": PACKAGES_PATH, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [python, "-W", "ignore", "-m", "bench.monitor_contender", tool]
    asked = json.dumps(inputs)
    done = subprocess.run(command, input=asked, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> int:
    """Ask all, and write the document."""
    both, tfdv = sys.argv[1:]
    inputs = make_inputs()
    found = {
        tool: ask(python, tool, inputs) for tool, python in {"nannyml": both, "evidently": both, "tfdv": tfdv}.items()
    }
    for case in [*inputs["categories"], *inputs["numbers"]]:
        case["answers"] = {tool: answer["answers"][case["name"]] for tool, answer in found.items()}
    for calibration in ("none", "isotonic"):
        inputs["estimate"][calibration] = found["nannyml"]["answers"][f"estimate_{calibration}"]
    made = {"command": "make monitor-references", **{tool: answer["versions"] for tool, answer in found.items()}}
    RESULT_PATH.write_text(json.dumps({"made": made, **inputs}) + "\n", encoding="utf-8")
    print(f"written: {RESULT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
