"""What is wrong with a training pipeline, as far as it can be known before it runs.

Comes in: a pipeline. Goes out: the spec of its custom job, or a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from google.cloud.aiplatform_v1.types import CustomJobSpec, TrainingPipeline
from google.protobuf import json_format

from localcloud.vertex.resources.validation import Finding, check_display_name, check_labels, refuse
from localcloud.vertex.wire.errors import InvalidArgument, Unimplemented
from localcloud.vertex.wire.fields import check_message
from localcloud.vertex.wire.methods import raw
from localcloud.vertex.wire.schema import missing_fields

# Findings of a custom job's spec that stands in a field.
CheckJobSpec = Callable[[CustomJobSpec, str], Iterator[Finding]]
DEFINITIONS = "gs://google-cloud-aiplatform/schema/trainingjob/definition/"
CUSTOM_TASK = f"{DEFINITIONS}custom_task_1.0.0.yaml"
_FIELD = "training_pipeline"
_INPUTS = f"{_FIELD}.training_task_inputs"


def check_pipeline(pipeline: TrainingPipeline, check_job_spec: CheckJobSpec) -> None:
    """Look for everything that can be known before it runs; `check_job_spec` knows the rules of its custom job.

    Raises:
        InvalidArgument: Something is wrong.
        Unimplemented: A task, or a field, whose effect the local cloud cannot give.
    """
    if not pipeline.training_task_definition.startswith(DEFINITIONS):
        raise InvalidArgument(
            f"{pipeline.training_task_definition!r} defines no training task. Expected such as {CUSTOM_TASK}.",
            field=f"{_FIELD}.training_task_definition",
        )
    if pipeline.training_task_definition != CUSTOM_TASK:
        raise Unimplemented(f"The local cloud offers only {CUSTOM_TASK}, found {pipeline.training_task_definition}.")
    spec = read_job_spec(pipeline)
    check_message(spec, _INPUTS)
    refuse(_findings(pipeline, spec, check_job_spec))


def read_job_spec(pipeline: TrainingPipeline) -> CustomJobSpec:
    """Return the spec of a pipeline's custom job.

    Raises:
        InvalidArgument: Its inputs have another form.
    """
    spec = CustomJobSpec()
    try:
        json_format.ParseDict(json_format.MessageToDict(raw(pipeline).training_task_inputs), raw(spec))
    except (json_format.ParseError, TypeError) as error:
        raise InvalidArgument(
            f"Invalid training_task_inputs for {CUSTOM_TASK}: {error}. Expected the fields of CustomJobSpec.",
            field=_INPUTS,
        ) from None
    return spec


def _findings(pipeline: TrainingPipeline, spec: CustomJobSpec, check_job_spec: CheckJobSpec) -> Iterator[Finding]:
    yield from check_display_name(pipeline.display_name, f"{_FIELD}.display_name")
    yield from check_labels(pipeline.labels, f"{_FIELD}.labels")
    yield from ((f"{_INPUTS}.{path}", "Required field is not set.") for path in missing_fields(spec, nested=True))
    yield from check_job_spec(spec, _INPUTS)
    if "model_to_upload" in pipeline:
        if not pipeline.model_to_upload.container_spec.image_uri:
            yield (
                f"{_FIELD}.model_to_upload.container_spec",
                "A custom-trained model needs a serving container. Set container_spec.image_uri.",
            )
        if not spec.base_output_directory.output_uri_prefix:
            yield f"{_INPUTS}.base_output_directory", "model_to_upload is uploaded from there. Set both or none."
