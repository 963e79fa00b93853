"""Whether bucket and dataset are where the jobs run."""

from __future__ import annotations

import pytest

from retraining.core.errors import SettingsError
from retraining.core.planning.locations import bucket_warning, dataset_warning, holds_region
from tests.support.refusals import refuses


@pytest.mark.parametrize(
    ("location", "region", "holds"),
    [
        ("US-CENTRAL1", "us-central1", True),
        ("US", "us-east4", True),
        ("EU", "europe-west1", True),
        ("ASIA", "asia-east1", True),
        ("NAM4", "us-east1", True),
        ("NAM4", "us-west1", False),
        ("EU", "europe-west2", False),
        ("EU", "us-east1", False),
        ("us-east1", "us-east4", False),
    ],
)
def test_a_multi_region_holds_its_regions(location, region, holds):
    """London and Zurich are in Europe and not in the EU."""
    assert holds_region(location, region) is holds


def test_a_bucket_elsewhere_is_a_warning():
    assert bucket_warning("b", ["US"], "us-central1") is None
    assert bucket_warning("b", ["US", "US-EAST1", "US-WEST1"], "us-west1") is None
    assert "bucket b is in EU" in (bucket_warning("b", ["EU"], "us-central1") or "")


def test_a_dataset_elsewhere_is_refused_and_one_of_the_multi_region_is_a_warning():
    """A statement runs in one location, and US is another than a region of it."""
    assert dataset_warning("d", "us-central1", "us-central1") is None
    assert "dataset d is in US" in (dataset_warning("d", "US", "us-central1") or "")
    with refuses(SettingsError, where="dataset d", found="EU", expected="us-central1", way_out="RETRAINING_DATASET"):
        dataset_warning("d", "EU", "us-central1")
