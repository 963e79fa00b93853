"""Long-running operations on the service's host, over gRPC and REST."""

from __future__ import annotations

import ast
import contextlib
import uuid
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.longrunning import operations_pb2

from localcloud import vertex
from localcloud.vertex.wire.methods import load_methods


@pytest.fixture
def slow_operation(api, add_fault):
    """An operation that takes half a minute unless it is cancelled: the creation of an endpoint."""
    add_fault("EndpointService.CreateEndpoint/operation", "delay", seconds=30)
    future = api.endpoints.create_endpoint(
        parent=api.parent, endpoint={"display_name": "slow"}, endpoint_id=f"slow-{uuid.uuid4().hex[:8]}"
    )
    yield future
    with contextlib.suppress(exceptions.NotFound):
        api.endpoints.cancel_operation({"name": future.operation.name})


def test_operation_carries_the_real_types(api):
    endpoint_id = f"typed-{uuid.uuid4().hex[:8]}"
    future = api.endpoints.create_endpoint(
        parent=api.parent, endpoint={"display_name": "typed"}, endpoint_id=endpoint_id
    )
    assert isinstance(future.result(timeout=10), v1.Endpoint)
    assert isinstance(future.metadata, v1.CreateEndpointOperationMetadata)
    assert future.metadata.generic_metadata.create_time <= future.metadata.generic_metadata.update_time
    assert future.operation.name.startswith(f"{api.parent}/endpoints/{endpoint_id}/operations/")


def test_operation_is_read_waited_for_and_cancelled(api, slow_operation):
    name = slow_operation.operation.name
    assert not api.endpoints.get_operation({"name": name}).done
    request = operations_pb2.WaitOperationRequest(name=name)
    request.timeout.FromMilliseconds(100)
    # The client library has no deserialiser for this method: it gives the bytes.
    assert not operations_pb2.Operation.FromString(api.endpoints.wait_operation(request)).done
    with pytest.raises(exceptions.FailedPrecondition, match="still running"):
        api.endpoints.delete_operation({"name": name})
    api.endpoints.cancel_operation({"name": name})
    with pytest.raises(exceptions.Cancelled):
        slow_operation.result(timeout=10)
    endpoint = name.split("/operations/", maxsplit=1)[0]
    with pytest.raises(exceptions.NotFound):
        api.endpoints.get_endpoint(name=endpoint)
    api.endpoints.delete_operation({"name": name})
    with pytest.raises(exceptions.NotFound):
        api.endpoints.get_operation({"name": name})


def test_operations_are_listed_below_a_resource_and_a_location(api, slow_operation):
    name = slow_operation.operation.name
    endpoint = name.split("/operations/", maxsplit=1)[0]
    assert [seen.name for seen in api.endpoints.list_operations({"name": endpoint}).operations] == [name]
    listed = api.endpoints.list_operations({"name": api.parent, "filter": "done=false"}).operations
    assert [seen.name for seen in listed] == [name]
    finished = api.endpoints.list_operations({"name": api.parent, "filter": "done=true", "page_size": 2})
    assert all(seen.done for seen in finished.operations)


def test_operations_over_rest(rest, slow_operation):
    name = slow_operation.operation.name
    assert "done" not in rest("GET", f"/v1/{name}").json()
    endpoint = name.split("/operations/", maxsplit=1)[0]
    assert [seen["name"] for seen in rest("GET", f"/v1/{endpoint}/operations").json()["operations"]] == [name]
    assert rest("POST", f"/v1/{name}:cancel", {}).status_code == 200
    done = rest("POST", f"/v1/{name}:wait", {"timeout": "10s"}).json()
    assert done["error"]["code"] == 1
    assert rest("DELETE", f"/v1/{name}").json() == {}
    assert rest("GET", f"/v1/{name}").status_code == 404


def test_operation_ends_with_the_error_of_its_work(api, add_fault):
    add_fault(
        "EndpointService.CreateEndpoint/operation", "error", code="RESOURCE_EXHAUSTED", message="no machines left"
    )
    with pytest.raises(exceptions.ResourceExhausted, match="no machines left"):
        api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "never"}).result(timeout=10)


def test_work_goes_by_the_name_of_its_call():
    """Faults meet it as `<call>/operation`, so each name is that of the call whose handler begins the work."""
    handlers = {method.full_name: method.handler_name for method in load_methods()}
    begun = [
        (function.name, ast.literal_eval(call.args[0]))
        for path in Path(vertex.__file__).parent.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "self._operations.start"
        and isinstance(call.args[0], ast.Constant)  # that of a family of jobs is put together: test_families
    ]
    assert begun
    assert [handlers.get(name) for _, name in begun] == [function for function, _ in begun]
