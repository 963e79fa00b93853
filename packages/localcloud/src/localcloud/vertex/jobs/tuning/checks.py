"""What is wrong with a tuning job, as far as it can be known before it runs.

Comes in: a job. Goes out: findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from google.cloud.aiplatform_v1.types import CustomJobSpec, HyperparameterTuningJob

from localcloud.vertex.jobs.tuning.search.study_spec import check_study_spec
from localcloud.vertex.resources.validation import Finding, check_display_name, check_labels
from localcloud.vertex.wire.methods import Message, raw

# Findings of a custom job's spec that stands in a field.
CheckJobSpec = Callable[[CustomJobSpec, str], Iterator[Finding]]
_FIELD = "hyperparameter_tuning_job"


def check_tuning_job(job: HyperparameterTuningJob, check_job_spec: CheckJobSpec) -> Iterator[Finding]:
    """Find what is wrong with a tuning job; `check_job_spec` knows the rules of its trials' custom jobs."""
    yield from check_display_name(job.display_name, f"{_FIELD}.display_name")
    yield from check_labels(job.labels, f"{_FIELD}.labels")
    yield from _check_counts(job)
    yield from check_study_spec(job.study_spec, f"{_FIELD}.study_spec")
    yield from _check_vizier_only(job)
    yield from check_job_spec(job.trial_job_spec, f"{_FIELD}.trial_job_spec")


def _check_counts(job: HyperparameterTuningJob) -> Iterator[Finding]:
    for name in ("max_trial_count", "parallel_trial_count"):
        if getattr(job, name) < 1:
            yield f"{_FIELD}.{name}", f"{name} is {getattr(job, name)}. Expected 1 or more."
    if job.parallel_trial_count > job.max_trial_count:
        yield (
            f"{_FIELD}.parallel_trial_count",
            (
                f"parallel_trial_count {job.parallel_trial_count} is more than max_trial_count {job.max_trial_count}."
                " Expected at most as many."
            ),
        )
    if job.max_failed_trial_count < 0:
        yield (
            f"{_FIELD}.max_failed_trial_count",
            f"max_failed_trial_count is {job.max_failed_trial_count}. Expected 0 (the service decides) or more.",
        )


def _check_vizier_only(job: HyperparameterTuningJob) -> Iterator[Finding]:
    """Find what only studies of the Vizier service may set, by the API's documentation."""
    field = f"{_FIELD}.study_spec"
    if job.study_spec.observation_noise:
        yield (
            f"{field}.observation_noise",
            "A HyperparameterTuningJob does not support observation_noise. Leave it out.",
        )

    def below(parameters: Message, where: str) -> Iterator[Finding]:
        for index, parameter in enumerate(parameters):
            chosen = parameter.WhichOneof("parameter_value_spec")
            if chosen and getattr(parameter, chosen).HasField("default_value"):
                yield (
                    f"{where}[{index}].{chosen}.default_value",
                    "A HyperparameterTuningJob does not support default values. Leave it out.",
                )
            children = [child.parameter_spec for child in parameter.conditional_parameter_specs]
            yield from below(children, f"{where}[{index}].conditional_parameter_specs")

    yield from below(raw(job.study_spec).parameters, f"{field}.parameters")
