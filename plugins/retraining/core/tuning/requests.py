"""The two tuning jobs of a study: one that repeats earlier trials, one that searches. And their trials, read back.

A `HyperparameterTuningJob` cannot be told where to start, so the repetition is a job of its own: its only parameter
says which of the request's `priors` a trial uses, and a grid over it runs each once.
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.hyperparameterTuningJobs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from retraining.core.catalog.machines import planned_machines
from retraining.core.documents.checks import Statistics
from retraining.core.documents.plan import Plan
from retraining.core.documents.training import TrainRequest
from retraining.core.documents.tuning import Measured, Phase, Recalled, Trial, TuningRequest
from retraining.core.jobs.requests import JobRequest, custom_job, train_request
from retraining.core.naming import storage, vertex
from retraining.core.spec.tuning import Tuning as TuningSpec
from retraining.core.spec.tuning import TuningParameter
from retraining.core.untyped import ProtoJson

PRIOR = "prior"
_SCALES = {"linear": "UNIT_LINEAR_SCALE", "log": "UNIT_LOG_SCALE", "reverse_log": "UNIT_REVERSE_LOG_SCALE"}
_ALGORITHMS = {"grid": "GRID_SEARCH", "random": "RANDOM_SEARCH"}


def repetition_job(
    plan: Plan, request: TuningRequest, service_account: str | None = None, statistics: Statistics | None = None
) -> JobRequest:
    """Return the job that repeats the recalled trials, each once; a trial that fails leaves the others alone."""
    spec = _spec(plan)
    prior = TuningParameter(name=PRIOR, kind="discrete", values=tuple(map(float, range(len(request.recalled)))))
    study = {**study_spec(spec, [prior]), "algorithm": "GRID_SEARCH"}
    trials = len(request.recalled)
    asked = trial_request_of(plan, "recall", request.recalled, statistics)
    return _job_request(plan, "recall", study, trials, trials, asked, service_account)


def search_job(
    plan: Plan,
    request: TuningRequest,
    space: Sequence[TuningParameter],
    service_account: str | None = None,
    statistics: Statistics | None = None,
) -> JobRequest:
    """Return the job that searches a space with the trials that the repetition left."""
    spec = _spec(plan)
    trials, study = spec.max_trials - len(request.recalled), study_spec(spec, space)
    asked = trial_request_of(plan, "search", request.recalled, statistics)
    return _job_request(plan, "search", study, trials, min(spec.max_failed_trials, trials), asked, service_account)


def bears_failure(plan: Plan, phase: Phase, request: TuningRequest) -> bool:
    """Return whether the study goes on although a phase's job failed by its trials: the job fails when all have failed.

    Of the repetition that says that nothing of the earlier trials works any more. A search of fewer trials than
    `max_failed_trials` has not failed by the file's measure.
    """
    spec = _spec(plan)
    return phase == "recall" or spec.max_trials - len(request.recalled) < spec.max_failed_trials


def checkpoint_uris(plan: Plan) -> tuple[str, ...]:
    """Return the folders of the trials' checkpoints, one of each phase."""
    return tuple(trial_request_of(plan, phase, ()).checkpoint_uri for phase in get_args(Phase))


def study_spec(spec: TuningSpec, space: Sequence[TuningParameter]) -> ProtoJson:
    """Return `StudySpec` in proto-JSON with snake_case names."""
    study: ProtoJson = {
        "metrics": [{"metric_id": spec.metric, "goal": spec.goal.upper()}],
        "parameters": [
            _parameter(parameter, [child for child in space if child.when and child.when.parameter == parameter.name])
            for parameter in space
            if parameter.when is None
        ],
        "measurement_selection_type": "BEST_MEASUREMENT",
    }
    if spec.algorithm in _ALGORITHMS:
        study["algorithm"] = _ALGORITHMS[spec.algorithm]
    if spec.early_stopping == "median":
        study["median_automated_stopping_spec"] = {"use_elapsed_duration": False}
    elif spec.early_stopping == "decay":
        study["decay_curve_stopping_spec"] = {"use_elapsed_duration": False}
    return study


def _parameter(parameter: TuningParameter, children: Sequence[TuningParameter]) -> ProtoJson:
    given: ProtoJson = {"parameter_id": parameter.name}
    low, high = parameter.min, parameter.max
    if parameter.kind == "double":
        given["double_value_spec"] = {"min_value": low, "max_value": high}
    elif parameter.kind == "integer":
        given["integer_value_spec"] = {"min_value": str(int(low or 0)), "max_value": str(int(high or 0))}
    elif parameter.kind == "discrete":
        given["discrete_value_spec"] = {"values": list(parameter.values)}
    else:
        given["categorical_value_spec"] = {"values": list(parameter.values)}
    if parameter.kind != "categorical":
        given["scale_type"] = _SCALES[parameter.scale]
    if children:
        kind = "parent_categorical_values" if parameter.kind == "categorical" else "parent_discrete_values"
        given["conditional_parameter_specs"] = [
            {kind: {"values": list(child.when.values)}, "parameter_spec": _parameter(child, [])}
            for child in children
            if child.when
        ]
    return given


