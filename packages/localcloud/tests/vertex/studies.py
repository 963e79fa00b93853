"""Studies, tuning jobs and trial programs, as small as they can be, for the tests of tuning."""

from __future__ import annotations

import textwrap
from typing import Any

from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import ENDED, Api, make_pool, poll

# What `hypertune.HyperTune` of cloudml-hypertune 0.1.0.dev6 does, and the flags a trial was given.
_PRELUDE = """
import collections, json, os, pathlib, sys, time

_queue = collections.deque(maxlen=100)

def report(metric, value, step=None):
    body = {"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"], metric: str(float(value))}
    _queue.append({**body, "global_step": str(int(step or 0)), "checkpoint_path": ""})
    with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
        for each in _queue:
            file.write(json.dumps(each, sort_keys=True) + "\\n")

flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
"""

State = v1.Trial.State


def trial_program(body: str) -> str:
    """A program with `report(metric, value, step)` and `flags`, as text for `python -c`."""
    return _PRELUDE + textwrap.dedent(body)


def integer(name: str, low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"parameter_id": name, "integer_value_spec": {"min_value": low, "max_value": high}, **more}


def double(name: str, low: float, high: float, scale: str = "UNIT_LINEAR_SCALE", **more: Any) -> dict[str, Any]:
    spec = {"min_value": low, "max_value": high}
    return {"parameter_id": name, "double_value_spec": spec, "scale_type": scale, **more}


def discrete(name: str, *values: float, **more: Any) -> dict[str, Any]:
    return {"parameter_id": name, "discrete_value_spec": {"values": list(values)}, **more}


def categorical(name: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"parameter_id": name, "categorical_value_spec": {"values": list(values)}, **more}


def below(kind: str, *values: Any, parameter: dict[str, Any]) -> dict[str, Any]:
    """A conditional parameter: `below("categorical", "sgd", parameter=double(...))`."""
    return {f"parent_{kind}_values": {"values": list(values)}, "parameter_spec": parameter}


def study_spec(*parameters: dict[str, Any], algorithm: str = "GRID_SEARCH", **more: Any) -> dict[str, Any]:
    """A spec that maximizes `score`."""
    return {
        "metrics": [{"metric_id": "score", "goal": "MAXIMIZE"}],
        "parameters": list(parameters),
        "algorithm": algorithm,
        **more,
    }


def tuning_job(
    body: str = "report('score', flags['x'], 1)",
    *parameters: dict[str, Any],
    trials: int = 3,
    parallel: int = 3,
    study: dict[str, Any] | None = None,
    job_spec: dict[str, Any] | None = None,
    **more: Any,
) -> v1.HyperparameterTuningJob:
    """A job over a grid of `x` = 1, 2, … unless other parameters are given."""
    space = parameters or (integer("x", 1, trials),)
    fields = {
        "display_name": "tuning",
        "max_trial_count": trials,
        "parallel_trial_count": min(parallel, trials),
        "study_spec": study or study_spec(*space),
        "trial_job_spec": {"worker_pool_specs": [make_pool("")], **(job_spec or {})},
    }
    job = v1.HyperparameterTuningJob(**{**fields, **more})
    for pool in job.trial_job_spec.worker_pool_specs:
        pool.container_spec.command = ["python", "-c", trial_program(body)]
    return job


def create(api: Api, job: v1.HyperparameterTuningJob) -> v1.HyperparameterTuningJob:
    return api.jobs.create_hyperparameter_tuning_job(parent=api.parent, hyperparameter_tuning_job=job)


def look(api: Api, job: v1.HyperparameterTuningJob) -> v1.HyperparameterTuningJob:
    return api.jobs.get_hyperparameter_tuning_job(name=job.name)


def wait(api: Api, job: v1.HyperparameterTuningJob, timeout_s: float = 30.0) -> v1.HyperparameterTuningJob:
    """The tuning job once it has ended."""
    return poll(lambda: look(api, job), lambda seen: seen.state.name in ENDED, timeout_s)


def run(api: Api, job: v1.HyperparameterTuningJob, timeout_s: float = 30.0) -> v1.HyperparameterTuningJob:
    """Create a tuning job and wait for its end."""
    return wait(api, create(api, job), timeout_s)


def values(trial: v1.Trial) -> dict[str, Any]:
    """A trial's parameters by name, in order."""
    return {parameter.parameter_id: parameter.value for parameter in trial.parameters}


def final(trial: v1.Trial) -> float:
    """A trial's final score."""
    (metric,) = trial.final_measurement.metrics
    return metric.value


def measurement(score: float, step: int = 0, metric: str = "score") -> v1.Measurement:
    return v1.Measurement(step_count=step, metrics=[{"metric_id": metric, "value": score}])
