"""A run's job as people submit it: what a shell and Python make of the text is the job."""

from __future__ import annotations

import io
import json
import runpy
import shlex
import subprocess
from contextlib import redirect_stdout
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from retraining.core.jobs import requests
from retraining.core.jobs.submission import Submission, camel_case
from retraining.core.naming import vertex
from tests.support.small_model import make_plan, make_spec

ODD = "gs://b/it's a $HOME `x` \"y\" \\ ü\nJSON\n{{ z }} '''.json"


@pytest.fixture
def submission() -> Submission:
    """The training of a run, with an address that a shell, a template and Python would like to read."""
    job = requests.training_job(make_plan(make_spec(training={"model": "dense"}))).custom_job
    job["job_spec"]["worker_pool_specs"][0]["container_spec"]["args"] = ["train", f"--request={ODD}"]
    return Submission(job=job, project="my-project", region="europe-west1")


def test_the_shell_hands_over_what_was_meant(submission, tmp_path) -> None:
    """Run by sh, with a program called gcloud that writes down what it got."""
    gcloud = tmp_path / "gcloud"
    gcloud.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$OUT/words"\ncat > "$OUT/config"\n')
    gcloud.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "OUT": str(tmp_path)}
    subprocess.run(["sh", "-eu"], input=submission.command, text=True, check=True, env=environ)
    labels = ",".join(f"{key}={value}" for key, value in sorted(submission.job["labels"].items()))
    assert (tmp_path / "words").read_text().splitlines() == [
        "ai", "custom-jobs", "create", "--region=europe-west1", "--project=my-project",
        f"--display-name={submission.job['display_name']}", f"--labels={labels}", "--config=/dev/stdin",
    ]  # fmt: skip
    assert json.loads((tmp_path / "config").read_text()) == camel_case(submission.job["job_spec"])


def test_a_name_and_a_label_with_words_in_them_are_quoted(submission) -> None:
    """No label of ours is; those of others may be."""
    odd = {**submission.job, "display_name": "my $(job)", "labels": {"a": "it's"}}
    words = shlex.split(Submission(job=odd, project="p", region="r").command.partition("<<")[0])
    assert {"--display-name=my $(job)", "--labels=a=it's"} <= set(words)


def test_the_program_creates_the_job(submission, monkeypatch, tmp_path) -> None:
    """Run with a client that writes down what it got; the message is what the operator's own is."""
    created: dict[str, Any] = {}

    class Client:
        def __init__(self, client_options: dict[str, str]) -> None:
            created.update(client_options)

        def create_custom_job(self, parent: str, custom_job: aiplatform_v1.CustomJob) -> aiplatform_v1.CustomJob:
            created.update(parent=parent, job=custom_job)
            return aiplatform_v1.CustomJob(name="projects/1/locations/r/customJobs/7")

    monkeypatch.setattr(aiplatform_v1, "JobServiceClient", Client)
    (tmp_path / "train.py").write_text(submission.program)
    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(tmp_path / "train.py"))
    assert created["api_endpoint"] == "europe-west1-aiplatform.googleapis.com"
    assert created["parent"] == "projects/my-project/locations/europe-west1"
    assert created["job"] == aiplatform_v1.CustomJob.from_json(json.dumps(submission.job))
    assert printed.getvalue() == "projects/1/locations/r/customJobs/7\n"


def test_no_task_takes_it_for_its_own(submission) -> None:
    """The labels by which a task finds its jobs are not among them; nor is anything that is secret."""
    for text in submission.files().values():
        assert not any(label in text for label in (vertex.KEY_LABEL, vertex.OWNER_LABEL, vertex.DAG_RUN_LABEL))
        assert '"env"' not in text
