"""Judging the examples before anything is paid for: findings with a severity, and a sentence for each.

In: the plan, what the run table holds, and documents of earlier runs. Out: `checks.json`. Which checks there are stands
in `spec.check_rules`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time

from retraining.core.checks.assertions import assertion_findings
from retraining.core.checks.features import feature_findings
from retraining.core.checks.findings import finding
from retraining.core.checks.history import (
    NO_HISTORY,
    History,
    schema_changes,
    vanished_categories,
    volume_change,
    volume_of,
)
from retraining.core.checks.labels import label_findings, weight_findings
from retraining.core.checks.quarantine import bad_days
from retraining.core.data.column_roles import Mismatch, mismatches, missing_columns
from retraining.core.data.snapshot import OTHER_DATA
from retraining.core.documents.checks import (
    AssertionResult,
    Checks,
    Finding,
    LabelStatistics,
    SplitStatistics,
    Statistics,
)
from retraining.core.documents.document import format_time
from retraining.core.documents.evaluation import LEAST_ROWS
from retraining.core.documents.plan import Plan
from retraining.core.documents.snapshot import Snapshot
from retraining.core.errors import DataError
from retraining.core.metrics import HIGHER_IS_BETTER, METRICS, LabelShape, Metric
from retraining.core.spec.features import cost_matrix
from retraining.core.spec.model import ModelSpec


def decision_findings(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield what makes the decision vain: too few test rows or positives, a floor out of reach or below every model."""
    test = statistics.splits["test"]
    least = spec.evaluation.promote.min_examples
    if 0 < test.rows < least:
        yield finding(
            spec,
            "min_examples",
            found=f"{test.rows} rows in test",
            expected=f"at least {least}",
            message=f"{test.rows} test examples are too few to judge, so nothing of this run will be promoted: "
            "lengthen data.test_days, or lower evaluation.promote.min_examples",
        )
    yield from _evidence(spec, test)
    yield from _floor(spec, test.label)


def _evidence(spec: ModelSpec, test: SplitStatistics) -> Iterator[Finding]:
    """Yield the scarcest kind of rows that the metric needs, where nothing could be judged by it.

    The judge counts again, by the examples' weights and groups.
    """
    units, count = min(_needed_rows(spec, test), key=lambda item: item[1], default=("rows", LEAST_ROWS))
    if not test.rows or count >= LEAST_ROWS:
        return
    longer = "lengthen data.test_days" if spec.data.split == "time" else "raise data.test_percent"
    longer = longer if spec.data.sample_percent == 100 else f"raise data.sample_percent, or {longer}"
    yield finding(
        spec,
        "min_evidence",
        feature=spec.label.name,
        found=f"{count} {units} in test",
        expected=f"at least {LEAST_ROWS}",
        message=f"{count} {units} are too few to judge {spec.evaluation.metric} by, so nothing of this run will be "
        f"promoted: {longer}",
    )


def _needed_rows(spec: ModelSpec, test: SplitStatistics) -> list[tuple[str, int]]:
    """Return the kinds of rows that the metric needs, with how many there are; of a label without statistics none."""
    label = test.label
    if spec.label.kind == "regression":
        return [("rows", test.rows)]
    if label.counts is None:
        positives = None if label.mean is None else round(test.rows * label.mean)
        return [] if positives is None else [("positives", positives), ("negatives", test.rows - positives)]
    if METRICS[spec.evaluation.metric].of_each_class:
        return [(f"rows of class {place}", count) for place, count in enumerate(label.counts) if count]
    return [("rows outside the most frequent class", sum(label.counts) - max(label.counts))] if label.counts else []


def constant_score(metric: Metric, label: LabelStatistics, costs: Sequence[Sequence[float]] = ()) -> float | None:
    """Return what a model scores that always answers with the shares of the test labels; None: it is not known.

    Args:
        metric: That is asked for.
        label: Over the test split.
        costs: What each answer costs, by the right class; empty: the label has none. [classes, classes]
    """
    shares, numbers = _shares(label), label.numbers
    if not shares and numbers is None:
        return None
    stddev = numbers.stddev if numbers else None
    shape = LabelShape(shares=shares, is_binary=label.counts is None, stddev=stddev, costs=costs)
    return METRICS[metric].constant(shape)


def _shares(label: LabelStatistics) -> list[float]:
    if label.counts is not None:
        total = sum(label.counts)
        return [count / total for count in label.counts] if total else []
    return [] if label.mean is None or not 0 <= label.mean <= 1 else [1 - label.mean, label.mean]


