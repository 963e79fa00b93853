"""`make bench-estimate`: how far the monitor's estimate, which needs no labels, is from what the labels say later.

In: the flights of 2013. Out: `estimate.json` and the table of `docs/monitoring.md`.

A model is trained on 60 days and evaluated on the next 7, as `include/models/flight_delays.yaml` says; then it answers
the month that follows (*fresh*). The one of March answers all later months, too (*held*). Estimates and truths are the
core's own, from the buckets that the monitor's query counts in.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH
from bench.flights import LABEL, flights_by_day
from bench.tables import flights_of_2013
from retraining.core.documents.answers import Answers, CalibrationBin, Curves
from retraining.core.documents.evaluation import Scores
from retraining.core.metrics import Metric, Metrics, NumberMetrics
from retraining.core.monitoring.estimates import estimate
from retraining.core.monitoring.intervals import Interval, Sums
from retraining.core.monitoring.performance import measure
from retraining.core.monitoring.request_log import SCORE_BUCKETS, Counted, Cut, Histogram, answer_edges
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from trainer.objective.curves import calibrate
from trainer.objective.metrics import Floats, area, hits, log_losses, squared_errors
from trainer.objective.number_metrics import describe_answers, measure_numbers

RESULT_PATH = Path(__file__).with_name("estimate.json")
MONTHS = range(3, 13)
TRAINING_DAYS, TEST_DAYS = 60, 7  # include/models/flight_delays.yaml: window_days, test_days
METRICS: tuple[Metric, ...] = ("auc", "log_loss", "accuracy", "mae")


def month_start(month: int) -> date:
    """Return the first day of a month of 2013, or of the January after it."""
    return date(2013 + month // 13, 1 if month == 13 else month, 1)


def make_plan() -> list[dict[str, list[str]]]:
    """Return what each month's model is trained on, and which days it scores: its test days and what it serves."""
    plan = []
    for month in MONTHS:
        served = month_start(month)
        tested = served - timedelta(days=TEST_DAYS)
        end = month_start(13) if month == MONTHS[0] else month_start(month + 1)
        plan.append(
            {
                "train": [str(tested - timedelta(days=TRAINING_DAYS)), str(tested)],
                "score": [str(tested), str(end)],
            }
        )
    return plan


def ask(python: str, folder: Path) -> pa.Table:
    """Return what the models answered."""
    flights, days = flights_by_day()
    flights = flights.rename_columns(["late" if name == LABEL else name for name in flights.column_names])
    minutes = flights_of_2013()["arr_delay"].drop_null().cast(pa.float64())  # in the same sequence
    flights = flights.append_column("day", days.cast(pa.date32())).append_column("minutes", minutes)
    pq.write_table(flights, folder / "flights.parquet")
    (folder / "plan.json").write_text(json.dumps(make_plan()))
    files = [str(folder / name) for name in ("flights.parquet", "plan.json", "scores.parquet")]
    environment = os.environ | {"PYTHONPATH": PACKAGES_PATH}
    subprocess.run([python, "-m", "bench.estimate_contender", *files], env=environment, check=True)
    return pq.read_table(folder / "scores.parquet")


def evaluate(labels: Floats, scores: Floats) -> Scores:
    """Return what the estimate reads of an evaluation of scores: the curve of calibration, and the metrics."""
    bins = calibrate(labels, scores, np.ones(len(labels)))
    calibration = tuple(CalibrationBin(rows=each.rows, score=each.score, positive=each.positive) for each in bins)
    metrics = Metrics(
        auc=area(labels, scores),
        log_loss=float(log_losses(labels, scores).mean()),
        accuracy=float(hits(labels, scores).mean()),
        brier=float(squared_errors(labels, scores).mean()),
    )
    return Scores(metrics=metrics, slices=(), curves=Curves(calibration=calibration))


def evaluate_numbers(labels: Floats, answers: Floats) -> Scores:
    """Return what the estimate reads of an evaluation of numbers: errors by size of the answer, and the metrics."""
    metrics = NumberMetrics.model_validate(asdict(measure_numbers(labels, answers, ())))
    bins = Answers.model_validate(asdict(describe_answers(labels, answers, ())))
    return Scores(metrics=metrics, slices=(), answers=bins)


def count_numbers(labels: Floats, answers: Floats, evaluation: Scores) -> Cut:
    """Return labelled answers as the monitor's query counts and sums them, in the bins of the evaluation's answers."""
    histogram: Histogram = {}
    places = np.searchsorted(answer_edges(evaluation.answers), answers, side="right")
    for place, answer in zip(places.tolist(), answers.tolist(), strict=True):
        cell = histogram.setdefault(place, Counted())
        cell.examples, cell.total = cell.examples + 1, cell.total + answer
    return Cut(histograms={"": histogram}, means={"mae": _sums(np.abs(answers - labels))})


def count(labels: Floats, scores: Floats) -> Cut:
    """Return labelled answers as the monitor's query counts and sums them."""
    histogram: Histogram = {}
    for bucket, label, score in zip((scores * SCORE_BUCKETS).astype(int).tolist(), labels, scores, strict=True):
        cell = histogram.setdefault(min(bucket, SCORE_BUCKETS - 1), Counted())
        cell.examples, cell.positives, cell.total = cell.examples + 1, cell.positives + label, cell.total + score
    losses = {"log_loss": log_losses(labels, scores), "accuracy": hits(labels, scores)}
    return Cut(histograms={"": histogram}, means={name: _sums(each) for name, each in losses.items()})


