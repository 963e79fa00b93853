"""Which pre-built containers Vertex AI has, and until when: a dated data file.

In: `package_data/containers/prebuilt.json`, a spec, the image that serves, a day. Out: the first container that does
not exist on that day, with the way out.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Literal

from retraining.core.documents.document import Document, Text
from retraining.core.errors import ContractError, RetrainingError, SettingsError, SpecError
from retraining.core.settings import data_path
from retraining.core.spec.deployment import PREBUILT
from retraining.core.spec.model import ModelSpec

_TRAIN_IN_IMAGE = "Train in the project's image (remove the key), or in one of your own (training.runtime.image)"
_SERVE_BY_IMAGE = (
    "Serve by TensorFlow Serving (remove RETRAINING_SERVING_IMAGE, docs/composer.md), or describe another container in "
    "deployment.container"
)

SERVED_PACKAGES = ("tensorflow_text", "tensorflow_decision_forests")
"""Whose operations TensorFlow Serving's own image has (SUPPORTED_TENSORFLOW_OPS).

https://github.com/tensorflow/serving/blob/master/tensorflow_serving/model_servers/BUILD
"""


class Containers(Document):
    """Ends of availability: of training containers by TensorFlow's version, of prediction containers by name.

    And of Vertex AI's explanations of online answers, whatever container serves.
    """

    kind: Literal["containers"] = "containers"
    effective: date
    source: Text
    note: str
    training: dict[str, date]
    prediction: dict[str, date]
    explanations: date


def load_containers(include: Path) -> Containers:
    """Return the table.

    Raises:
        SettingsError: It is missing or malformed.
    """
    path = data_path("containers/prebuilt.json", include)
    try:
        return Containers.parse(path.read_bytes(), path.name)
    except OSError as error:
        raise SettingsError(
            str(path), f"{error.strerror}", "the table of containers", "Install the package again"
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


def require_serving_container(spec: ModelSpec, image: str, containers: Containers, day: date | None = None) -> None:
    """Check that a pre-built container that serves is there, and that what serves may load the model.

    Of an endpoint and of a scoring: both run it. Any other image passes as such; which operations a container of the
    model's own has is its own affair.

    Args:
        spec: With the run's overrides.
        image: The setting's; "": whatever it is.
        containers: The table.
        day: Of the run; None: whatever the day.

    Raises:
        SpecError: The spec's container is none of the table, or has ended; or no container is known to have the
            operations of the model's packages; or none may serve on machines that models share.
        SettingsError: The setting's.
    """
    own = spec.deployment.container
    if spec.deployment.shared_machines and own is None and image and PREBUILT.match(image) is None:
        raise SpecError(
            f"{spec.name}.yaml, deployment.shared_machines",
            f"RETRAINING_SERVING_IMAGE is {image}, and machines that models share serve pre-built containers alone",
            "a pre-built container of Vertex AI for TensorFlow",
            "Name one in deployment.container, or remove shared_machines",
        )
    error, where, used = (
        (SpecError, f"{spec.name}.yaml, deployment.container.image", own.image)
        if own
        else (SettingsError, "RETRAINING_SERVING_IMAGE", image)
    )
    if named := PREBUILT.match(used):
        _require(error, where, named.group(1), containers.prediction, day, _SERVE_BY_IMAGE)
    if own is None or named:
        _require_known_operations(spec)


def require_explanations(spec: ModelSpec, image: str, containers: Containers, day: date) -> str | None:
    """Check that Vertex AI explains the model's answers.

    Args:
        spec: With the run's overrides.
        image: The setting's.
        containers: The table.
        day: Of the run.

    Returns:
        A warning of when it ends; None: nothing is explained.

    Raises:
        SpecError: It has ended, or a pre-built container would be asked by its tensors.
    """
    if spec.deployment.explanations is None:
        return None
    where, end = f"{spec.name}.yaml, deployment.explanations", containers.explanations
    if spec.deployment.container is None and PREBUILT.match(image):
        raise SpecError(
            where,
            f"RETRAINING_SERVING_IMAGE is {image}, which Vertex AI explains by tensors",
            "a container that is asked by the names of features",
            "Serve by TensorFlow Serving (remove RETRAINING_SERVING_IMAGE, docs/composer.md), or remove the key",
        )
    if day >= end:
        raise SpecError(
            where,
            f"Vertex AI's explanations ended on {end}, and the run is of {day}",
            "no such key",
            "Remove it: which features the model relies on stands in every evaluation (docs/evaluation.md)",
        )
    return f"{where}: Vertex AI explains answers until {end}; a run of that day or later is refused"


def _require_known_operations(spec: ModelSpec) -> None:
    packages = spec.training.packages
    if unknown := [each.imports for each in packages if each.imports and each.imports not in SERVED_PACKAGES]:
        raise SpecError(
            f"{spec.name}.yaml, training.packages",
            f"the model is stored with the operations of {', '.join(unknown)}, and packages are not installed where a "
            "model serves or scores",
            f"a deployment.container that has them; TensorFlow Serving's own has those of {', '.join(SERVED_PACKAGES)}",
            "Build TensorFlow Serving with them (https://www.tensorflow.org/tfx/serving/custom_op) and describe that "
            "image in deployment.container; or remove imports, where the package brings no operation",
        )


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
