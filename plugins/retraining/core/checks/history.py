"""A run's data against earlier runs: how many rows, which columns, which categories.

In: documents of runs whose data passed, as they are stored. What they were is written into `checks.json`, so that the
verdict can be given again from the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from itertools import islice
from statistics import median

from retraining.core.checks.findings import finding, severity_of, shown
from retraining.core.documents.checks import CategoricalStatistics, Checks, Compared, Finding, Statistics, Volume
from retraining.core.documents.document import digest
from retraining.core.documents.plan import Plan
from retraining.core.documents.snapshot import Column, Snapshot

MEANINGFUL_SHARE = 0.01
"""A category that fewer earlier training examples had may be gone by chance."""

SURELY_SEEN = 10
"""Rows of a category that must be expected before none is a finding: by chance that happens once in 22,000 times."""


@dataclass(frozen=True, kw_only=True)
class History:
    """Runs before this one whose data passed, newest first; of the newest also its columns and statistics.

    `uris` are the addresses of `checks`, in the same order.
    """

    checks: tuple[Checks, ...] = ()
    uris: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    snapshot_uri: str = ""
    statistics: Statistics | None = None
    statistics_uri: str = ""
    compared_with: tuple[Compared, ...] = ()


NO_HISTORY = History()


def passed_runs(verdicts: Iterable[tuple[str, bytes, Checks]], most: int) -> list[tuple[str, bytes]]:
    """Return addresses and bytes of the last verdicts on data that passed.

    A run that was stopped is nothing to compare with: its bad data would be what the next run expects.

    Args:
        verdicts: With what they say, newest first; read no further than needed.
        most: How many are compared with.
    """
    return list(islice(((uri, data) for uri, data, checks in verdicts if checks.passed), most))


def build_history(stored: Sequence[tuple[str, bytes]]) -> History:
    """Return the documents of earlier runs, from their addresses and bytes; checks newest first.

    Raises:
        ContractError: One does not obey its contract.
    """
    of_kind = {
        kind: [(uri, data) for uri, data in stored if uri.endswith(f"/{kind.kind_name()}.json")]
        for kind in (Checks, Snapshot, Statistics)
    }
    snapshots, statistics = of_kind[Snapshot], of_kind[Statistics]
    return History(
        checks=tuple(Checks.parse(data, uri) for uri, data in of_kind[Checks]),
        uris=tuple(uri for uri, _ in of_kind[Checks]),
        snapshot=Snapshot.parse(snapshots[0][1], snapshots[0][0]) if snapshots else None,
        snapshot_uri=snapshots[0][0] if snapshots else "",
        statistics=Statistics.parse(statistics[0][1], statistics[0][0]) if statistics else None,
        statistics_uri=statistics[0][0] if statistics else "",
        compared_with=tuple(Compared(uri=uri, sha256=digest(data)) for uri, data in stored),
    )


def volume_of(plan: Plan, statistics: Statistics) -> Volume:
    """Return how much this run has: a source that is younger than the window is not taken for one with gaps."""
    first = min((day.span for day in statistics.days), default=plan.window.end)
    days = (plan.window.end - first) // timedelta(days=1) if plan.spec.data.split == "time" else 1
    return Volume(
        rows=sum(split.rows for split in statistics.splits.values()),
        days=days - sum(first <= day < plan.window.end for day in statistics.quarantined),
        data_version=plan.spec.data.schema_version,
        sample_percent=plan.spec.data.sample_percent,
    )


def volume_change(plan: Plan, volume: Volume, history: History) -> Iterator[Finding]:
    """Yield the examples per day against the median of the last runs of the same data version and sample."""
    limits = plan.spec.data.checks
    earlier = [
        (uri, Fraction(run.volume.rows, run.volume.days))
        for uri, run in zip(history.uris, history.checks, strict=True)
        if run.volume and run.volume.days and _is_comparable(run.volume, volume)
    ][: limits.volume_runs]
    if limits.max_volume_change is None or not earlier or not volume.days:
        return
    now, usual = Fraction(volume.rows, volume.days), median(rate for _, rate in earlier)
    if not usual or abs(now - usual) <= Fraction(str(limits.max_volume_change)) * usual:
        return
    change = f"{float(abs(now - usual) / usual):.0%} {'more' if now > usual else 'fewer'}"
    runs = f"the last {len(earlier)} runs" if len(earlier) > 1 else "the last run"
    per_day = " per day" if plan.spec.data.split == "time" else ""
    message = (
        f"{float(now):,.0f} examples{per_day} are {change} than in {runs}: is a source table late or doubled? "
        "Else raise data.checks.max_volume_change, or data.schema_version to begin anew"
    )
    yield finding(
        plan.spec,
        "max_volume_change",
        found=f"{float(now):.1f} rows{per_day} ({volume.rows} in {volume.days} days)"
        if per_day
        else f"{volume.rows} rows",
        expected=f"{float(usual):.1f}, the median of {runs}, give or take {limits.max_volume_change:.0%}",
        message=message,
        compared_with=tuple(uri for uri, _ in earlier),
    )


def _is_comparable(earlier: Volume, now: Volume) -> bool:
    return (earlier.data_version, earlier.sample_percent) == (now.data_version, now.sample_percent)


def schema_changes(plan: Plan, snapshot: Snapshot, history: History) -> Iterator[Finding]:
    """Yield the columns that are not as in the last run, unless the spec says that they may be others now."""
    if history.snapshot is None:
        return
    volume = history.checks[0].volume if history.checks else None
    accepted = volume.data_version if volume else 1
    changes = _changes(history.snapshot.columns, snapshot.columns)
    if not changes or plan.spec.data.schema_version > accepted:
        return
    yield finding(
        plan.spec,
        "schema",
        found="; ".join(changes),
        expected=f"the columns of run {history.snapshot.run_key}",
        message=(
            f"the query's columns are not those of the last run: {'; '.join(changes)}. If that is wanted, set "
            f"data.schema_version to {accepted + 1}; else mend {plan.query.path} or its source"
        ),
        compared_with=(history.snapshot_uri,),
    )


def _changes(before: Sequence[Column], now: Sequence[Column]) -> list[str]:
    old, new = ({column.name: column for column in columns} for columns in (before, now))
    added = [f"{name} ({_type(column)})" for name, column in new.items() if name not in old]
    removed = [f"{name} ({_type(column)})" for name, column in old.items() if name not in new]
    changed = [
        f"{name} from {_type(old[name])} to {_type(column)}"
        for name, column in new.items()
        if name in old and _type(old[name]) != _type(column)
    ]
    listed = (("added", added), ("removed", removed), ("changed", changed))
    return [f"{verb} {shown(names, 20)}" for verb, names in listed if names]


def _type(column: Column) -> str:
    return f"{column.type} REPEATED" if column.mode == "REPEATED" else column.type


def vanished_categories(plan: Plan, statistics: Statistics, history: History) -> Iterator[Finding]:
    """Yield the categories that earlier training had a share of, and the test days have not one example of."""
    if severity_of(plan.spec, "vanished_category") is None or history.statistics is None:
        return
    before, test = history.statistics.splits["train"], statistics.splits["test"]
    for name in plan.spec.feature_names:
        old, new = before.features.get(name), test.features.get(name)
        if not isinstance(old, CategoricalStatistics) or not isinstance(new, CategoricalStatistics) or not before.rows:
            continue
        if new.distinct > len(new.top):
            continue  # the list of this run's values is cut: what is missing in it need not be gone
        present = {item.value for item in new.top}
        gone = [
            (item.value, item.count / before.rows)
            for item in old.top
            if item.value not in present
            and item.count >= MEANINGFUL_SHARE * before.rows
            and item.count * test.rows >= SURELY_SEEN * before.rows
        ]
        if gone:
            listed = shown([f"{value!r} ({share:.1%} before)" for value, share in gone])
            yield finding(
                plan.spec,
                "vanished_category",
                feature=name,
                found=f"none of {listed}",
                expected=f"values that training of run {history.statistics.run_key} had",
                message=f"{name} has no {listed} in the {plan.spec.data.tested_name} any more: has a source table "
                "stopped, or a spelling?",
                compared_with=(history.statistics_uri,),
            )
