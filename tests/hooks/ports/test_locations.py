"""Where a bucket and a dataset are."""

from __future__ import annotations


def test_a_bucket_and_a_dataset_say_where_they_are(stage, cloud, unique) -> None:
    """As they were made, in the one region of the local cloud; of what is not there nothing is known."""
    bucket, dataset = stage.make_places(unique, "us-central1")
    found = cloud.artifacts.bucket_locations(bucket)
    assert found is not None
    assert found[0].lower() == "us-central1"
    assert (cloud.warehouse.dataset_location(dataset) or "").lower() == "us-central1"
    assert cloud.artifacts.bucket_locations(f"{bucket}-not") is None
    assert cloud.warehouse.dataset_location(f"{dataset}_not") is None


def test_without_a_key_of_ones_own_google_encrypts(cloud) -> None:
    """And of what is not there nobody says."""
    bucket, dataset = cloud.settings.bucket, cloud.settings.dataset
    assert cloud.artifacts.bucket_key(bucket) == cloud.warehouse.dataset_key(dataset) == ""
    assert cloud.artifacts.bucket_key(f"{bucket}-not") is cloud.warehouse.dataset_key(f"{dataset}_not") is None
