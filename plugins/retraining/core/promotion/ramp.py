"""How traffic goes over to a new version: which share it has at each step, when that is judged, and what must hold.

In: what served before and what the endpoint has now, in percent by deployed-model id; the steps so far. Out: the next
share, the minutes of a step that are known; the traffic with a version's share, and without it. What no run made and is
not the champion's is a person's: it keeps its share, on the way and back. `ramp_gates` judges the steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from retraining.core.documents import Before, RampGate, RampStep, Rollout, Served
from retraining.core.errors import ConflictError
from retraining.core.naming.vertex import deployed_model_id
from retraining.core.promotion.versions import Version
from retraining.core.spec.deployment import Canary

METRICS_LATE = timedelta(minutes=3)
"""Cloud Monitoring shows what endpoints measure up to two minutes later; the request log is quicker."""

SETTLES = timedelta(seconds=10)
"""Between a change of the traffic and the first minute that is looked at, at least."""

FIRST_PERCENT = 1
"""The share of a version that no request has met yet, while another one serves; at 0 % it could not be asked."""

LOOK_EVERY_S = 30
"""Between two looks at a step, at least: it is judged by whole minutes. Airflow takes a task that comes back within
seconds for a lost one where its scheduler is busy."""

OUTCOMES = {True: "passed", False: "failed", None: "not judged"}


def first_percent(before: Mapping[str, int]) -> int:
    """Return the share that a version is tried with: little while another one serves, else all.

    Args:
        before: Traffic without it, by deployed-model id; empty: nobody serves.
    """
    return FIRST_PERCENT if before else 100


def next_percent(canary: Canary | None, before: Mapping[str, int], steps: Sequence[RampStep]) -> int:
    """Return the share of the next step.

    Args:
        canary: Of the spec; None: there is one step, to all.
        before: Traffic without the version; empty: nobody is there to compare it with.
        steps: So far, all judged.
    """
    if canary is None or not before:
        return 100
    done = steps[-1].percent if steps else 0
    return next(percent for percent in canary.percent if percent > done)


def open_step(steps: Sequence[RampStep]) -> RampStep | None:
    """Return the step that is not judged yet."""
    return steps[-1] if steps and steps[-1].end is None else None


def window(step: RampStep, now: datetime) -> tuple[datetime, datetime]:
    """Return the whole minutes of a step that are known by now: start (exclusive) and end."""
    return _whole_minute(step.start + SETTLES + timedelta(seconds=59)), _whole_minute(now - METRICS_LATE)


def reason_unmeasured(new: Served, logged: int, smoke_answers: int | None) -> str:
    """Return what shows that requests of the new version are not measured; empty: that it has none may be believed.

    Args:
        new: What Cloud Monitoring has of the new version in the minutes that are judged.
        logged: Answers of the new version in the request log, in the same minutes.
        smoke_answers: Where it has no request of any version: what it has of the new one since the smoke test, which
            that one answered; None: it is not needed, or there was none.
    """
    if new.requests:
        return ""
    if logged:
        return f"the request log has {logged} answers of it, and Cloud Monitoring no request"
    if new.latency_ms is not None:
        return f"Cloud Monitoring has a latency of it ({new.latency_ms:.3g} ms), and no request"
    if smoke_answers == 0:
        return "Cloud Monitoring has no request of any version, not even the smoke requests that it answered"
    return ""


def failed_gate(steps: Sequence[RampStep]) -> RampGate | None:
    """Return the gate for which a ramp ended."""
    return next((gate for step in steps for gate in step.gates if gate.passed is False), None)


def changed_traffic(endpoint_name: str, traffic: Mapping[str, int], expected: Mapping[str, int]) -> ConflictError:
    """Return why a ramp does not go on: somebody else shared the requests anew."""
    return ConflictError(
        endpoint_name,
        f"traffic {dict(traffic)}: somebody else changed it during the ramp",
        f"{dict(expected)}",
        "Clear the deploy task to begin again",
    )


def refusal(steps: Sequence[RampStep]) -> str:
    """Return in words why a ramp ended: every gate that failed, with its numbers."""
    failed = "; ".join(f"{gate.name}: {gate.message}" for gate in steps[-1].gates if gate.passed is False)
    return f"Nothing deployed: at {steps[-1].percent} % of the traffic {failed}. What served before serves again."


def outcomes(step: RampStep) -> str:
    """Return in words what came of a step's gates."""
    return ", ".join(f"{gate.name} {OUTCOMES[gate.passed]}" for gate in step.gates) or "not judged"


