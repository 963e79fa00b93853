"""PredictionService.Explain: what each input of an instance adds to the answer of a deployed model.

Comes in: instances, and the specification of a deployed model. Goes out: predictions with attributions, by sampled
Shapley values: the model is asked with inputs of the instance and of the baseline together.
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.endpoints/explain
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Attribution, DeployedModel, Endpoint, Explanation

from localcloud.vertex.endpoints import addresses
from localcloud.vertex.endpoints.meter import Meter
from localcloud.vertex.endpoints.predictions import check_size, choose_deployed, find_endpoint, to_json, to_value
from localcloud.vertex.endpoints.private_connections import is_private
from localcloud.vertex.endpoints.request_log import Json, RequestLog
from localcloud.vertex.endpoints.serving import Serving
from localcloud.vertex.endpoints.shapley import Coalition, Order, attribute, coalitions_of, draw_orders
from localcloud.vertex.processes.serving_contract import read_predictions, request_body
from localcloud.vertex.resources.explanation_specs import overridden
from localcloud.vertex.resources.store import Store
from localcloud.vertex.wire.errors import FailedPrecondition, InvalidArgument, NotFound, Unimplemented
from localcloud.vertex.wire.methods import Message, raw

# Rows that the container is asked at a time, beside the instances themselves.
BATCH_ROWS = 256
_CHANCE = random.Random()

Row = dict[str, Json]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Deployed:
    """A deployed model that is asked."""

    serving: Serving
    endpoint: Endpoint
    id: str
    parameters: Json

    def ask(self, instances: Sequence[Json]) -> list[Json]:
        """Return its predictions."""
        body = request_body(list(instances), self.parameters)
        return read_predictions(self.serving.predict(self.endpoint, self.id, body), len(instances))


class Explanations:
    """Answers requests for explanations.

    Args:
        store: Has endpoints.
        serving: Runs what is deployed to them.
        request_log: Takes a sample of the instances and predictions, as of any prediction.
        meter: Takes the code and the time of every answer.
    """

    def __init__(self, store: Store, serving: Serving, request_log: RequestLog, meter: Meter) -> None:
        self._store = store
        self._serving = serving
        self._request_log = request_log
        self._meter = meter

    def check_host(self, request: types.ExplainRequest, host: str) -> None:
        """Refuse a host at which this endpoint does not answer.

        Raises:
            ApiError: It does not.
        """
        addresses.check_request(self._store, request.endpoint, host)

    def explain(self, request: types.ExplainRequest) -> types.ExplainResponse:
        """Return predictions for instances, and an explanation of each."""
        endpoint = find_endpoint(self._store, request.endpoint)
        deployed = _find_explained(endpoint, request.deployed_model_id)
        spec = raw(overridden(deployed.explanation_spec, request.explanation_spec_override))
        instances = [to_json(value) for value in raw(request).instances]
        parameters = to_json(raw(request).parameters)
        check_size(request_body(instances, parameters))
        baselines = {name: to_json(spec.metadata.inputs[name].input_baselines[0]) for name in spec.metadata.inputs}
        for number, instance in enumerate(instances):
            _check_instance(instance, baselines, number)
        asked = _Deployed(serving=self._serving, endpoint=endpoint, id=deployed.id, parameters=parameters)
        with self._meter.measure(endpoint.name, deployed.id, len(instances)) as measured, measured.model_time():
            predictions = asked.ask(instances)
            explanations = list(_explain(asked, spec, baselines, instances, predictions))
        self._request_log.record(endpoint, deployed.id, instances, predictions)
        response = types.ExplainResponse(deployed_model_id=deployed.id, explanations=explanations)
        raw(response).predictions.extend(to_value(prediction) for prediction in predictions)
        return response


def _find_explained(endpoint: Endpoint, deployed_model_id: str) -> DeployedModel:
    """Return the deployed model that is asked for, or one by the traffic split, of which all must be explained then.

    Raises:
        ApiError: It is not there, cannot be explained, or gets no requests.
    """
    if endpoint.dedicated_endpoint_enabled or is_private(endpoint):
        raise FailedPrecondition(
            f"The Endpoint {endpoint.name} is a {'private' if is_private(endpoint) else 'dedicated'} one, and these do"
            " not support explanation. Deploy the model to a shared public endpoint."
        )
    known = {deployed.id: deployed for deployed in endpoint.deployed_models}
    if deployed_model_id and deployed_model_id not in known:
        raise NotFound(f"The DeployedModel {deployed_model_id!r} does not exist on {endpoint.name}. It has {[*known]}.")
    for each in [known[deployed_model_id]] if deployed_model_id else known.values():
        if each.disable_explanations or "explanation_spec" not in each:
            raise FailedPrecondition(f"Deployed model {each.id} does not support explanation.")
    return known[deployed_model_id] if deployed_model_id else choose_deployed(endpoint)


def _check_instance(instance: Json, baselines: Mapping[str, Json], number: int) -> None:
    """Refuse an instance whose inputs cannot be told apart.

    Raises:
        InvalidArgument: It lacks an explained input.
        Unimplemented: It, or an input, has a form that the local cloud does not explain.
    """
    if not isinstance(instance, dict):
        raise Unimplemented(f"The local cloud explains instances that are objects: instances[{number}] is none.")
    if missing := sorted(baselines.keys() - instance.keys()):
        raise InvalidArgument(
            f"instances[{number}] lacks {missing}, which the model's explanation_spec names as inputs.",
            field="instances",
        )
    if lists := sorted(name for name in baselines if isinstance(instance[name], list)):
        raise Unimplemented(f"The local cloud explains single values: instances[{number}] has lists in {lists}.")


def _explain(
    asked: _Deployed,
    spec: Message,
    baselines: Mapping[str, Json],
    instances: Sequence[Row],
    predictions: Sequence[Json],
) -> Iterator[Explanation]:
    paths = spec.parameters.sampled_shapley_attribution.path_count
    orders = [draw_orders(sorted(baselines), paths, _CHANCE) for _ in instances]
    coalitions = [coalitions_of(each) for each in orders]
    rows = [
        instance | {name: baselines[name] for name in baselines if name not in coalition}
        for instance, needed in zip(instances, coalitions, strict=True)
        for coalition in needed
    ]
    answers = iter(
        [each for start in range(0, len(rows), BATCH_ROWS) for each in asked.ask(rows[start : start + BATCH_ROWS])]
    )
    for prediction, drawn, needed in zip(predictions, orders, coalitions, strict=True):
        told = {coalition: next(answers) for coalition in needed} | {frozenset(baselines): prediction}
        yield Explanation(attributions=_attributions(spec, drawn, told, prediction))


def _attributions(
    spec: Message, orders: Sequence[Order], answers: Mapping[Coalition, Json], prediction: Json
) -> list[Attribution]:
    """Return an attribution for each output that is explained."""
    (name,) = spec.metadata.outputs
    outputs = {coalition: _output(answer, name) for coalition, answer in answers.items()}
    full = outputs[frozenset(orders[0])]
    found = []
    for index in _indices(full, spec.parameters):
        values = {coalition: _at(output, index) for coalition, output in outputs.items()}
        attributions, error = attribute(orders, values)
        attribution = Attribution(
            baseline_output_value=values[frozenset()],
            instance_output_value=_at(full, index),
            output_index=[] if index is None else [index],
            output_display_name=_display_name(spec.metadata.outputs[name], prediction, index),
            approximation_error=error,
            output_name=name,
        )
        raw(attribution).feature_attributions.CopyFrom(to_value(attributions))
        found.append(attribution)
    return found


def _output(prediction: Json, name: str) -> float | list[float]:
    """Return the explained output of a prediction: the one of the name, or the prediction itself if it has no names.

    Raises:
        FailedPrecondition: It has no such output, or that is no number and no list of numbers.
    """
    if isinstance(prediction, dict) and name not in prediction:
        raise FailedPrecondition(f"The predictions have no output {name!r}. They have {sorted(prediction)}.")
    output: float | list[float] = prediction[name] if isinstance(prediction, dict) else prediction
    numbers = output if isinstance(output, list) else [output]
    if not numbers or not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
        raise FailedPrecondition(f"The output {name!r} is {str(output)[:100]}. Expected a number, or a list of them.")
    return output


def _at(output: float | list[float], index: int | None) -> float:
    """Return the number at an index; None: it is one itself.

    Raises:
        FailedPrecondition: The output has another length for another instance.
    """
    if not isinstance(output, list):
        return float(output)
    if index is None or index >= len(output):
        raise FailedPrecondition(f"The output has {len(output)} numbers. Expected as many for each instance.")
    return float(output[index])


def _indices(output: float | list[float], parameters: Message) -> Sequence[int | None]:
    """Return which numbers of an output are explained: those of output_indices, else the top_k greatest.

    Raises:
        InvalidArgument: output_indices names one that is not there.
    """
    if not isinstance(output, list):
        return [None]
    wanted = [int(each.number_value) for each in parameters.output_indices.values]
    if wrong := [index for index in wanted if index >= len(output)]:
        raise InvalidArgument(f"output_indices names {wrong}, and the output has {len(output)} numbers.")
    if wanted:
        return wanted
    greatest = sorted(range(len(output)), key=lambda index: -output[index])
    return greatest if parameters.top_k == -1 else greatest[: parameters.top_k or 1]


def _display_name(described: Message, prediction: Json, index: int | None) -> str:
    """Return what an output is called, as its metadata say it; "": they do not."""
    names: Json = None
    if described.HasField("index_display_name_mapping"):
        names = to_json(described.index_display_name_mapping)
    elif described.HasField("display_name_mapping_key") and isinstance(prediction, dict):
        names = prediction.get(described.display_name_mapping_key)
    if index is None:
        return names if isinstance(names, str) else ""
    return str(names[index]) if isinstance(names, list) and index < len(names) else ""
