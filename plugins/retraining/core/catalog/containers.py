"""Which pre-built containers Vertex AI has, and until when: a dated data file.

In: `include/containers/prebuilt.json`, a spec, the image that serves, a day. Out: the first container that does not
exist on that day, with the way out.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Literal

from retraining.core.documents.document import Document, Text
from retraining.core.errors import ContractError, RetrainingError, SettingsError, SpecError
from retraining.core.spec.model import ModelSpec

_PREDICTION = re.compile(r"(?:[a-z]+-docker\.pkg\.dev/vertex-ai|gcr\.io/cloud-aiplatform)/prediction/(tf2-[^:@]+)")
_TRAIN_IN_IMAGE = "Train in the project's image (remove the key), or in one of your own (training.runtime.image)"
_SERVE_BY_IMAGE = (
    "Name another container in RETRAINING_SERVING_IMAGE: one of your own listens on AIP_HTTP_PORT and answers "
    "AIP_HEALTH_ROUTE and AIP_PREDICT_ROUTE"
)


class Containers(Document):
    """Ends of availability: of training containers by TensorFlow's version, of prediction containers by name."""

    kind: Literal["containers"] = "containers"
    effective: date
    source: Text
    note: str
    training: dict[str, date]
    prediction: dict[str, date]


def load_containers(include: Path) -> Containers:
    """Return the table.

    Raises:
        SettingsError: It is missing or malformed.
    """
    path = include / "containers" / "prebuilt.json"
    try:
        return Containers.parse(path.read_bytes(), path.name)
    except OSError as error:
        raise SettingsError(
            str(path), f"{error.strerror}", "the table of containers", "Run make bundle again"
        ) from error
    except ContractError as error:
        raise SettingsError(error.where, error.found, "a table like the repository's") from error


def require_training_container(spec: ModelSpec, containers: Containers, day: date | None = None) -> None:
    """Check that the spec's `training.runtime.framework` has a container.

    Args:
        spec: With the run's overrides.
        day: Of the run; None: whatever the day.

    Raises:
        SpecError: There is none, or none any more.
    """
    framework = spec.training.runtime.framework
    if framework is not None:
        where = f"{spec.name}.yaml, training.runtime.framework"
        _require(SpecError, where, framework, containers.training, day, _TRAIN_IN_IMAGE)


def require_serving_container(image: str, containers: Containers, day: date) -> None:
    """Check that a pre-built container that serves is there; any other image passes.

    Raises:
        SettingsError: There is none of that name, or none any more.
    """
    if named := _PREDICTION.match(image):
        _require(SettingsError, "RETRAINING_SERVING_IMAGE", named.group(1), containers.prediction, day, _SERVE_BY_IMAGE)


def _require(
    error: type[RetrainingError], where: str, name: str, ends: dict[str, date], day: date | None, way_out: str
) -> None:
    if name not in ends:
        raise error(where, f"{name!r} is not in include/containers/prebuilt.json", f"one of {', '.join(ends)}", way_out)
    if day is not None and day >= ends[name]:
        there = [other for other, end in ends.items() if day < end]
        expected = f"one of {', '.join(there)}" if there else "none: all have ended"
        raise error(
            where, f"{name}: its pre-built container ended on {ends[name]}, and the run is of {day}", expected, way_out
        )
