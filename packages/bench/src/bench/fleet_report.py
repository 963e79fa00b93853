"""What a night of many models came to, as numbers, as a table, and as what was not as it should be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import fleet_cloud
from bench.fleet_cloud import PaidJob
from bench.fleet_models import ALONE, expected_failures, model_names
from bench.fleet_pool import Pool
from bench.fleet_slots import Run, Session, look_seconds, most_at_once
from bench.fleet_watch import JOB_MINUTES, cost_of_watching

Result = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Night:
    """All that was seen: of the model that ran alone, then of all others at once.

    Attributes:
        models: How many must succeed.
        slots: Tasks at once.
        kind: Of jobs: `separate`, `chained` or `pooled`.
        start_s: Seconds that a job's machine took to start.
        quota: Jobs that could work at once; 0: as many as there are.
        usd: Of the runs that must succeed, at list prices; None: not known.
        alone_usd: Of the one that ran alone.
        seconds: Wall clock, from the first run's start to the last one's end.
        alone_seconds: The same of the model that ran alone.
        pool: Its machines, and for how long they were there, the time of the one that ran alone in it.
        memory_bytes: At most, of all processes of Airflow and the local cloud together, while the many ran.
        calls: Of all services, while the many ran.
        alone_calls: Of all services, while the one ran.
        jobs: All of Vertex AI, those of the one too.
        sessions: In which tasks held slots, those of the one too.
        runs: That have ended, that of the one too.
        parse_seconds: By file of DAGs.
    """

    models: int
    slots: int
    kind: str
    start_s: int
    quota: int
    usd: float | None
    alone_usd: float | None
    seconds: float
    alone_seconds: float
    pool: Pool
    memory_bytes: int
    calls: fleet_cloud.Counts
    alone_calls: fleet_cloud.Counts
    jobs: Sequence[PaidJob]
    sessions: Sequence[Session]
    runs: Sequence[Run]
    parse_seconds: Mapping[str, float]


def describe(night: Night) -> Result:
    """Return the result of a night: numbers, texts, lists and mappings alone."""
    names = [*model_names(night.models), *expected_failures()]
    dags = {f"retrain__{name}": name for name in names}
    sessions = [each for each in night.sessions if each.dag_id in dags]
    jobs = fleet_cloud.of_models(night.jobs, names)
    slot_s = sum(each.seconds for each in sessions)
    look_s = look_seconds(sessions)
    return {
        "models": night.models,
        "slots": night.slots,
        "kind": night.kind,
        "start_s": night.start_s,
        "quota": night.quota,
        "usd": night.usd,
        "pool": {"machines": night.pool.machines, "s": round(night.pool.seconds)},
        "machine_s": round(fleet_cloud.machine_seconds(fleet_cloud.of_models(night.jobs, model_names(night.models)))),
        "wall_s": round(night.seconds, 1),
        "slot_s": round(slot_s, 1),
        "ideal_s": round(slot_s / night.slots, 1),
        "busy": round(slot_s / night.slots / night.seconds, 3),
        "most_at_once": most_at_once(sessions),
        "runs": _describe_runs([run for run in night.runs if run.dag_id in dags], dags),
        "jobs": {
            "by_kind": fleet_cloud.jobs_by_kind(jobs),
            "retried": fleet_cloud.retried_jobs(jobs),
            "doubled": fleet_cloud.doubled_jobs(jobs),
            "left_running": fleet_cloud.running_jobs(jobs),
        },
        "calls": _describe_calls(night.calls),
        "memory_peak_bytes": night.memory_bytes,
        "parse_s": {name: round(seconds, 3) for name, seconds in sorted(night.parse_seconds.items())},
        "watch": _describe_watch(look_s),
        "alone": _describe_alone(night),
    }


def problems(result: Result) -> list[str]:
    """Return what was not as it should be, a sentence each; none: the night was good."""
    runs, jobs = result["runs"], result["jobs"]
    expected = expected_failures()
    found = [
        f"{name} failed at {task_id}; expected it to succeed"
        for name, task_id in runs["failed"].items()
        if name not in expected
    ]
    found += [
        f"{name} {_ending(runs, name)}; expected it to fail at {task_id}"
        for name, task_id in expected.items()
        if runs["failed"].get(name) != task_id
    ]
    missing = set(model_names(result["models"])) - set(runs["succeeded"]) - set(runs["failed"])
    found += [f"{name} has no run that ended" for name in sorted(missing)]
    found += [f"{name}: jobs beside one of the same run: {number}" for name, number in jobs["doubled"].items()]
    found += [f"{name}: its job still runs" for name in jobs["left_running"]]
    if result["alone"]["state"] != "success":
        found.append(f"{ALONE} ended as {result['alone']['state']}; expected it to succeed")
    return found


def table(result: Result) -> str:
    """Return the table of packages/bench/docs/performance.md."""
    runs, calls, watch, alone = result["runs"], result["calls"], result["watch"], result["alone"]
    kinds = ", ".join(f"{name} {sum(states.values())}" for name, states in result["jobs"]["by_kind"].items())
    retried = result["jobs"]["retried"]
    failed = ", ".join(f"{name} at {task}" for name, task in sorted(runs["failed"].items()))
    rows = [
        ("models, slots", f"{result['models']} and {len(expected_failures())} broken, {result['slots']}"),
        (
            "jobs; a machine's start, s; at once at most",
            f"{result['kind']}; {result['start_s']}; {result['quota'] or '-'}",
        ),
        ("succeeded", f"{len(runs['succeeded'])} of {result['models']}"),
        ("failed, each at its task", failed or "none"),
        ("wall, s", f"{result['wall_s']:,.0f}"),
        ("slot seconds; over the slots", f"{result['slot_s']:,.0f}; {result['ideal_s']:,.0f}"),
        ("slots busy", f"{result['busy']:.0%}"),
        ("jobs of Vertex AI", kinds),
        ("of these after a failed one", ", ".join(f"{name} {number}" for name, number in retried.items()) or "none"),
        ("doubled, left running", f"{sum(result['jobs']['doubled'].values())}, {len(result['jobs']['left_running'])}"),
        ("machines of the good models: s; list price, USD", _paid(result)),
        *_pool_rows(result),
        ("calls", ", ".join(f"{name} {number:,}" for name, number in calls["by_service"].items())),
        (
            "busiest minute of Vertex AI, calls (its quota)",
            f"{calls['busiest_vertex_minute']} ({calls['vertex_quota_per_minute']})",
        ),
        ("memory at most, GB", f"{result['memory_peak_bytes'] / 1e9:.1f}"),
        ("parse of the models' DAG file, s", f"{result['parse_s'].get('retrain.py', float('nan')):.2f}"),
        ("one model alone: wall, slot seconds", f"{alone['wall_s']:,.0f}, {alone['slot_s']:,.0f}"),
        ("one model alone: machines, s; list price, USD", _paid(alone)),
        ("one model alone: jobs", ", ".join(f"{name} {sum(each.values())}" for name, each in alone["jobs"].items())),
        ("one model alone: calls", ", ".join(f"{name} {number:,}" for name, number in alone["calls"].items())),
        *_watch_rows(watch),
    ]
    return "\n".join(["| what | measured |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def write_result(path: Path, result: Result) -> None:
    """Write a result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _paid(result: Result) -> str:
    usd = "not known" if result["usd"] is None else f"{result['usd']:.4f}"
    return f"{result['machine_s']:,}; {usd}"


