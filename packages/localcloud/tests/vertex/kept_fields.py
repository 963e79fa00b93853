"""Resources of Vertex AI in which everything is set that is kept, by the table of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as v1

from localcloud.fields import Fate
from localcloud.vertex.wire.fields import FIELDS
from localcloud.vertex.wire.methods import load_methods, raw
from packages.localcloud.tests.google_messages import Place, Requests, found_at, put

METHODS = {each.full_name: each for each in load_methods() if each.unary}
REQUESTS = Requests(
    fields=FIELDS,
    types={name: raw(METHODS[name].request_type()).DESCRIPTOR for name in FIELDS.fields.parameters if name in METHODS},
)
OWN_VALUES: dict[str, Any] = {
    "machine_type": "n1-standard-8",
    "accelerator_type": v1.AcceleratorType.NVIDIA_TESLA_T4,
    "accelerator_count": 2,
    "boot_disk_size_gb": 200,
    "labels": {"kept": "yes"},
    "metrics_schema_uri": "gs://google-cloud-aiplatform/schema/modelevaluation/a.yaml",
}


def kept(method: str, field: str, *without: str) -> list[Place]:
    """Return the ways to what is kept of a method's resource."""
    every = [place for place in REQUESTS.places(method, Fate.KEPT) if place.shown().startswith(f"{field}.")]
    return [place for place in every if not place.shown().removeprefix(f"{field}.").startswith(without)]


def fill(request: Any, places: list[Place], own: Mapping[str, Any] = OWN_VALUES) -> dict[Place, Any]:
    """Set fields of a request, by `own` to values that the service takes; give what they were set to."""
    assert places
    values = {**OWN_VALUES, **own}
    return {place: put(request, place, values.get(place.field.name)) for place in places}


def assert_returned(resource: Any, given: dict[Place, Any]) -> None:
    """What a request's resource had in these fields is what this one has."""
    for place, value in given.items():
        found = found_at(resource, Place(steps=place.steps[1:], rule=place.rule))
        assert found == (pytest.approx(value) if isinstance(value, float) else value), place.shown()
