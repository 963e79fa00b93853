"""Whether bucket and dataset are where the jobs run: data that crosses regions is slow, paid for, and may be forbidden.

In: names of locations as Google's services have them. Out: warnings, or a refusal, with the way out.
"""

from __future__ import annotations

from collections.abc import Sequence

from retraining.core.errors import SettingsError

# https://cloud.google.com/storage/docs/locations: regions that an area's name suggests and that are not in it.
_OUTSIDE = {"eu": ("europe-west2", "europe-west6")}
_AREAS = {"us": "us-", "eu": "europe-", "asia": "asia-"}
_PAIRS = {
    "nam4": ("us-central1", "us-east1"),
    "eur4": ("europe-north1", "europe-west4"),
    "asia1": ("asia-northeast1", "asia-northeast2"),
}


def holds_region(location: str, region: str) -> bool:
    """Return whether a location is the region, or a multi-region or pair of regions that it belongs to."""
    place, region = location.lower(), region.lower()
    if place in _AREAS:
        return region.startswith(_AREAS[place]) and region not in _OUTSIDE.get(place, ())
    return region == place or region in _PAIRS.get(place, ())


def bucket_warning(bucket: str, locations: Sequence[str], region: str, *, of_images: bool = False) -> str | None:
    """Return what is wrong with where a bucket is; None: nothing.

    Args:
        bucket: Its name.
        locations: Its location, and the regions of a bucket that names two of its own.
        region: Of the jobs.
        of_images: Whether it is a user's, whose objects are images.
    """
    if any(holds_region(location, region) for location in locations):
        return None
    way_out = f"Make a bucket in {region} and set RETRAINING_BUCKET, or change RETRAINING_REGION"
    if of_images:
        way_out = f"Copy the images to a bucket in {region} (gcloud storage cp), and name that"
    return (
        f"bucket {bucket} is in {locations[0]} and the jobs run in {region}: what they read and write crosses regions, "
        f"which is slow and paid for. {way_out}"
    )


def dataset_warning(dataset: str, location: str, region: str) -> str | None:
    """Return what is wrong with where the dataset of run tables is; None: nothing.

    Raises:
        SettingsError: It is nowhere near: no statement could be run there.
    """
    if location.lower() == region.lower():
        return None
    way_out = f"Make a dataset in {region} and set RETRAINING_DATASET, or change RETRAINING_REGION"
    if holds_region(location, region):
        return (
            f"dataset {dataset} is in {location} and statements run in {region}, which BigQuery keeps apart although "
            f"the one holds the other. {way_out}"
        )
    raise SettingsError(
        f"dataset {dataset}", f"location {location}", f"{region}, where statements and jobs run", way_out
    )


def require_source_bucket(bucket: str, locations: Sequence[str], region: str) -> None:
    """Refuse files that no load of this region reads.

    https://cloud.google.com/bigquery/docs/batch-loading-data#data-locations

    Args:
        bucket: Of `data.files`.
        locations: Its location, and the regions of a bucket that names two of its own.
        region: Of the statements.

    Raises:
        SettingsError: The bucket is elsewhere.
    """
    if not any(holds_region(location, region) for location in locations):
        way_out = f"Copy the files to a bucket in {region} (gcloud storage cp), and name that"
        raise SettingsError(
            f"data.files, bucket {bucket}", f"location {locations[0]}", f"{region}, where statements run", way_out
        )