def _sums(losses: Floats) -> Sums:
    return Sums(examples=len(losses), total=float(losses.sum()), squares=float((losses**2).sum()))


def compare(spec: ModelSpec, metric: Metric, evaluation: Scores, cut: Cut) -> dict[str, Any]:
    """Return a metric's estimate over a month's answers, and what their labels say."""
    unlabelled = {place: Counted(each.examples, 0, each.total) for place, each in cut.histograms[""].items()}
    found = estimate(spec, metric, unlabelled, evaluation)
    truth = measure(cut, metric, spec.evaluation.promote.confidence)
    if found is None or truth is None:
        raise RuntimeError(f"{metric} is not defined on a month")
    evaluated: float = getattr(evaluation.metrics, metric)
    return {"evaluated": round(evaluated, 5), "estimate": _interval(found), "truth": _interval(truth)}


def _interval(found: Interval) -> list[float]:
    return [round(float(value), 5) for value in (found.value, found.low, found.high)]


def compare_month(spec: ModelSpec, tested: pa.Table, asked: pa.Table) -> dict[str, Any]:
    """Return each metric's comparison of a model: its answers on its test days, and those of a month."""
    (late, scores), (now_late, now_scores) = (_answers(part, "late") for part in (tested, asked))
    (minutes, delays), (now_minutes, now_delays) = (_answers(part, "minutes") for part in (tested, asked))
    evaluation, of_numbers = evaluate(late, scores), evaluate_numbers(minutes, delays)
    cut, cut_of_numbers = count(now_late, now_scores), count_numbers(now_minutes, now_delays, of_numbers)
    number = spec.model_copy(update={"label": spec.label.model_copy(update={"kind": "regression"})})
    return {
        metric: compare(number, metric, of_numbers, cut_of_numbers)
        if metric == "mae"
        else compare(spec, metric, evaluation, cut)
        for metric in METRICS
    }


def _answers(rows: pa.Table, label: str) -> tuple[Floats, Floats]:
    labels, answers = (rows[name].to_numpy().astype(float) for name in (label, f"{label}_answer"))
    return labels, answers


def measure_months(spec: ModelSpec, answers: pa.Table) -> dict[str, Any]:
    """Return each month's comparisons of the model that is fresh in it, and of that which is held since March."""
    models, days = answers["model"].to_numpy(), answers["day"].to_numpy()
    known: dict[str, dict[str, Any]] = {}
    for place, month in enumerate(MONTHS):
        in_month = (days >= np.datetime64(month_start(month))) & (days < np.datetime64(month_start(month + 1)))
        known[str(month)] = {"answers": int((in_month & (models == 0)).sum())}
        for name, model in (("fresh", place), ("held", 0)):
            on_test_days = days < np.datetime64(month_start(MONTHS[model]))
            parts = (answers.filter((models == model) & inside) for inside in (on_test_days, in_month))
            known[str(month)][name] = compare_month(spec, *parts)
    return known


def summarize(months: Mapping[str, Any], name: str, metric: str) -> dict[str, float]:
    """Return over all months the mean absolute error of the estimate, and of taking the evaluation's for it."""
    found = [month[name][metric] for month in months.values()]
    return {
        "estimate": _mean(abs(each["estimate"][0] - each["truth"][0]) for each in found),
        "evaluated": _mean(abs(each["evaluated"] - each["truth"][0]) for each in found),
        "bias": _mean(each["estimate"][0] - each["truth"][0] for each in found),
        "overlaps": sum(
            each["estimate"][1] <= each["truth"][2] and each["truth"][1] <= each["estimate"][2] for each in found
        ),
    }


def _mean(values: Iterable[float]) -> float:
    return round(statistics.mean(values), 5)


def table_rows(known: Mapping[str, Any]) -> list[str]:
    """Return the rows of the tables in `docs/monitoring.md`."""
    rows = []
    for month, found in known["months"].items():
        cells = [f"{found['answers']:,}"]
        for name in ("fresh", "held"):
            auc = found[name]["auc"]
            cells += [f"{auc['evaluated']:.3f}"] + [
                f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in (auc["estimate"], auc["truth"])
            ]
        rows.append(f"| {month_start(int(month)):%B} | {' | '.join(cells)} |")
    for (name, metric), each in ((key.split(), value) for key, value in known["errors"].items()):
        form = ".1f" if metric == "mae" else ".3f"
        cells = [f"{each[of]:{form}}" for of in ("estimate", "evaluated")] + [f"{each['bias']:+{form}}"]
        rows.append(f"| {name} | {metric} | {' | '.join(cells)} | {each['overlaps']:g} of {len(known['months'])} |")
    return rows


def main() -> int:
    """Measure and write the result."""
    spec = load_spec(REPOSITORY_PATH / "include" / "models" / "flight_delays.yaml")
    with tempfile.TemporaryDirectory() as folder:
        months = measure_months(spec, ask(sys.argv[1], Path(folder)))
    errors = {f"{name} {metric}": summarize(months, name, metric) for name in ("fresh", "held") for metric in METRICS}
    known = {
        "months": months,
        "errors": errors,
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
    }
    RESULT_PATH.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print("\n".join(table_rows(known)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