def _floor(spec: ModelSpec, label: LabelStatistics) -> Iterator[Finding]:
    metric, floor = spec.evaluation.metric, spec.evaluation.floor
    higher = metric in HIGHER_IS_BETTER
    key = "evaluation.min_value" if higher else "evaluation.max_value"
    constant = constant_score(metric, label, cost_matrix(spec.label))
    if floor > 1 if higher else floor < 0:
        best = 1 if higher else 0
        yield finding(
            spec,
            "floor",
            found=f"{key} {floor:g}",
            expected=f"a bound that a {metric} can reach: its best is {best}",
            message=f"no model reaches {key} {floor:g}, so nothing of this run will be promoted: "
            f"{'lower' if higher else 'raise'} it",
        )
    elif constant is not None and (floor <= constant if higher else floor >= constant):
        yield finding(
            spec,
            "floor",
            found=f"{key} {floor:g}",
            expected=f"{'above' if higher else 'below'} {constant:.4f}",
            message=f"a model that always answers the same has {metric} {constant:.3f} on these "
            f"{spec.data.tested_name} and reaches {key} {floor:g}: the floor stops nothing; "
            f"{'raise it over' if higher else 'lower it under'} that",
        )


_AGAIN = "trigger the DAG again with this run's as_of and the Param force"


def require_passed(checks: Checks, uri: str) -> None:
    """Refuse to go on with data that does not pass.

    Args:
        checks: What was found.
        uri: Of the document.

    Raises:
        DataError: Findings block.
    """
    if not checks.passed:
        blocking = [finding for finding in checks.findings if finding.severity == "block"]
        messages = "; ".join(finding.message for finding in blocking)
        counted = "1 finding blocks" if len(blocking) == 1 else f"{len(blocking)} findings block"
        raise DataError(uri, f"{counted}: {messages}", "none", OTHER_DATA)


def check_data(
    plan: Plan,
    snapshot: Snapshot,
    statistics: Statistics,
    history: History = NO_HISTORY,
    assertions: tuple[AssertionResult, ...] = (),
) -> Checks:
    """Return all findings on a snapshot. It passed when none of them blocks.

    Args:
        plan: The run.
        snapshot: Its run table.
        statistics: Of the run table, without the days of `quarantine.days_to_leave_out`.
        history: Runs before this one.
        assertions: What the model's own checks found.
    """
    spec, volume = plan.spec, volume_of(plan, statistics)
    of_columns = list(_of_columns(plan, snapshot, history))
    of_rows = [
        *_left_out(spec, snapshot),
        *bad_days(plan, statistics.days),
        *_rows(spec, statistics),
        *volume_change(plan, volume, history),
        *_age(plan, statistics),
        *_split_days(plan, statistics),
        *_keys(spec, statistics),
        *label_findings(spec, statistics),
        *weight_findings(spec, statistics),
        *feature_findings(spec, statistics),
        *vanished_categories(plan, statistics, history),
        *decision_findings(spec, statistics),
    ]
    # What has a wrong type was read as missing: only the type is worth a word.
    unreadable = {item.feature for item in of_columns if item.check == "types"}
    findings = (
        *of_columns,
        *(item for item in of_rows if item.feature not in unreadable),
        *assertion_findings(spec, assertions),
    )
    return Checks(
        model=plan.model,
        run_key=plan.run_key,
        passed=all(item.severity != "block" for item in findings),
        findings=findings,
        quarantined=statistics.quarantined,
        volume=volume,
        compared_with=history.compared_with,
        assertions=assertions,
    )


def _of_columns(plan: Plan, snapshot: Snapshot, history: History) -> Iterator[Finding]:
    yield from _columns(plan.spec, "columns", missing_columns(plan.spec, snapshot.columns))
    yield from _columns(plan.spec, "types", mismatches(plan.spec, snapshot.columns))
    yield from schema_changes(plan, snapshot, history)


def _columns(spec: ModelSpec, check: str, unfit: Iterable[Mismatch]) -> Iterator[Finding]:
    for item in unfit:
        yield finding(spec, check, feature=item.column, found=item.found, expected=item.expected, message=item.message)