def _whole_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def own_models(deployed: Mapping[str, str], versions: Iterable[Version], champion_name: str | None) -> set[str]:
    """Return the deployed models that runs made, or that are the champion: what a rollout may replace.

    Args:
        deployed: Version names of the endpoint's deployed models, by id.
        versions: All of the model.
        champion_name: The champion's; None: there is none.
    """
    made = {deployed_model_id(version.run_key) for version in versions if version.run_key}
    return {key for key, name in deployed.items() if key in made or name == champion_name}


def persons(traffic: Mapping[str, int], own: Collection[str]) -> tuple[str, ...]:
    """Return the ids with a share that a rollout leaves as they are; none where all shares are such.

    Args:
        traffic: By id.
        own: What a rollout may replace.
    """
    others = tuple(sorted(key for key, share in traffic.items() if share and key not in own))
    return others if sum(traffic[key] for key in others) < 100 else ()


def split(before: Mapping[str, int], deployed_id: str, percent: int, others: Collection[str] = ()) -> dict[str, int]:
    """Return the traffic with a version's share; what it replaces shares the rest in proportion, to the whole percent.

    Args:
        before: Traffic without it, which adds up to 100; empty: nobody serves, and it has all.
        deployed_id: Of the version.
        percent: 1 to 100; what `others` leave of it at most.
        others: Ids that keep their share.
    """
    if not before:
        return {deployed_id: 100}
    kept = {key: share for key, share in before.items() if share and key in others}
    room = 100 - sum(kept.values())
    percent = min(percent, room)
    replaced = {key: share for key, share in before.items() if key not in kept}
    return {deployed_id: percent} | _spread(replaced, room - percent) | kept


def with_version(before: Before, deployed_id: str, percent: int) -> dict[str, int]:
    """Return the traffic with a share of a rollout's version, by what was before it."""
    return split(before.traffic, deployed_id, percent, before.others)


def main_model(before: Before) -> str:
    """Return the deployed model that a version is compared with: the largest share of what it replaces."""
    replaced = {key: share for key, share in before.traffic.items() if key not in before.others}
    return max(replaced, key=replaced.__getitem__)


def without_version(rollout: Rollout, traffic: Mapping[str, int], deployed: Mapping[str, str]) -> dict[str, int] | None:
    """Return the traffic without a rollout's version, by what the endpoint has now.

    As it was before, where the shares are as the rollout left them. Where a person changed them, theirs stay, and the
    version's share goes to what it was to replace.

    Args:
        rollout: With what was before.
        traffic: Of the endpoint now, by id.
        deployed: Version name by deployed-model id, as the endpoint has them now.

    Returns:
        None: somebody took away what served before, and nobody else is there to answer.
    """
    mine, before = rollout.deployed_model_id, rollout.before
    share, rest = traffic.get(mine, 0), {key: value for key, value in traffic.items() if value and key != mine}
    if not share:
        return rest
    noted = {key: value for key, value in before.traffic.items() if value}
    left = {key: value for key, value in with_version(before, mine, share).items() if key != mine}
    if rest == left and noted.keys() <= deployed.keys():
        return noted
    replaced = {key for key in noted if key not in before.others}
    heirs = {key: value for key, value in rest.items() if key in replaced}
    heirs = heirs or {key: value for key, value in noted.items() if key in replaced and key in deployed}
    heirs = heirs or _champions(rollout, deployed) or rest
    if not heirs:
        return {} if not noted else None
    stays = {key: value for key, value in rest.items() if key not in heirs}
    return stays | _spread(heirs, 100 - sum(stays.values()))


def _champions(rollout: Rollout, deployed: Mapping[str, str]) -> dict[str, int]:
    """Return the deployed model of the champion before, where it is deployed under an id that had no share."""
    name, mine = rollout.before.champion_name, rollout.deployed_model_id
    found = sorted(key for key, version_name in deployed.items() if name and version_name == name and key != mine)
    return dict.fromkeys(found[-1:], 1)


def _spread(shares: Mapping[str, int], total: int) -> dict[str, int]:
    """Share some percent in proportion; the largest has what is left over, who has nothing is left out."""
    whole = sum(shares.values())
    spread = {key: share * total // whole for key, share in shares.items()}
    if spread:
        spread[max(shares, key=shares.__getitem__)] += total - sum(spread.values())
    return {key: share for key, share in spread.items() if share}
