"""A model's row of the page, and the object of all models: the newest row of each counts, whoever writes last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from retraining.core.documents import Failure, Pause, Rollout
from retraining.core.documents.overview import (
    ModelSummary,
    MonthCost,
    Overview,
    Role,
    ShownChampion,
    ShownDecision,
    ShownRun,
    ShownVersion,
    ShownWatch,
    TrafficShare,
    WatchRow,
)
from retraining.core.naming.run_keys import RunKey, is_run_key
from retraining.core.naming.vertex import CHAMPION, PREVIOUS
from retraining.core.promotion.versions import Version
from retraining.core.report.models_page.history import cut
from retraining.core.spec.model import ModelSpec

SCORES_SHOWN = 30
VERSIONS_KEPT = 40


@dataclass(frozen=True, kw_only=True)
class Live:
    """What the registry and the endpoint say now.

    Attributes:
        versions: Of the model.
        endpoint_name: None: there is none.
        deployed: Version name by deployed model.
        traffic: Percent by deployed model.
        rollout: The change of the champion that is under way, or the last one.
        pause: The last that was asked for.
        failed_start: Why the newest run came to no plan; None: it came to one.
        ticks: Whether a clock starts runs.
    """

    versions: Sequence[Version]
    endpoint_name: str | None
    deployed: Mapping[str, str]
    traffic: Mapping[str, int]
    rollout: Rollout | None
    pause: Pause | None
    failed_start: Failure | None = None
    ticks: bool = True

    def percent(self, version_name: str) -> int | None:
        """Return a version's share of the requests; None: it is not on the endpoint."""
        shares = [self.traffic.get(deployed, 0) for deployed, name in self.deployed.items() if name == version_name]
        return sum(shares) if shares else None


def shown_versions(live: Live) -> tuple[ShownVersion, ...]:
    """Return the newest versions, newest first, and all that have an alias or are on the endpoint."""
    numbered = sorted(live.versions, key=lambda version: _number(version.version_id), reverse=True)
    shown = [
        ShownVersion(
            version_id=version.version_id,
            version_name=version.version_name,
            run_key=version.run_key if is_run_key(version.run_key) else None,
            as_of=RunKey.parse(version.run_key).as_of if is_run_key(version.run_key) else None,
            aliases=tuple(cut(alias) for alias in sorted(version.aliases)),
            percent=live.percent(version.version_name),
        )
        for version in numbered
    ]
    return tuple(
        version
        for place, version in enumerate(shown)
        if place < VERSIONS_KEPT or version.percent is not None or {CHAMPION, PREVIOUS} & set(version.aliases)
    )


def summarize(
    spec: ModelSpec,
    live: Live,
    versions: Sequence[ShownVersion],
    runs: Sequence[ShownRun],
    watches: Sequence[WatchRow],
    now: datetime,
) -> ModelSummary:
    """Return a model's row.

    Args:
        spec: Of its file.
        live: What the services say.
        versions: Of the registry, newest first.
        runs: Newest first.
        watches: Newest first.
        now: When its documents were read; whole seconds.
    """
    champion = next((version for version in versions if CHAMPION in version.aliases), None)
    scores = [run.score for run in runs if run.mode == "live" and run.score is not None]
    paused = live.pause.until if live.pause else None
    times = [*(run.as_of for run in runs), *(watch.as_of for watch in watches)]
    return ModelSummary(
        model=spec.name,
        description=cut(spec.description),
        owner=spec.owner,
        refreshed=now,
        moment=now if live.ticks else max(times, default=now),
        schedule=spec.schedule if live.ticks else None,
        metric=spec.evaluation.metric,
        champion=_champion(champion, runs) if champion else None,
        scores=tuple(scores[:SCORES_SHOWN][::-1]),
        endpoint_name=live.endpoint_name,
        endpoint=spec.deployment.endpoint,
        traffic=tuple(_traffic(versions, live.rollout)),
        decision=next((_decision(run) for run in runs if run.outcome != "running"), None),
        watch=_watch(watches[0]) if watches else None,
        cost=_cost(runs),
        paused_until=paused if paused and paused > now else None,
        failure=live.failed_start or (runs[0].failure if runs else None),
    )


