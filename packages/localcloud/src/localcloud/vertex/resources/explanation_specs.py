"""How a model's answers are explained: what is wrong with such a specification, and which one holds.

Comes in: an ExplanationSpec of a model, of a deployment, of a request. Goes out: findings; the one that holds. Offered
is sampled Shapley of containers that take instances by name, with a baseline for each input; all else is refused by
name. https://cloud.google.com/vertex-ai/docs/explainable-ai/configuring-explanations-feature-based
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from google.cloud.aiplatform_v1.types import DeployedModel, ExplanationSpec, ExplanationSpecOverride, Model

from localcloud.vertex.resources.validation import Finding
from localcloud.vertex.wire.errors import InvalidArgument, Unimplemented
from localcloud.vertex.wire.methods import Message, raw

METHOD = "sampled_shapley_attribution"
MAX_PATHS = 50
_PREBUILT = re.compile(r"/prediction/[a-z0-9]+-")


def check_spec(spec: ExplanationSpec, field: str, image_uri: str) -> Iterator[Finding]:
    """Find what is wrong with a specification that shall hold for a model.

    Args:
        field: Where it stands in the request.
        image_uri: What serves the model.

    Raises:
        Unimplemented: The service has it, the local cloud has not.
    """
    if _PREBUILT.search(image_uri):
        raise Unimplemented(
            f"The local cloud does not offer {field} for the pre-built container {image_uri!r}, which is described by"
            " its tensors. Serve the model by a custom container."
        )
    inner = raw(spec)
    method = inner.parameters.WhichOneof("method")
    if method is None:
        yield f"{field}.parameters", f"It names no attribution method. Set {METHOD}."
    yield from _check_paths(inner.parameters, f"{field}.parameters")
    yield from _check_metadata(inner.metadata, f"{field}.metadata")


def inherited(deployed: DeployedModel, version: Model) -> ExplanationSpec | None:
    """Return what explains a deployed model: its own fields, then those of its version. None: nothing does."""
    if deployed.disable_explanations or not ("explanation_spec" in deployed or "explanation_spec" in version):
        return None
    spec = ExplanationSpec()
    for source in (version.explanation_spec, deployed.explanation_spec):
        for name in ("parameters", "metadata"):
            if name in source:
                setattr(spec, name, getattr(source, name))
    return spec


def overridden(spec: ExplanationSpec, override: ExplanationSpecOverride) -> ExplanationSpec:
    """Return what explains one request: a deployed model's specification, changed by the request's.

    Raises:
        InvalidArgument: It would change the method, or an input that is not there.
        Unimplemented: It has not one baseline for an input.
    """
    field, changes = "explanation_spec_override", raw(override)
    changed = ExplanationSpec()
    ExplanationSpec.copy_from(changed, spec)
    method = changes.parameters.WhichOneof("method")
    if method not in (None, METHOD):
        raise InvalidArgument(
            f"The attribution method cannot be overridden: it is {METHOD}, and not {method}.",
            field=f"{field}.parameters.{method}",
        )
    for path, message in _check_paths(changes.parameters, f"{field}.parameters"):
        raise InvalidArgument(message, field=path)
    if changes.parameters.HasField("output_indices"):  # in place of those before, and not behind them
        raw(changed).parameters.ClearField("output_indices")
    raw(changed).parameters.MergeFrom(changes.parameters)
    _override_baselines(raw(changed).metadata.inputs, changes.metadata.inputs, f"{field}.metadata.inputs")
    return changed


def _override_baselines(inputs: Mapping[str, Message], changes: Mapping[str, Message], field: str) -> None:
    for name in changes:
        if name not in inputs:
            raise InvalidArgument(f"There is no input {name!r}. Expected one of {sorted(inputs)}.", field=field)
        if changes[name].input_baselines:
            _require_one_baseline(changes[name], f"{field}[{name!r}]")
            del inputs[name].input_baselines[:]
            inputs[name].input_baselines.extend(changes[name].input_baselines)


def _check_paths(parameters: Message, field: str) -> Iterator[Finding]:
    count = parameters.sampled_shapley_attribution.path_count
    if parameters.HasField(METHOD) and not 1 <= count <= MAX_PATHS:
        yield f"{field}.{METHOD}.path_count", f"It is {count}. Expected 1 to {MAX_PATHS}."
    if parameters.top_k < -1:
        yield f"{field}.top_k", f"It is {parameters.top_k}. Expected 1 or more, or -1 for all outputs."
    indices = parameters.output_indices.values
    if not all(each.HasField("number_value") and _is_index(each.number_value) for each in indices):
        yield f"{field}.output_indices", "Expected whole numbers from 0 on."


def _is_index(number: float) -> bool:
    return number >= 0 and number.is_integer()


def _check_metadata(metadata: Message, field: str) -> Iterator[Finding]:
    if not metadata.inputs:
        yield f"{field}.inputs", "A custom container needs the names of its inputs. Name each with its baseline."
    for name in metadata.inputs:
        _require_one_baseline(metadata.inputs[name], f"{field}.inputs[{name!r}]")
    if len(metadata.outputs) != 1:
        yield f"{field}.outputs", f"It has {len(metadata.outputs)} keys. Expected one, the output to be explained."
    for name in metadata.outputs:
        output = metadata.outputs[name]
        names = output.index_display_name_mapping
        texts = all(each.HasField("string_value") for each in names.list_value.values)
        if output.HasField("index_display_name_mapping") and not (names.HasField("list_value") and texts):
            raise Unimplemented(
                f"The local cloud offers {field}.outputs[{name!r}].index_display_name_mapping as a list of texts alone."
            )


def _require_one_baseline(described: Message, field: str) -> None:
    """Refuse several, which are averaged in a way that is not documented, and none, which the service chooses."""
    if len(described.input_baselines) != 1:
        raise Unimplemented(
            f"The local cloud explains with one baseline for each input: {field}.input_baselines has"
            f" {len(described.input_baselines)}. Give one."
        )
