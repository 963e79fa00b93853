"""What the service refuses in a tuning job or a study before anything runs."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import make_pool
from packages.localcloud.tests.vertex.studies import (
    below,
    categorical,
    create,
    discrete,
    double,
    integer,
    study_spec,
    tuning_job,
)

METRIC = {"metric_id": "score", "goal": "MAXIMIZE"}


def spec(*parameters, **more):
    return study_spec(*(parameters or (integer("x", 1, 3),)), **more)


REFUSED_SPECS = [
    pytest.param(spec(metrics=[]), "study_spec.metrics", id="no metric"),
    pytest.param(
        spec(metrics=[{"goal": "MAXIMIZE"}]), r"metrics\[0\].metric_id; Message: Required", id="unnamed metric"
    ),
    pytest.param(spec(metrics=[{"metric_id": "score"}]), r"metrics\[0\].goal; Message: Required", id="no goal"),
    pytest.param(spec(metrics=[{**METRIC, "metric_id": "a b"}]), "without whitespace", id="metric with a space"),
    pytest.param(spec(metrics=[METRIC, METRIC]), "'score' is given twice", id="metric twice"),
    pytest.param({"metrics": [METRIC]}, "study_spec.parameters", id="no parameter"),
    pytest.param(spec({"parameter_id": "x"}), "'x' has no values", id="parameter without values"),
    pytest.param(spec(integer("", 1, 2)), "parameter_id; Message: Required", id="unnamed parameter"),
    pytest.param(spec(integer("a b", 1, 2)), "without whitespace", id="parameter with a space"),
    pytest.param(spec(integer("x", 1, 2), discrete("x", 1)), "'x' is given twice", id="parameter twice"),
    pytest.param(spec(integer("x", 3, 2)), "The range is 3 to 2", id="turned range"),
    pytest.param(
        spec(double("x", 1, float("inf")), algorithm="RANDOM_SEARCH"), "The range is 1.0 to inf", id="endless range"
    ),
    pytest.param(
        spec(double("x", 1e-9, 1, "UNIT_LOG_SCALE"), double("y", 0, 1, "UNIT_LOG_SCALE"), algorithm="RANDOM_SEARCH"),
        r"parameters\[1\].scale_type; Message: UNIT_LOG_SCALE needs values above 0",
        id="logarithm of 0",
    ),
    pytest.param(
        spec(discrete("x", -1, 2, scale_type="UNIT_REVERSE_LOG_SCALE")),
        "REVERSE_LOG_SCALE needs",
        id="reverse log of -1",
    ),
    pytest.param(spec(categorical("x", "a", scale_type="UNIT_LINEAR_SCALE")), "has no scale", id="categorical scale"),
    pytest.param(spec(categorical("x", "a", "a")), "repeat themselves", id="category twice"),
    pytest.param(spec(discrete("x", 2, 1)), "not in increasing order", id="falling values"),
    pytest.param(spec(discrete("x", 1, 1 + 1e-12)), "not in increasing order", id="values too close"),
    pytest.param(spec(discrete("x", *range(1001))), "at most 1000", id="too many values"),
    pytest.param(spec(double("x", 0, 1)), "GRID_SEARCH cannot list", id="grid over a double"),
    pytest.param(
        spec(
            discrete("p", 1, 2, conditional_parameter_specs=[below("discrete", 1, parameter=double("x", 0, 1))]),
        ),
        "GRID_SEARCH cannot list",
        id="grid over a conditional double",
    ),
    pytest.param(
        spec(discrete("p", 1, 2, conditional_parameter_specs=[below("discrete", 3, parameter=integer("x", 0, 1))])),
        "are no values of 'p'",
        id="condition that never holds",
    ),
    pytest.param(
        spec(categorical("p", "a", conditional_parameter_specs=[below("discrete", 3, parameter=integer("x", 0, 1))])),
        "Expected parent_categorical_values",
        id="condition of another kind",
    ),
    pytest.param(
        spec(double("p", 0, 1, conditional_parameter_specs=[below("discrete", 1, parameter=integer("x", 0, 1))])),
        "A double parameter cannot have conditional parameters",
        id="condition on a double",
    ),
    pytest.param(
        spec(
            categorical(
                "p", "a", "b", conditional_parameter_specs=[below("categorical", "a", parameter=integer("x", 0, 1))] * 2
            )
        ),
        "below the same value of 'p' twice",
        id="conditions that overlap",
    ),
    pytest.param(
        spec(
            categorical(
                "p", "a", conditional_parameter_specs=[below("categorical", "a", parameter=integer("q", 0, 1))]
            ),
            integer("q", 0, 1),
        ),
        "'q' is given twice",
        id="conditional name taken",
    ),
    pytest.param(
        spec(metrics=[METRIC, {**METRIC, "metric_id": "b"}], median_automated_stopping_spec={}),
        "stopped early by one metric",
        id="median of two metrics",
    ),
]


@pytest.mark.parametrize(("study", "words"), REFUSED_SPECS)
def test_malformed_study_specs_are_refused_for_jobs_and_studies_alike(api, study, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        create(api, tuning_job(study=study))
    with pytest.raises(exceptions.InvalidArgument, match=words):
        api.vizier.create_study(parent=api.parent, study={"display_name": "refused", "study_spec": study})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"display_name": ""}, "display_name; Message: Required", id="no name"),
        pytest.param({"display_name": "x" * 129}, "129 characters", id="long name"),
        pytest.param({"labels": {"Run": "a"}}, "Label key 'Run' is invalid", id="label key"),
        pytest.param({"max_trial_count": 0}, "max_trial_count; Message: Required", id="no trials"),
        pytest.param({"max_trial_count": -1}, "max_trial_count is -1", id="less than no trials"),
        pytest.param({"max_trial_count": 2, "parallel_trial_count": 3}, "more than max_trial_count 2", id="parallel"),
        pytest.param({"max_failed_trial_count": -1}, "max_failed_trial_count is -1", id="failed"),
        pytest.param({"study": spec(observation_noise="HIGH")}, "does not support observation_noise", id="noise"),
        pytest.param(
            {
                "study": spec(
                    {
                        "parameter_id": "x",
                        "integer_value_spec": {"min_value": 1, "max_value": 2, "default_value": 1},
                    }
                )
            },
            "does not support default values",
            id="default",
        ),
        pytest.param(
            {"job_spec": {"worker_pool_specs": [make_pool("", replica_count=2)]}},
            r"trial_job_spec.worker_pool_specs\[0\].replica_count",
            id="two chiefs",
        ),
        pytest.param(
            {"job_spec": {"base_output_directory": {"output_uri_prefix": "gs://no-such-bucket-here/x"}}},
            "bucket .* does not exist",
            id="bucket",
        ),
    ],
)
def test_malformed_jobs_are_refused(api, changes, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        create(api, tuning_job(**changes))
    assert not [
        job
        for job in api.jobs.list_hyperparameter_tuning_jobs(parent=api.parent)
        if job.state == v1.JobState.JOB_STATE_QUEUED
    ]


def test_field_of_another_api_version_and_another_region_are_refused(api, rest):
    answer = rest("POST", "hyperparameterTuningJobs", {"studySpec": {"colour": "red"}}).json()["error"]
    assert answer["code"] == 400
    assert "Unknown name \"colour\" at 'hyperparameter_tuning_job.study_spec'" in answer["message"]
    stranger = v1.HyperparameterTuningJob.deserialize(
        v1.HyperparameterTuningJob.serialize(tuning_job()) + b"\xfa\x7f\x03abc"
    )
    with pytest.raises(exceptions.InvalidArgument, match="unknown field hyperparameter_tuning_job#2047"):
        create(api, stranger)
    with pytest.raises(exceptions.InvalidArgument, match="doesn't match the endpoint"):
        api.jobs.create_hyperparameter_tuning_job(
            parent=api.parent.replace("us-central1", "asia-east1"), hyperparameter_tuning_job=tuning_job()
        )


def test_safety_metrics_are_not_offered(api):
    study = spec(metrics=[{**METRIC, "safety_config": {"safety_threshold": 1}}])
    with pytest.raises(exceptions.MethodNotImplemented, match="safety_config"):
        create(api, tuning_job(study=study))