def unread(model: str, earlier: ModelSummary | None, problem: str, now: datetime) -> ModelSummary:
    """Return the row of a model whose file cannot be read: what is known of it, and what is wrong."""
    if earlier is not None:
        return earlier.model_copy(update={"problem": cut(problem), "refreshed": now, "moment": now, "schedule": None})
    return ModelSummary(
        model=model,
        description="",
        owner="",
        refreshed=now,
        moment=now,
        schedule=None,
        metric="log_loss",
        champion=None,
        scores=(),
        endpoint_name=None,
        traffic=(),
        decision=None,
        watch=None,
        cost=None,
        paused_until=None,
        problem=cut(problem),
    )


def with_row(overview: Overview | None, row: ModelSummary) -> Overview | None:
    """Return the object with a model's row; None: it has one already that was read later."""
    rows = {each.model: each for each in overview.models} if overview else {}
    there = rows.get(row.model)
    if there is not None and (there.refreshed > row.refreshed or there == row):
        return None
    return _sorted({**rows, row.model: row})


def only(overview: Overview, models: Collection[str]) -> Overview:
    """Return the object without the rows of models that have no file any more."""
    return _sorted({row.model: row for row in overview.models if row.model in models})


def _sorted(rows: Mapping[str, ModelSummary]) -> Overview:
    return Overview(models=tuple(rows[model] for model in sorted(rows)))


def _number(version_id: str) -> int:
    return int(version_id) if version_id.isdigit() else 0


def _champion(version: ShownVersion, runs: Sequence[ShownRun]) -> ShownChampion:
    made_by = next((run for run in runs if run.run_key == version.run_key), None)
    return ShownChampion(
        version_id=version.version_id,
        version_name=version.version_name,
        run_key=version.run_key,
        as_of=version.as_of,
        score=made_by.score if made_by else None,
    )


def _traffic(versions: Sequence[ShownVersion], rollout: Rollout | None) -> list[TrafficShare]:
    shares = [
        TrafficShare(version_id=version.version_id, role=_role(version, rollout), percent=version.percent)
        for version in versions
        if version.percent is not None
    ]
    return sorted(shares, key=lambda share: (-share.percent, share.role != "champion"))


def _role(version: ShownVersion, rollout: Rollout | None) -> Role:
    if CHAMPION in version.aliases:
        return "champion"
    if rollout is not None and rollout.version_id == version.version_id and rollout.state in ("going", "ramping"):
        return "challenger"
    return "previous" if PREVIOUS in version.aliases else "other"


def _decision(run: ShownRun) -> ShownDecision:
    return ShownDecision(
        run_key=run.run_key, as_of=run.as_of, outcome=run.outcome, deployed=run.deployed, message=run.message
    )


def _watch(row: WatchRow) -> ShownWatch:
    return ShownWatch(
        as_of=row.as_of,
        outcome=row.outcome,
        severity=row.severity,
        message=row.message,
        requests=row.requests,
        exceeded=tuple(f"{each.kind}:{each.subject}" for each in row.signals if each.state == "exceeded"),
        named=tuple(sorted({each.reason for each in row.signals if each.reason})),
        unjudged=sum(each.state == "not_judged" for each in row.signals),
    )


def _cost(runs: Sequence[ShownRun]) -> MonthCost | None:
    """Add up the month of the newest run."""
    if not runs:
        return None
    month = f"{runs[0].as_of:%Y-%m}"
    of_month = [run for run in runs if f"{run.as_of:%Y-%m}" == month]
    return MonthCost(
        month=month,
        usd=sum(run.usd or 0.0 for run in of_month),
        runs=len(of_month),
        unpriced=sum(run.unpriced or (run.usd is None and run.ended) for run in of_month),
    )
