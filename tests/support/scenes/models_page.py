"""What the Models page shows, made by hand: models, runs, looks of the monitor; any text may be hostile."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from retraining.core.documents import ModelOverview, ModelSummary, Overview
from retraining.core.documents.evaluation import Difference
from retraining.core.documents.overview import (
    MonthCost,
    ShownChampion,
    ShownDecision,
    ShownRun,
    ShownSignal,
    ShownVersion,
    ShownWatch,
    TrafficShare,
    WatchRow,
)

NOW = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
FEATURES = ("carrier", "origin", "destination", "distance", "departure_hour", "wind_speed", "temperature", "visibility")


def version_name(number: int) -> str:
    """Return the name of a version in the registry."""
    return f"projects/my-project/locations/us-central1/models/flight_delays@{number}"


def summary(model: str = "flight_delays", **changes: Any) -> ModelSummary:
    """Return a healthy model's row."""
    values = {
        "model": model,
        "description": "Will a flight be late by a quarter of an hour or more?",
        "owner": "ml-team",
        "refreshed": NOW,
        "moment": NOW,
        "schedule": "0 3 * * *",
        "metric": "auc",
        "champion": ShownChampion(
            version_id="12",
            version_name=version_name(12),
            run_key="20260517t030000z-0123456789ab",
            as_of=NOW - 3 * DAY,
            score=0.7312,
        ),
        "scores": tuple(round(0.7 + 0.02 * math.sin(place / 3), 4) for place in range(20)),
        "endpoint_name": "projects/my-project/locations/us-central1/endpoints/flight-delays",
        "traffic": (TrafficShare(version_id="12", role="champion", percent=100),),
        "decision": ShownDecision(
            run_key="20260520t030000z-0123456789ab",
            as_of=NOW - timedelta(hours=9),
            outcome="reject",
            deployed=False,
            message="Rejected: auc 0.728 is no surer than the champion's 0.731.",
        ),
        "watch": ShownWatch(
            as_of=NOW - timedelta(hours=1),
            outcome="none",
            severity="info",
            message="Nothing is over its limit.",
            requests=12_345,
            exceeded=(),
        ),
        "cost": MonthCost(month="2026-05", usd=3.21, runs=20, unpriced=0),
        "paused_until": None,
    }
    return ModelSummary(**{**values, **changes})


def drifting(model: str = "departures") -> ModelSummary:
    """Return a model whose requests drifted, while a new version gets some of them."""
    return summary(
        model,
        description="How many aircraft leave in the next hour?",
        metric="mae",
        scores=tuple(round(4 + 0.03 * place, 3) for place in range(12)),
        traffic=(
            TrafficShare(version_id="7", role="champion", percent=75),
            TrafficShare(version_id="8", role="challenger", percent=25),
        ),
        watch=ShownWatch(
            as_of=NOW - timedelta(hours=1),
            outcome="retrain",
            severity="warning",
            message="Retraining: carrier drifted to 0.41 (limit 0.3) in 2 of 3 windows.",
            requests=902,
            exceeded=("skew:carrier", "skew:origin"),
            named=("feature_gone",),
        ),
    )


def run(day: int, **changes: Any) -> ShownRun:
    """Return a run so many days ago."""
    as_of = (NOW - day * DAY).replace(hour=3)
    key = f"{as_of:%Y%m%d}t030000z-0123456789ab"
    gain = round(0.01 * math.sin(day), 4)
    values = {
        "run_key": key,
        "as_of": as_of,
        "run_uri": f"gs://my-bucket/flight_delays/runs/{key}",
        "dag_id": "retrain__flight_delays",
        "dag_run_id": f"scheduled__{as_of:%Y-%m-%dT%H:%M:%S}+00:00",
        "trigger": "scheduled",
        "cause": "scheduled",
        "reason": "",
        "mode": "live",
        "ended": True,
        "outcome": "promote" if gain > 0.006 else "reject",
        "words": f"auc {0.72 + gain:.3f} is {'' if gain > 0.006 else 'not '}surely over the champion's 0.720.",
        "deployed": gain > 0.006,
        "version_id": str(40 - day),
        "version_name": version_name(40 - day),
        "rows": 6443,
        "score": round(0.72 + gain, 4),
        "champion_id": str(39 - day),
        "champion_score": 0.72,
        "difference": Difference(
            metric="auc", mean=gain, low=gain - 0.006, high=gain + 0.006, confidence=0.95, samples=1000
        ),
        "usd": 0.1604,
        "unpriced": False,
        "seconds": 1312.5,
    }
    return ShownRun(**{**values, **changes})