def _pool_rows(result: Result) -> list[tuple[str, str]]:
    machines, seconds = result["pool"]["machines"], result["pool"]["s"]
    if not machines:
        return []
    # A job's price on the pool is that of the seconds in which it used machines of the pool: the pool's own rate.
    known = result["usd"] is not None and result["machine_s"] > 0
    usd = f"{result['usd'] / result['machine_s'] * machines * seconds:.4f}" if known else "not known"
    return [("pool: machines, s that they were there; list price of all of it, USD", f"{machines}, {seconds:,}; {usd}")]


def _ending(runs: Result, name: str) -> str:
    if name in runs["succeeded"]:
        return "succeeded"
    return f"failed at {runs['failed'][name]}" if name in runs["failed"] else "has no run that ended"


def _describe_runs(runs: Sequence[Run], dags: Mapping[str, str]) -> Result:
    seconds = sorted(run.seconds for run in runs if run.state == "success")
    return {
        "succeeded": sorted(dags[run.dag_id] for run in runs if run.state == "success"),
        "failed": {dags[run.dag_id]: run.failed_task_id for run in runs if run.state != "success"},
        "shortest_s": round(seconds[0], 1) if seconds else None,
        "longest_s": round(seconds[-1], 1) if seconds else None,
    }


def _describe_calls(counts: fleet_cloud.Counts) -> Result:
    return {
        "by_service": fleet_cloud.by_service(counts),
        "busiest_vertex_minute": fleet_cloud.busiest_minute(counts),
        "vertex_quota_per_minute": fleet_cloud.VERTEX_QUOTA,
        "vertex_most_called": fleet_cloud.busiest_calls(counts),
    }


def _describe_watch(look_s: float | None) -> Result:
    if look_s is None:
        return {"look_s": None, "jobs": []}
    return {
        "look_s": round(look_s, 2),
        "jobs": [
            {name: round(value, 1) for name, value in asdict(cost_of_watching(minutes, look_s)).items()}
            for minutes in JOB_MINUTES
        ],
    }


def _watch_rows(watch: Result) -> list[tuple[str, str]]:
    if watch["look_s"] is None:
        return [("a look at a job", "no task slept")]
    return [
        ("a look at a job, slot seconds", f"{watch['look_s']:.1f}"),
        *(
            (
                f"watching a job of {job['job_minutes']} minutes: looks, slot seconds for an hour of such jobs",
                f"{job['looks']}, {job['slot_s_per_job_hour']:.0f}",
            )
            for job in watch["jobs"]
        ),
    ]


def _describe_alone(night: Night) -> Result:
    dag_id = f"retrain__{ALONE}"
    sessions = [each for each in night.sessions if each.dag_id == dag_id]
    run = next((run for run in night.runs if run.dag_id == dag_id), None)
    tasks: dict[str, float] = {}
    for each in sessions:
        tasks[each.task_id] = round(tasks.get(each.task_id, 0) + each.seconds, 2)
    return {
        "state": run.state if run else "no run",
        "wall_s": round(night.alone_seconds, 1),
        "usd": night.alone_usd,
        "machine_s": round(fleet_cloud.machine_seconds(fleet_cloud.of_models(night.jobs, [ALONE]))),
        "slot_s": round(sum(tasks.values()), 1),
        "slot_s_by_task": tasks,
        "calls": fleet_cloud.by_service(night.alone_calls),
        "jobs": fleet_cloud.jobs_by_kind(fleet_cloud.of_models(night.jobs, [ALONE])),
    }
