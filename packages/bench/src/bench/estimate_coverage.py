"""`make bench-estimate`: how often the estimate's interval has the truth, by data set and sizes.

Evaluation and window are drawn from one population: nothing has changed, so that an interval of 95 % should miss one
truth in twenty. `before` is the interval of the answers' own chance alone, which earlier releases gave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.checkout import REPOSITORY_PATH
from bench.monitor_estimate import count, evaluate
from retraining.core.documents.evaluation import Scores
from retraining.core.metrics import Metric
from retraining.core.monitoring.estimates import ESTIMATES, estimate, find_label_shift
from retraining.core.monitoring.performance import measure
from retraining.core.monitoring.request_log import Counted, Cut
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from trainer.objective.metrics import Floats

RESULT_PATH = Path(__file__).with_name("coverage.json")
POPULATION = 200_000
EVALUATED, ANSWERED = (500, 2000, 10_000), (500, 5000, 50_000)
METRICS: tuple[Metric, ...] = ("auc", "log_loss", "accuracy")
REPEATS = 60


def populations() -> dict[str, tuple[Floats, Floats]]:
    """Return labels and scores by name: real flights, and made-up ones that are rare, sharp, or too sure."""
    table = pq.read_table(Path(__file__).with_name("flight_scores.parquet"))
    random = np.random.default_rng(0)
    rare, sharp = random.beta(0.5, 12, POPULATION), random.beta(0.4, 0.4, POPULATION)
    sure = random.beta(2, 3, POPULATION)
    found = {"flights": (table["label"].to_numpy().astype(float), table["score"].to_numpy().astype(float))}
    for name, scores, chances in (
        ("rare", rare, rare),
        ("sharp", sharp, sharp),
        ("too sure", sure, 0.25 + 0.5 * sure),
    ):
        found[name] = ((random.random(POPULATION) < chances).astype(float), scores)
    return found


def covered(spec: ModelSpec, evaluated: int, answered: int, population: tuple[Floats, Floats]) -> dict[str, Any]:
    """Return the share of repetitions whose interval has the truth, by metric, before and now; and of label shifts."""
    labels, scores = population
    hits = {metric: [0, 0] for metric in METRICS}
    shifts = judged = 0
    for seed in range(REPEATS):
        random = np.random.default_rng(seed)
        tested, asked = (random.integers(0, len(labels), size) for size in (evaluated, answered))
        evaluation, cut = evaluate(labels[tested], scores[tested]), count(labels[asked], scores[asked])
        answers = {place: Counted(each.examples, 0, each.total) for place, each in cut.histograms[""].items()}
        shifts += find_label_shift(answers, evaluation) is not None
        judged += 1
        for metric in METRICS:
            _count_hits(spec, metric, hits[metric], answers, evaluation, cut)
    shares: dict[str, Any] = {
        metric: [round(float(hit) / judged, 4) for hit in found] for metric, found in hits.items()
    }
    return shares | {"shifts": shifts / judged}


def _count_hits(
    spec: ModelSpec, metric: Metric, hits: list[int], answers: Mapping[int, Counted], evaluation: Scores, cut: Cut
) -> None:
    confidence = spec.evaluation.promote.confidence
    truth = measure(cut, metric, confidence)
    sides = (
        ESTIMATES["binary"][metric](dict(answers), evaluation, confidence),
        estimate(spec, metric, dict(answers), evaluation),
    )
    for place, found in enumerate(sides):
        if found is not None and truth is not None:
            hits[place] += found.low <= truth.value <= found.high


def measure_coverage(spec: ModelSpec) -> list[dict[str, Any]]:
    """Return all cells."""
    return [
        {"set": name, "evaluated": evaluated, "answered": answered} | covered(spec, evaluated, answered, population)
        for name, population in populations().items()
        for evaluated in EVALUATED
        for answered in ANSWERED
    ]


def coverage_rows(cells: list[dict[str, Any]]) -> list[str]:
    """Return the rows of the page's table: of each set and size of the evaluation the three windows together."""
    rows = []
    for name in dict.fromkeys(cell["set"] for cell in cells):
        for size in EVALUATED:
            own = [cell for cell in cells if (cell["set"], cell["evaluated"]) == (name, size)]
            parts = [
                f"{np.mean([cell[metric][0] for cell in own]):.0%} → {np.mean([cell[metric][1] for cell in own]):.0%}"
                for metric in METRICS
            ]
            lowest = min(cell[metric][1] for cell in own for metric in METRICS)
            rows.append(f"| {name} | {size:,} | {' | '.join(parts)} | {lowest:.0%} |")
    return rows


def main() -> int:
    """Measure and write the result."""
    spec = load_spec(REPOSITORY_PATH / "include" / "models" / "flight_delays.yaml")
    cells = measure_coverage(spec)
    RESULT_PATH.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
    print("\n".join(coverage_rows(cells)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