def _left_out(spec: ModelSpec, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what the query gave and no day could hold."""
    left_out = snapshot.left_out
    if left_out and left_out.future:
        yield finding(
            spec,
            "future_events",
            feature=spec.data.event_time,
            found=f"{left_out.future} rows, the latest of {left_out.latest}",
            expected="events that have happened",
            message=f"{left_out.future} examples are of days to come and were left out: whose clock is wrong?",
        )
    if left_out and left_out.undated:
        yield finding(
            spec,
            "undated_events",
            feature=spec.data.event_time,
            found=f"{left_out.undated} rows",
            expected="a time in every row",
            message=f"{left_out.undated} examples have no {spec.data.event_time} and were left out: mend the source",
        )


def _rows(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    rows = {name: split.rows for name, split in statistics.splits.items()}
    total, window = sum(rows.values()), statistics.window
    least = math.ceil(spec.data.checks.min_rows * spec.data.sample_percent / 100)
    if total == 0:
        days = f" between {window.start} and {window.end}" if spec.data.split == "time" else ""
        message = f"no example{days}: {_where_examples_are(spec)}"
        yield finding(spec, "empty_window", found="0 rows", expected="examples in the window", message=message)
        return
    if total < least:
        message = f"{total} examples are too few: is a source table late? Else lower data.checks.min_rows"
        yield finding(spec, "min_rows", found=f"{total} rows", expected=f"at least {least}", message=message)
    for name, count in rows.items():
        if count == 0:
            where = "test_days, data.validation_percent and the newest days"
            where = where if spec.data.split == "time" else "test_percent and data.validation_percent"
            message = f"the {name} split is empty: look at data.{where}"
            if spec.data.validation_by == "days" and name in ("train", "validation"):
                message += ", or set data.validation_by: rows, as few days have rows"
            yield finding(
                spec, "empty_split", found=f"0 rows in {name}", expected="rows in every split", message=message
            )


def _where_examples_are(spec: ModelSpec) -> str:
    """Return where to look for examples: of data that ended, before its end."""
    days, as_of = spec.data.days, spec.data.whole_as_of
    if days is None or as_of is None:
        return "look at the source tables"
    return f"the data ended on {days[1]} (data.days). Set the Param as_of to {as_of:%Y-%m-%dT%H:%M:%SZ}"


def _age(plan: Plan, statistics: Statistics) -> Iterator[Finding]:
    most, end = plan.spec.data.checks.max_age_hours, _midnight(plan.window.end)
    newest = max((day.last_event for day in statistics.days), default=None)
    if most is None or newest is None:
        return
    hours = (end - newest).total_seconds() / 3600
    if hours > most:
        yield finding(
            plan.spec,
            "max_age_hours",
            found=f"{format_time(newest)}, {hours:.1f} hours before the window's end",
            expected=f"at most {most:g} hours before {format_time(end)}",
            message=f"the newest example is {hours:.1f} hours older than the window's end: is a source table late?",
        )


def _split_days(plan: Plan, statistics: Statistics) -> Iterator[Finding]:
    """Prove by the events' own times, not by their spans, that no event of the test days can be trained on."""
    start, test_start, end = (_midnight(day) for day in (plan.window.start, plan.window.test_start, plan.window.end))
    for name, split in statistics.splits.items():
        low, high = (test_start, end) if name == "test" else (start, test_start)
        first, last = split.first_event, split.last_event
        if first is None or last is None or (low <= first and last < high):
            continue
        yield finding(
            plan.spec,
            "day_overlap",
            found=f"events of {name} from {format_time(first)} to {format_time(last)}",
            expected=f"from {format_time(low)} to before {format_time(high)}",
            message=f"events of {name} are outside its days: the run table is not what the snapshot made; {_AGAIN}",
        )


def _keys(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    keys, key = statistics.keys, spec.data.key
    total = sum(split.rows for split in statistics.splits.values())
    if keys.nulls:
        message = f"{keys.nulls} examples have no key, so no split for life: leave them out in the query"
        yield finding(
            spec, "null_keys", found=f"{keys.nulls} rows without a key", expected="a key in every row", message=message
        )
    doubled = total - keys.nulls - keys.distinct
    if doubled > 0:
        both = "days and before them" if spec.data.split == "time" else "rows and among the others"
        tested = f" ({keys.also_tested} keys stand in the test {both})" if keys.also_tested else ""
        message = (
            f"{doubled} rows repeat a key{tested}: an example could be trained on and tested on. "
            "Make the query's rows unique"
        )
        yield finding(
            spec, "duplicate_keys", found=f"{doubled} repeated keys", expected="each key once", message=message
        )
    if keys.in_two_parts:
        message = (
            f"{keys.in_two_parts} keys stand in train and in validation: the run table is not what the snapshot made; "
            f"{_AGAIN}"
        )
        yield finding(
            spec,
            "key_in_two_parts",
            found=f"{keys.in_two_parts} values of {key} in both",
            expected="each key in one part for life",
            message=message,
        )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
