"""Whose a resource is: several Airflow environments may share a project, a region and a dataset.

In: the setting `RETRAINING_ENVIRONMENT`, labels and addresses of resources. Out: which environment they belong to. What
an earlier release made carries no such label: it belongs to the environment in whose bucket its files are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from retraining.core.naming.addresses import ObjectAddress

ENVIRONMENT_LABEL = "retraining-environment"

# https://cloud.google.com/resource-manager/docs/labels-overview#requirements
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{1,63}")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """This environment: `label` is the value that its resources carry, `bucket` holds its documents."""

    label: str
    bucket: str

    @property
    def labels(self) -> dict[str, str]:
        """What everything that it makes carries."""
        return {ENVIRONMENT_LABEL: self.label}

    def owner(self, labels: Mapping[str, str], uri: str) -> str | None:
        """Return the label of the environment that made a resource; None: it does not say.

        Args:
            labels: Of the resource.
            uri: Address of its files; empty when it has none.
        """
        if ENVIRONMENT_LABEL in labels:
            return labels[ENVIRONMENT_LABEL]
        bucket = ObjectAddress.parse(uri).bucket
        if bucket == self.bucket:
            return self.label
        return label_of(bucket) if bucket else None

    def owns(self, labels: Mapping[str, str], uri: str) -> bool:
        """Return whether this environment made a resource."""
        return self.owner(labels, uri) == self.label


def label_of(environment: str) -> str:
    """Return an environment's name as a label value: itself where it is one, else what can be read of it and a hash."""
    if _LABEL_VALUE.fullmatch(environment):
        return environment
    short = hashlib.sha256(environment.encode()).hexdigest()[:12]
    return f"{re.sub('[^a-z0-9_-]', '-', environment.lower())[:50]}-{short}"
