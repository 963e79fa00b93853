"""One public implementation for `make monitor-references` and others: `python -m bench.monitor_contender TOOL`.

It runs in the tool's environment. In: the inputs of `bench.monitor_references`, of `bench.monitor_vectors` or of
`bench.monitor_verdicts` as JSON. Out: as JSON, the tool's version and what it says of each input.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import statistics_pb2

os.environ |= {"NML_DISABLE_USAGE_LOGGING": "True", "DO_NOT_TRACK": "1"}
Case = Mapping[str, Any]
Side = Sequence[float | None] | Mapping[str, int]
LEAST = 1e-12
"""A threshold under every distance: TensorFlow Data Validation tells what it measured only where one is set."""


def values_of(side: Side) -> pd.Series:
    """Return one side of a case as a column: a list as it is, counts by value repeated; a missing one is null."""
    if not isinstance(side, Mapping):
        return pd.Series(side, dtype="float64")
    return pd.Series([None if value == "" else value for value, count in side.items() for _ in range(count)])


def ask_nannyml(inputs: Case) -> Case:
    """Measure every case, and estimate performance with and without calibration."""
    from nannyml.chunk import SizeBasedChunker
    from nannyml.drift.univariate import methods
    from nannyml.thresholds import ConstantThreshold

    def measure(method: Callable[..., Any], case: Case) -> tuple[float, Any]:
        reference, current = (values_of(case[side]).rename("x") for side in ("reference", "current"))
        made = method(chunker=SizeBasedChunker(chunk_size=len(reference)), threshold=ConstantThreshold())
        return float(made.fit(reference).calculate(current)), made

    answers: dict[str, Any] = {}
    for case in inputs["categories"]:
        found, _ = measure(methods.CategoricalJensenShannonDistance, case)
        answers[case["name"]] = {
            "l_infinity": measure(methods.LInfinityDistance, case)[0],
            "jensen_shannon_distance": found,
        }
    for case in inputs["numbers"]:
        found, made = measure(methods.ContinuousJensenShannonDistance, case)
        answers[case["name"]] = {"jensen_shannon_distance": found, "edges": made._bins.tolist()}
    for calibration in ("none", "isotonic"):
        answers[f"estimate_{calibration}"] = _estimate(inputs["estimate"], calibration)
    return answers


def _estimate(case: Case, calibration: str) -> Case:
    import nannyml
    from nannyml.calibration import NoopCalibrator

    def frame(side: Case) -> pd.DataFrame:
        scores = np.array(side["scores"])
        return pd.DataFrame({"score": scores, "answer": (scores >= 0.5).astype(int), "label": side["labels"]})

    reference, current = frame(case["reference"]), frame(case["current"])
    columns = {"y_pred_proba": "score", "y_pred": "answer", "y_true": "label"}
    estimator = nannyml.CBPE(
        **columns,
        problem_type="classification_binary",
        metrics=["roc_auc", "accuracy"],
        chunk_size=len(current),
        calibrator=NoopCalibrator() if calibration == "none" else None,
    )
    found = estimator.fit(reference).estimate(current.drop(columns="label")).filter(period="analysis").to_df()
    probabilities = estimator.calibrator.calibrate(current["score"]) if estimator.needs_calibration else None
    return {
        "auc": float(found["roc_auc"]["value"].iloc[0]),
        "accuracy": float(found["accuracy"]["value"].iloc[0]),
        "calibrated": None if probabilities is None else [round(float(value), 12) for value in probabilities],
    }


def ask_evidently(inputs: Case) -> Case:
    """Measure every case; its base is e, and its bins of numbers are those of both sides together."""
    from evidently.legacy.calculations.stattests.jensenshannon import _jensenshannon
    from evidently.legacy.core import ColumnType

    answers: dict[str, Any] = {}
    for kind, column in (("categories", ColumnType.Categorical), ("numbers", ColumnType.Numerical)):
        for case in inputs[kind]:
            reference, current = values_of(case["reference"]), values_of(case["current"])
            if kind == "numbers":  # it has no bin for what is missing, and refuses it
                reference, current = reference.dropna(), current.dropna()
            answers[case["name"]] = {
                "jensen_shannon_distance_base_e": float(_jensenshannon(reference, current, column, 0.1)[0])
            }
            if kind == "numbers" and reference.nunique() > 20:
                both = np.asarray(pd.concat([reference, current], axis=0).values)
                answers[case["name"]]["edges"] = np.histogram_bin_edges(both, bins="sturges").tolist()
    return answers


def ask_tfdv(inputs: Case) -> Case:
    """Compute statistics of every case, and hold them to each other with a threshold under every distance."""
    import tensorflow_data_validation as validation

    def measure(case: Case, distance: str) -> tuple[float, list[Any]]:
        sides = [pd.DataFrame({"x": values_of(case[side])}) for side in ("reference", "current")]
        found = [validation.generate_statistics_from_dataframe(side) for side in sides]
        return _compare(found, distance)["x"], [_histogram(side) for side in found]

    answers: dict[str, Any] = {}
    for case in inputs["categories"]:
        answers[case["name"]] = {
            "l_infinity": measure(case, "infinity_norm")[0],
            "jensen_shannon": measure(case, "jensen_shannon_divergence")[0],
        }
    for case in inputs["numbers"]:
        found, histograms = measure(case, "jensen_shannon_divergence")
        answers[case["name"]] = {"jensen_shannon": found, "histograms": histograms}
    return answers


def ask_tfdv_of_vectors(inputs: Case) -> Case:
    """Measure columns by their values, those of numbers also by the statistics that a run writes of them."""
    import tensorflow_data_validation as validation
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import statistics_pb2 as messages

    values: dict[str, float] = {}
    for case in inputs["vectors"]:
        number = not any(isinstance(value, str) for value in case["reference"])
        sides = [
            pd.DataFrame({"x": pd.Series(case[side], dtype="float64" if number else "object")})
            for side in ("reference", "current")
        ]
        found = [validation.generate_statistics_from_dataframe(side) for side in sides]
        values[case["name"]] = _compare(found, "jensen_shannon_divergence" if number else "infinity_norm")["x"]
    written = [
        text_format.Parse(inputs[side], messages.DatasetFeatureStatisticsList()) for side in ("reference", "current")
    ]
    return {"values": values, "pbtxt": _compare(written, "jensen_shannon_divergence")}


def judge_windows_nannyml(inputs: Case) -> Case:
    """Return whether each window is an alert: by the deviations of the training days, of each day a chunk."""
    import nannyml

    def judge(case: Case) -> list[bool]:
        days, windows = (
            pd.concat(
                [pd.DataFrame({"x": column_of(values), "at": start + place}) for place, values in enumerate(sides)],
                ignore_index=True,
            )
            for start, sides in ((0, case["days"]), (len(case["days"]), case["windows"]))
        )
        for side in (days, windows):
            side["at"] = pd.Timestamp("2013-01-01") + pd.to_timedelta(side["at"], unit="D")
        calculator = nannyml.UnivariateDriftCalculator(["x"], timestamp_column_name="at", chunk_period="D")
        found = calculator.fit(days).calculate(windows).filter(period="analysis").to_df()
        return [bool(alert) for alert in found["x", "jensen_shannon", "alert"]]

    return {name: {"nannyml": judge(case)} for name, case in inputs["features"].items()}


def judge_windows_evidently(inputs: Case) -> Case:
    """Return whether each window has drifted from all training days: by the test and threshold that it chooses itself.

    It leaves missing values out before it does.
    """
    from evidently.legacy.calculations.stattests import get_stattest
    from evidently.legacy.core import ColumnType

    def judge(case: Case) -> list[bool]:
        reference = _whole(case).dropna()
        kind = ColumnType.Categorical if reference.dtype == object else ColumnType.Numerical
        found = []
        for values in case["windows"]:
            current = column_of(values).dropna()
            test = get_stattest(reference, current, kind, None)
            found.append(bool(test(reference, current, kind, None).drifted))
        return found

    return {name: {"evidently": judge(case)} for name, case in inputs["features"].items()}


def judge_windows_tfdv(inputs: Case) -> Case:
    """Return whether each window has an anomaly by the schema inferred from all training days, and by distances.

    It has no threshold of its own for distances; it gets that of the inputs.
    """
    import tensorflow_data_validation as validation

    def judge(case: Case) -> dict[str, list[bool]]:
        reference = validation.generate_statistics_from_dataframe(pd.DataFrame({"x": _whole(case)}))
        distance = "infinity_norm" if _whole(case).dtype == object else "jensen_shannon_divergence"
        schema = validation.infer_schema(reference)
        found: dict[str, list[bool]] = {"tfdv_schema": [], "tfdv_distance": []}
        for values in case["windows"]:
            now = validation.generate_statistics_from_dataframe(pd.DataFrame({"x": column_of(values)}))
            found["tfdv_schema"].append(bool(validation.validate_statistics(now, schema).anomaly_info))
            found["tfdv_distance"].append(_compare((reference, now), distance)["x"] > inputs["threshold"])
        return found

    return {name: judge(case) for name, case in inputs["features"].items()}


def column_of(values: Sequence[Any]) -> pd.Series:
    """Return numbers or categories as a column; null is missing."""
    return pd.Series(values, dtype="object" if any(isinstance(value, str) for value in values) else "float64")


def _whole(case: Case) -> pd.Series:
    return column_of([value for day in case["days"] for value in day])


def _compare(sides: Sequence[statistics_pb2.DatasetFeatureStatisticsList], distance: str) -> dict[str, float]:
    """Return the distance of each feature of two statistics: those before, and those now."""
    import tensorflow_data_validation as validation

    before, now = sides
    schema = validation.infer_schema(before)
    for feature in schema.feature:
        getattr(feature.drift_comparator, distance).threshold = LEAST
    anomalies = validation.validate_statistics(now, schema, previous_statistics=before)
    return {
        info.path.step[0]: measured.value for info in anomalies.drift_skew_info for measured in info.drift_measurements
    }


def _histogram(statistics: statistics_pb2.DatasetFeatureStatisticsList) -> Case:
    """Return the equal-width bins `[low, high, count]` that the divergence is of, and how many are missing."""
    feature = statistics.datasets[0].features[0]
    numbers = feature.num_stats
    standard = next((each for each in numbers.histograms if each.type == each.STANDARD), None)
    bins = (
        [[bucket.low_value, bucket.high_value, bucket.sample_count] for bucket in standard.buckets] if standard else []
    )
    return {"bins": bins, "missing": numbers.common_stats.num_missing}


TOOLS: Mapping[str, tuple[str, Callable[[Case], Case]]] = {
    "nannyml": ("nannyml", ask_nannyml),
    "evidently": ("evidently", ask_evidently),
    "tfdv": ("tensorflow-data-validation", ask_tfdv),
    "tfdv_vectors": ("tensorflow-data-validation", ask_tfdv_of_vectors),
    "nannyml_windows": ("nannyml", judge_windows_nannyml),
    "evidently_windows": ("evidently", judge_windows_evidently),
    "tfdv_windows": ("tensorflow-data-validation", judge_windows_tfdv),
}


def main() -> int:
    """Answer what comes in."""
    package, ask = TOOLS[sys.argv[1]]
    versions = {name: version(name) for name in (package, "numpy", "pandas")}
    print(json.dumps({"versions": versions, "answers": ask(json.load(sys.stdin))}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
