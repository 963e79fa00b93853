"""Families of jobs keep to the mechanism that they share, and to themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from google.cloud import aiplatform_v1 as v1

from localcloud.vertex import jobs
from localcloud.vertex.jobs.batch.service import BatchPredictionJobs
from localcloud.vertex.jobs.custom.service import CustomJobs
from localcloud.vertex.jobs.pipelines.service import TrainingPipelines
from localcloud.vertex.jobs.tuning.service import TuningJobs
from localcloud.vertex.wire.methods import load_methods

FOLDER = Path(jobs.__file__).parent
FAMILIES = (CustomJobs, TuningJobs, BatchPredictionJobs, TrainingPipelines)


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_of_a_family_are_those_of_the_api(family):
    """Handlers, faults and operations go by these names."""
    noun = family.kind.noun
    calls = {f"{family.service}.{verb}{noun}" for verb in ("Create", "Get", "Cancel", "Delete")}
    assert calls | {f"{family.service}.List{noun}s"} <= {method.full_name for method in load_methods()}


def test_states_of_pipelines_have_the_numbers_of_states_of_jobs():
    """So that one mechanism writes both."""
    jobs_states = {state.name.removeprefix("JOB_STATE_"): int(state) for state in v1.JobState}
    pipelines = {state.name.removeprefix("PIPELINE_STATE_"): int(state) for state in v1.PipelineState}
    assert {name: jobs_states[name] for name in pipelines} == pipelines


@pytest.mark.parametrize("family", sorted(path.name for path in FOLDER.iterdir() if (path / "service.py").exists()))
def test_no_family_imports_another(family):
    imported = {
        node.module
        for path in (FOLDER / family).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("localcloud.vertex.jobs.")
    }
    allowed = {"family", "runs", family}
    assert not {name for name in imported if name.split(".")[3] not in allowed}
