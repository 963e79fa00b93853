"""Files of `include/pools`: what they may say, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from retraining.core.catalog.machine_pools import require_machine_pool
from retraining.core.errors import SpecError
from retraining.core.spec.machine_pool import find_pools, load_pool
from tests.support.refusals import refuses
from tests.support.small_model import make_spec
from tests.support.small_pool import make_pool, write_pool

STANDARD = {"tier": "CUSTOM", "chief": {"machine": "n1-standard-4"}}


def test_a_file_is_found_and_read(tmp_path: Path) -> None:
    assert find_pools(tmp_path) == []
    path = write_pool(tmp_path)
    assert find_pools(tmp_path) == [path]
    assert load_pool(path) == make_pool()
    assert load_pool(path).drain_hours == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"machines": []}, "machines"),
        ({"machines": [{"machine": "n1-standard-4", "min": 2, "max": 1}]}, "max 1 is less than min 2"),
        ({"machines": [{"machine": "n1-standard-4"}, {"machine": "n1-standard-4", "max": 3}]}, "n1-standard-4 twice"),
        ({"machines": [{"machine": "cloud-tpu", "accelerator": {"type": "TPU_V3", "count": 8}}]}, "is a TPU"),
        ({"machines": [{"machine": "n1-standard-4", "macs": 2}]}, "unknown key 'macs'"),
        ({"opens": "at night"}, "'at night' is no time"),
        ({"hours": 0}, "hours is 0"),
        ({"hours": 25}, "hours is 25"),
        ({"hors": 2}, "Did you mean 'hours'"),
        ({"name": "Nightly"}, "name"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(changes, words, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=words):
        load_pool(write_pool(tmp_path, **changes))


def test_a_pool_is_called_as_its_file(tmp_path: Path) -> None:
    path = write_pool(tmp_path).rename(tmp_path / "pools" / "daily.yaml")
    with refuses(SpecError, found="'nightly'", expected="'daily'"):
        load_pool(path)


def test_a_model_without_a_pool_asks_for_none(tmp_path: Path) -> None:
    assert require_machine_pool(make_spec(), tmp_path) is None


def test_a_pool_that_does_not_exist_is_named(tmp_path: Path) -> None:
    """With what is near, or that there is none at all."""
    spec = make_spec(machine_pool="nightli")
    with refuses(SpecError, where="late.yaml, machine_pool", found="no pool 'nightli'", expected="which has none"):
        require_machine_pool(spec, tmp_path)
    write_pool(tmp_path)
    with refuses(SpecError, found="'nightli'", way_out="nightly"):
        require_machine_pool(spec, tmp_path)


@pytest.mark.parametrize(
    ("cluster", "alone"),
    [
        ({}, ""),
        ({"disk_gb": 200}, "1 n1-standard-4 (pd-ssd, 200 GB)"),
        ({"workers": {"machine": "n1-standard-4", "count": 2}}, "2 n1-standard-4"),
        ({"chief": {"machine": "n1-standard-8"}}, "1 n1-standard-8"),
    ],
    ids=["all fit", "disk", "too many", "machine"],
)
def test_jobs_that_can_never_run_on_it_are_told(cluster, alone, tmp_path: Path) -> None:
    """Each needs all of its machines there, disks too."""
    write_pool(tmp_path)
    training = make_spec().training.model_dump(mode="json", exclude_defaults=True)
    spec = make_spec(machine_pool="nightly", training={**training, "cluster": STANDARD | cluster})
    warning = require_machine_pool(spec, tmp_path)
    assert (warning is None) == (not alone)
    if alone:
        assert "train needs" in warning
        assert alone in warning
        assert "evaluate" not in warning


def test_a_pool_without_any_jobs_machines_is_refused(tmp_path: Path) -> None:
    write_pool(tmp_path, machines=[{"machine": "n1-highmem-32"}])
    with refuses(SpecError, found=("1 n1-highmem-32", "evaluate needs 1 n1-standard-4"), way_out="include/pools/"):
        require_machine_pool(make_spec(machine_pool="nightly"), tmp_path)
