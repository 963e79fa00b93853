"""What an endpoint answers, wherever it does: at the region's address, at one of its own, or in a network alone.

In: an endpoint and instances. Out: answers, and which deployed model gave them; attributions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from retraining.core.documents.document import read_object
from retraining.core.errors import SettingsError
from retraining.core.naming.vertex import ResourceName
from retraining.core.report.attributions import Attribution
from retraining.core.untyped import Foreign
from retraining.hooks.session import Session, call, call_once

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import Attribution as AttributionMessage
    from google.cloud.aiplatform_v1 import PredictionServiceClient

ENDPOINT_HEADER = "x-vertex-ai-endpoint-id"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an endpoint said, and which deployed model said it."""

    predictions: list[Any]
    deployed_model_id: str


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """That a request had no answer. Nothing more is kept of it: services repeat what they were asked in their messages.

    Attributes:
        kind: Of the error, as `InvalidArgument`.
    """

    kind: str


class Asked(Protocol):
    """An endpoint, as far as asking it goes."""

    @property
    def name(self) -> str:
        """Full name."""

    @property
    def address(self) -> str:
        """Its own, or in this environment's network; empty: the region's, or none yet."""

    @property
    def private(self) -> bool:
        """Whether it answers in networks alone."""

    @property
    def unreachable(self) -> str:
        """Why it has no address in this environment's network; empty: it has, or will."""


class Predictions:
    """The prediction service of one region, and of endpoints with addresses of their own.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._clients: dict[str, PredictionServiceClient] = {}

    def ask(self, endpoint: Asked, instances: Sequence[Mapping[str, Any]]) -> Answer:
        """Ask an endpoint, and again while it may pass.

        A dedicated endpoint answers at its own address alone, and tells itself from others by a header.
        https://cloud.google.com/vertex-ai/docs/predictions/using-dedicated-endpoints
        """
        return call(self._asking(endpoint, instances))

    def ask_once(
        self, endpoint: Asked, instances: Sequence[Mapping[str, Any]], timeout_s: float
    ) -> Answer | Unanswered:
        """Ask an endpoint once, and wait so long."""
        from google.api_core import exceptions

        try:
            return call_once(self._asking(endpoint, instances), timeout_s=timeout_s)
        except (exceptions.Forbidden, exceptions.Unauthorized, exceptions.NotFound):
            raise
        except (exceptions.GoogleAPICallError, TimeoutError) as error:
            return Unanswered(kind=type(error).__name__)

    def explain(
        self, endpoint: Asked, instances: Sequence[Mapping[str, Any]], deployed_id: str = ""
    ) -> list[list[Attribution]]:
        """Ask what each feature adds to the answers of one deployed model, or of one by the traffic."""
        from google.protobuf import struct_pb2

        values = [_value(struct_pb2, dict(item)) for item in instances]
        client = self._client_at(endpoint.address)
        asked = {"endpoint": endpoint.name, "instances": values, "deployed_model_id": deployed_id or None}
        answer = call(lambda: client.explain(**asked, retry=None))
        return [[_attribution(one) for one in each.attributions] for each in answer.explanations]

    def _asking(self, endpoint: Asked, instances: Sequence[Mapping[str, Any]]) -> Callable[[], Answer]:
        from google.protobuf import struct_pb2

        if endpoint.private:
            return lambda: self._ask_privately(endpoint, instances)
        values = [_value(struct_pb2, dict(item)) for item in instances]
        metadata = [(ENDPOINT_HEADER, ResourceName.parse(endpoint.name).resource_id)] if endpoint.address else ()

        def ask() -> Answer:
            # A request made of a dict would convert the values, and refuse them.
            client = self._client_at(endpoint.address)
            answer = client.predict(endpoint=endpoint.name, instances=values, retry=None, metadata=metadata)
            return Answer(predictions=list(answer.predictions), deployed_model_id=answer.deployed_model_id)

        return ask

    def _ask_privately(self, endpoint: Asked, instances: Sequence[Mapping[str, Any]]) -> Answer:
        """Ask a private endpoint at its address, by REST and with the token of every call, as Google's SDK does.

        Its certificate is one for all private endpoints, of a name and not of the address, and no authority has signed
        it: it is not held against any. The address is what Vertex AI itself says, in a network of one's own.
        """
        from google.api_core import exceptions
        from requests import exceptions as broken

        if not endpoint.address and endpoint.unreachable:
            raise _unreachable(endpoint)
        if not endpoint.address:
            raise exceptions.ServiceUnavailable(f"{endpoint.name} has no address in its network yet")
        body = json.dumps({"instances": [dict(item) for item in instances]})
        headers = {"Content-Type": "application/json"}
        try:
            said = self._private.post(f"https://{endpoint.address}/v1/{endpoint.name}:predict", body, headers=headers)
        except (broken.ConnectionError, broken.Timeout) as error:
            raise exceptions.ServiceUnavailable(f"{endpoint.address}: {type(error).__name__}") from error
        if not said.ok:
            raise exceptions.from_http_response(said)
        told = read_object(said.content, endpoint.name)
        return Answer(predictions=told["predictions"], deployed_model_id=told["deployedModelId"])

    @cached_property
    def _private(self) -> Foreign:
        from retraining.hooks.transports import private_session

        return private_session(self._session)

    def _client_at(self, address: str) -> PredictionServiceClient:
        """Return the client of an address; "": of the region's."""
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        if address not in self._clients:
            options = {"api_endpoint": address} if address else self._session.client_options
            kind = aiplatform_v1.PredictionServiceClient
            self._clients[address] = grpc_client(kind, self._session, client_options=options)
        return self._clients[address]


def _unreachable(endpoint: Asked) -> SettingsError:
    return SettingsError(
        f"{endpoint.name}, RETRAINING_ENDPOINT_NETWORK",
        f"it has no address here: {endpoint.unreachable}",
        "one in RETRAINING_ENDPOINT_NETWORK, which Vertex AI makes by a service connection policy (gcp-vertexai)",
        "Name a network of the endpoint's that the workers reach; where Vertex AI could not connect it, let a network "
        "administrator make the policy (docs/composer.md#private-endpoints), undeploy what is on the endpoint, and "
        "clear the task: no failed connection is tried again while something is deployed",
    )


def _attribution(message: AttributionMessage) -> Attribution:
    shown = message.output_display_name or (f"{message.output_index[0]}" if message.output_index else "")
    return Attribution(
        output=f"{message.output_name} of {shown}" if shown else message.output_name,
        answer=message.instance_output_value,
        baseline=message.baseline_output_value,
        features={name: float(added) for name, added in message.feature_attributions.items()},
        error=message.approximation_error,
    )


def _value(struct_pb2: Any, value: object) -> Any:  # noqa: ANN401 - protobuf's Value; json_format would refuse NaN
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        fields = {key: _value(struct_pb2, item) for key, item in value.items()}
        return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))
    if isinstance(value, list | tuple):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_value(struct_pb2, item) for item in value]))
    return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