def _job_request(
    plan: Plan,
    phase: Phase,
    study: ProtoJson,
    trials: int,
    failed: int,
    trial_request: TrainRequest,
    service_account: str | None,
) -> JobRequest:
    spec = _spec(plan)
    base_uri = storage.tuning_uri(storage.results_uri(plan), phase)
    request_uri = storage.document_uri(storage.tuning_uri(plan.run_uri, phase), "train_request")
    machines = planned_machines(plan, "tune")
    job = custom_job(plan, "train", request_uri, base_uri, machines, service_account)
    return JobRequest(
        request=trial_request,
        request_uri=request_uri,
        plan=plan,
        custom_job={
            "display_name": vertex.job_display_name(plan.model, phase, plan.run_key),
            "study_spec": study,
            "max_trial_count": trials,
            "parallel_trial_count": min(spec.parallel_trials, trials),
            "max_failed_trial_count": failed,
            "trial_job_spec": job["job_spec"],
            "labels": vertex.job_labels(plan, phase),
        },
        retries=0,  # failed trials were borne with before: another study would pay for the same ones
        way_out="Mend what they name and clear the task, or trigger the run with the Param tune on never",
    )


def trial_request_of(
    plan: Plan, phase: Phase, recalled: Sequence[Recalled], statistics: Statistics | None = None
) -> TrainRequest:
    """Return what every trial of a phase is asked.

    Its own hyperparameters come as flags, its folder from its number.
    """
    priors = tuple(dict(trial.hyperparameters) for trial in recalled) if phase == "recall" else ()
    base_uri = storage.tuning_uri(storage.results_uri(plan), phase)
    return train_request(plan, base_uri, trial_metric=_spec(plan).metric, priors=priors, statistics=statistics)


def read_trials(
    plan: Plan, phase: Phase, request: TuningRequest, reported: Sequence[Mapping[str, Any]]
) -> tuple[Trial, ...]:
    """Return the trials of a finished tuning job.

    One that was stopped early may still be STOPPING; its final measurement counts.

    Args:
        plan: The run.
        phase: Which job it was.
        request: What was decided; the repetition's flags are looked up in it.
        reported: `Trial` messages in proto-JSON with snake_case names.
    """
    return tuple(_trial(plan, phase, request, trial) for trial in reported)


def _trial(plan: Plan, phase: Phase, request: TuningRequest, reported: Mapping[str, Any]) -> Trial:
    values = {str(item["parameter_id"]): item["value"] for item in reported.get("parameters", ())}
    if phase == "recall" and PRIOR in values:
        values = dict(request.recalled[int(float(values[PRIOR]))].hyperparameters)
    state = str(reported.get("state", ""))
    measured = [
        Measured(step=int(item.get("step_count", 0)), value=float(metric.get("value", 0.0)))  # proto-JSON leaves 0 out
        for item in reported.get("measurements", ())
        for metric in item.get("metrics", ())
    ]
    final = [float(metric.get("value", 0.0)) for metric in reported.get("final_measurement", {}).get("metrics", ())]
    return Trial(
        trial_id=f"{phase}-{reported['id']}",
        phase=phase,
        state="SUCCEEDED" if state == "SUCCEEDED" else "INFEASIBLE" if state == "INFEASIBLE" else "STOPPED",
        hyperparameters={name: _as_given(_spec(plan), name, value) for name, value in values.items()},
        value=final[0] if final and state != "INFEASIBLE" else None,
        curve=tuple(measured),
        seconds=reported.get("seconds"),
        message=str(reported.get("infeasible_reason", "")),
    )


def _as_given(spec: TuningSpec, name: str, value: Any) -> Any:  # noqa: ANN401 - a hyperparameter
    """Return the whole numbers came as floats."""
    parameter = next((parameter for parameter in spec.parameters if parameter.name == name), None)
    whole = parameter is not None and (
        parameter.kind == "integer" or (parameter.kind == "discrete" and all(v == int(v) for v in parameter.numbers))
    )
    return int(value) if whole and isinstance(value, float) else value


def _spec(plan: Plan) -> TuningSpec:
    assert plan.spec.tuning is not None  # noqa: S101 - a search is decided only where there is one
    return plan.spec.tuning
