"""Folders of the bucket that are no model's: `core/naming` makes the addresses in them."""

from __future__ import annotations

from enum import StrEnum

UPLOAD_TOOLS = ("gcloud", "gsutil")
"""Folders in which these tools keep pieces of uploads."""

UPLOAD_FOLDER = "tmp/parallel_composite_uploads"
"""Pieces of a large upload that was cut off before they were composed.

https://cloud.google.com/storage/docs/parallel-composite-uploads
"""


class BucketFolder(StrEnum):
    """Folders of the bucket that are no model's. A new one stands here, and so is closed to models."""

    POKES = "wakes"
    LEASES = "leases"
    MAINTENANCE = "maintenance"
    PACKAGES = "packages"
    NOTIFICATIONS = "notifications"
    SPENDING = "spending"
    JOBS = "jobs"
    """All that jobs write, a folder per model in it: the jobs' accounts may write nowhere else."""


RESERVED_MODELS = frozenset({*BucketFolder, *UPLOAD_TOOLS})
"""Names that no model may have: its folder would be one of these."""
