"""A region's quotas: what their file says, what a job takes of them, and which jobs would never find room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retraining.core.catalog.amounts import MachineGroup, amounts_of, jobs_of, require_quota, scoring_job
from retraining.core.catalog.hardware import load_hardware
from retraining.core.catalog.machines import all_machines
from retraining.core.errors import QuotaError, SpecError
from retraining.core.jobs.places import PRIORITY_HEAD_START, PRODUCTION_HEAD_START
from retraining.core.settings import include_path
from retraining.core.spec.quotas import LONGEST_HEAD_START_HOURS, Quotas, load_quotas
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

HARDWARE = load_hardware(include_path())
REGION = "us-central1"
T4 = {"type": "NVIDIA_TESLA_T4", "count": 2}
CLUSTER = {
    "tier": "CUSTOM",
    "chief": {"machine": "n1-standard-8", "accelerator": T4},
    "workers": {"machine": "n1-standard-8", "count": 3, "accelerator": T4},
}


def group(machine: str, count: int = 1, **others: Any) -> MachineGroup:
    return MachineGroup(machine=machine, count=count, **others)


@pytest.mark.parametrize(
    ("groups", "taken"),
    [
        ((group("n1-standard-8", 3),), {"machines": 3, "cpus": 24}),
        ((group("n1-highmem-16"), group("e2-highcpu-4", 2)), {"machines": 3, "cpus": 24}),
        (
            (group("n1-standard-4", 2, accelerator="NVIDIA_TESLA_T4", accelerators=4),),
            {"NVIDIA_TESLA_T4": 8, "cpus": 8},
        ),
        ((group("a2-highgpu-4g", accelerator="NVIDIA_TESLA_A100", accelerators=4),), {"cpus": 48}),
        ((group("cloud-tpu", accelerator="TPU_V3", accelerators=8),), {"TPU_V3": 8, "cpus": 0, "machines": 1}),
        ((group("ct5lp-hightpu-4t", tpu_topology="4x4"),), {"TPU_V5_LITEPOD": 16}),
        ((group("ct6e-standard-8t"),), {"TPU_V6E": 8, "cpus": 180}),
        ((), {"jobs": 1, "machines": 0}),
    ],
)
def test_a_job_takes_what_its_machines_have(groups: Any, taken: dict[str, int]) -> None:
    assert taken.items() <= amounts_of(groups, HARDWARE).items()


def test_every_machine_type_of_the_table_that_is_no_pattern_of_numbers_has_its_vcpus() -> None:
    for machine in ("a2-highgpu-1g", "a2-megagpu-16g", "a2-ultragpu-8g", "a3-highgpu-8g", "a3-edgegpu-8g"):
        assert HARDWARE.vcpus[machine] >= 12


def require(limits: dict[str, Any], region: str | None = REGION, **spec: Any) -> None:
    made = make_spec(**spec)
    quotas = Quotas.model_validate({"regions": limits})
    require_quota(quotas, HARDWARE, region, made.name, jobs_of(made, all_machines(made)))


TRAINING = {"model": "wide_deep", "cluster": CLUSTER, "runtime": {"image": "r/i:1"}}


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"accelerators": {"NVIDIA_TESLA_T4": 0}}, "the job train of late needs 8 NVIDIA_TESLA_T4 of 0"),
        ({"accelerators": {"NVIDIA_TESLA_T4": 7}}, "the job train of late needs 8 NVIDIA_TESLA_T4 of 7"),
        ({"machines": 3}, "the job train of late needs 4 machines of 3"),
        ({"cpus": 31}, "the job train of late needs 32 cpus of 31"),
        ({"jobs": 0}, "the job export of late needs 1 jobs of 0"),
    ],
)
def test_a_job_that_needs_more_than_there_may_ever_be_is_refused(limits: dict[str, Any], words: str) -> None:
    with refuses(QuotaError, where="quotas.yaml, regions.us-central1", found=words, way_out="Raise the quota"):
        require({REGION: limits}, training=TRAINING)


def test_what_fits_passes_and_other_regions_do_not_matter() -> None:
    enough = {"accelerators": {"NVIDIA_TESLA_T4": 8, "NVIDIA_L4": 0}, "machines": 4, "cpus": 32, "jobs": 1}
    require({REGION: enough, "europe-west4": {"jobs": 0}}, training=TRAINING)
    require({"europe-west4": {"jobs": 0}}, training=TRAINING)
    require({REGION: enough, "europe-west4": {"jobs": 0}}, region=None, training=TRAINING)
    with refuses(QuotaError, found="jobs of 0"):
        require({"europe-west4": {"jobs": 0}}, region=None, training=TRAINING)


def test_a_search_takes_the_machines_of_all_trials_at_once() -> None:
    dropout = {"name": "dropout", "kind": "double", "min": 0.1, "max": 0.5}
    tuning = {"max_trials": 6, "parallel_trials": 3, "parameters": [dropout]}
    training = {**TRAINING, "hyperparameters": {"dropout": 0.2}}
    with refuses(QuotaError, found="the job tune of late needs 12 machines of 11"):
        require({REGION: {"machines": 11}}, training=training, tuning=tuning)
    require({REGION: {"machines": 12}}, training=training, tuning=tuning)
    require({REGION: {"machines": 4}}, training=training, tuning={**tuning, "search": "never"})


def test_a_scoring_takes_all_machines_that_it_may_grow_to() -> None:
    quotas = Quotas.model_validate({"regions": {REGION: {"machines": 4}}})
    require_quota(quotas, HARDWARE, REGION, "late", scoring_job("n1-standard-4", 4))
    with refuses(QuotaError, found="the job predict of late needs 5 machines of 4"):
        require_quota(quotas, HARDWARE, REGION, "late", scoring_job("n1-standard-4", 5))


def test_a_machine_whose_vcpus_nobody_knows_is_refused_where_they_are_limited() -> None:
    jobs = {"train": (group("x9-metal"),)}
    require_quota(Quotas.model_validate({"regions": {REGION: {"jobs": 1}}}), HARDWARE, REGION, "late", jobs)
    limited = Quotas.model_validate({"regions": {REGION: {"cpus": 100}}})
    with refuses(QuotaError, where=f"quotas.yaml, regions.{REGION}.cpus", found="x9-metal", way_out="hardware.json"):
        require_quota(limited, HARDWARE, REGION, "late", jobs)
    known = HARDWARE.model_copy(update={"vcpus": {"x9-metal": 96}})
    require_quota(limited, known, REGION, "late", jobs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{regions: {}, region: {}}", "region"),
        ("{regions: {us-central1: {cpu: 4}}}", "cpu"),
        ("{regions: {us-central1: {cpus: -1}}}", "cpus"),
        ("{regions: {us-central1: {cpus: 1.5}}}", "cpus"),
        ("{regions: {us-central1: {accelerators: [NVIDIA_L4]}}}", "accelerators"),
        ("{regions: {}, wait_hours: 1}", "wait_hours"),
        ("{regions: {}, wait_hours: 200}", "wait_hours"),
    ],
)
def test_a_wrong_file_is_refused_by_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "quotas.yaml").write_text(f"# what there is\n{text}\n")
    with refuses(SpecError, where="quotas.yaml, line 2", found=words):
        load_quotas(tmp_path)


def test_what_is_no_yaml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text("regions: {us-central1: {jobs: 1\n")
    with refuses(SpecError, where="quotas.yaml"):
        load_quotas(tmp_path)


def test_a_folder_without_the_file_has_no_quotas(tmp_path: Path) -> None:
    assert load_quotas(tmp_path) is None
    require_quota(None, HARDWARE, REGION, "late", {"train": (group("n1-standard-8", 1000),)})


def test_names_that_nothing_has_are_refused() -> None:
    with refuses(SpecError, where="quotas.yaml, regions", found="'us-centra1'", way_out="us-central1"):
        require({"us-centra1": {}})
    wrong = {REGION: {"accelerators": {"NVIDIA_TESLA_T5": 1}}}
    with refuses(
        SpecError, where=f"regions.{REGION}.accelerators", found="'NVIDIA_TESLA_T5'", way_out="NVIDIA_TESLA_T4"
    ):
        require(wrong)
    require({REGION: {"accelerators": {"TPU_V5_LITEPOD": 1, "TPU_V3": 1}}})


def test_a_job_waits_for_longer_than_any_head_start() -> None:
    longest = PRODUCTION_HEAD_START + 9 * PRIORITY_HEAD_START
    assert longest.total_seconds() == LONGEST_HEAD_START_HOURS * 3600
    assert 9 * PRIORITY_HEAD_START < PRODUCTION_HEAD_START
    least = next(each.ge for each in Quotas.model_fields["wait_hours"].metadata if hasattr(each, "ge"))
    assert least > LONGEST_HEAD_START_HOURS