def watch(hour: int, **changes: Any) -> WatchRow:
    """Return a look of the monitor so many hours ago, at which the carriers drift more and more."""
    as_of = NOW - timedelta(hours=hour)
    drifted = 0.05 + max(0.0, 40 - hour) * 0.009
    acts = hour in (3, 30)
    values: dict[str, Any] = {
        "key": f"{as_of:%Y%m%dt%H%M%Sz}-0123abcd",
        "as_of": as_of,
        "outcome": "retrain" if acts else "warn" if drifted > 0.3 else "none",
        "severity": "warning" if drifted > 0.3 else "info",
        "because": "skew" if acts else "hysteresis" if drifted > 0.3 else "no_signal",
        "cause": "skew:carrier" if drifted > 0.3 else None,
        "words": _words(acts, drifted),
        "requests": 400 + hour,
        "signals": (
            *(_skew(name, drifted if place == 0 else 0.02 * place, hour) for place, name in enumerate(FEATURES)),
            _score("performance", round(0.72 - 0.001 * (40 - hour), 4), hour),
            _score("estimate", round(0.715 - 0.0008 * (40 - hour), 4), hour),
            _signal("latency", "", "not_judged", because="no_metrics", measure="p99_ms", threshold=200.0),
        ),
    }
    return WatchRow(**{**values, **changes})


def _words(acts: bool, drifted: float) -> str:
    if acts:
        return f"Retraining: carrier is {drifted:.2f} from the training data (limit 0.3), in 2 of 3 windows."
    if drifted > 0.3:
        return f"Warning: carrier is {drifted:.2f} from the training data (limit 0.3); a retraining is under way."
    return "Nothing is over its limit."


def _skew(name: str, value: float, hour: int) -> ShownSignal:
    state = "exceeded" if value > 0.3 else "ok"
    return _signal("skew", name, state, measure="l_infinity", value=value, threshold=0.3, examples=400 + hour)


def _score(kind: str, value: float, hour: int) -> ShownSignal:
    ends = {"low": value - 0.02, "high": value + 0.02}
    return _signal(kind, "", "ok", measure="auc", value=value, threshold=0.65, examples=300 + hour, **ends)


def _signal(kind: str, subject: str, state: str, **values: Any) -> ShownSignal:
    rest = {"because": None, "value": None, "threshold": None, "examples": 0, **values}
    return ShownSignal.model_validate({"kind": kind, "subject": subject, "state": state, **rest})


def one_model(row: ModelSummary | None = None, **changes: Any) -> ModelOverview:
    """Return a model with three weeks of runs and four days of looks."""
    versions = tuple(
        ShownVersion(
            version_id=str(number),
            version_name=version_name(number),
            run_key=run(40 - number).run_key,
            as_of=run(40 - number).as_of,
            aliases=("champion",) if number == 39 else ("previous",) if number == 38 else (),
            percent={39: 100, 38: 0}.get(number),
        )
        for number in range(40, 28, -1)
    )
    values = {
        "project": "my-project",
        "bucket": "my-bucket",
        "summary": row or summary(),
        "versions": versions,
        "runs": tuple(run(day) for day in range(21)),
        "watches": (
            watch(0, results={watch(30).key: "promoted, version 38, gain +0.0091", watch(3).key: "running"}),
            *(watch(hour) for hour in range(1, 96)),
        ),
        "unreadable": {},
    }
    return ModelOverview(**{**values, **changes})


def hostile() -> ModelOverview:
    """Return a model all of whose texts are an attack on the page."""
    row = summary(
        description=HOSTILE,
        owner=HOSTILE,
        problem=HOSTILE,
        schedule=HOSTILE,
        endpoint_name=HOSTILE,
        champion=ShownChampion(version_id=HOSTILE, version_name=HOSTILE, run_key=None, as_of=None, score=None),
        traffic=(TrafficShare(version_id=HOSTILE, role="other", percent=100),),
        decision=ShownDecision(
            run_key="20260520t030000z-0123456789ab", as_of=NOW, outcome="stopped", deployed=False, message=HOSTILE
        ),
        watch=ShownWatch(
            as_of=NOW,
            outcome="warn",
            severity="critical",
            message=HOSTILE,
            requests=1,
            exceeded=(HOSTILE,),
            named=(HOSTILE,),
        ),
    )
    signal = _signal("skew", HOSTILE, "exceeded", because=HOSTILE, measure=HOSTILE, value=0.5, threshold=0.3)
    return one_model(
        row,
        project=f"p&{HOSTILE}",
        bucket=HOSTILE,
        versions=(
            ShownVersion(
                version_id=HOSTILE,
                version_name=f"projects/p/locations/javascript:alert(1)/models/{HOSTILE}@1",
                run_key=None,
                as_of=None,
                aliases=(HOSTILE,),
                percent=1,
            ),
        ),
        runs=(
            run(
                1,
                run_uri=f"gs://b/{HOSTILE}",
                dag_id=HOSTILE,
                dag_run_id=f"../../{HOSTILE}",
                reason=HOSTILE,
                words=HOSTILE,
                version_id=HOSTILE,
                version_name=HOSTILE,
                champion_id=HOSTILE,
            ),
        ),
        watches=(
            watch(1, because=HOSTILE, cause=HOSTILE, words=HOSTILE, signals=(signal,), results={watch(1).key: HOSTILE}),
        ),
        unreadable={HOSTILE: HOSTILE},
    )


def all_models(count: int = 100) -> Overview:
    """Return so many models: healthy ones, some that drift, one that nothing serves."""
    rows = []
    for number in range(count):
        name = f"model_{number:03d}"
        if number % 17 == 3:
            rows.append(drifting(name))
        elif number == 40:
            rows.append(summary(name, endpoint_name=None, traffic=()))
        else:
            rows.append(summary(name))
    return Overview(models=tuple(rows))
