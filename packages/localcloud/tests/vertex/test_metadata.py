"""Metadata stores and contexts, through Google's client: made, changed by etag, made children, listed, refused."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

EXPERIMENT, RUN = "system.Experiment", "system.ExperimentRun"


@pytest.fixture(scope="module")
def store(api) -> str:
    """A store of these tests' own."""
    return make_store(api, f"store-{uuid.uuid4().hex[:8]}")


def make_store(api, store_id: str) -> str:
    """Make a store; give its name."""
    request = {"parent": api.parent, "metadata_store": v1.MetadataStore(), "metadata_store_id": store_id}
    return str(api.metadata.create_metadata_store(request).result(timeout=10).name)


def make(api, store: str, schema: str = RUN, **fields: Any) -> v1.Context:
    """A context of a name of its own."""
    context = {"schema_title": schema, "display_name": "shown", **fields}
    return api.metadata.create_context(parent=store, context=context, context_id=f"c-{uuid.uuid4().hex[:8]}")


def listed(api, store: str, expression: str) -> list[str]:
    """Names by a filter."""
    request = {"parent": store, "filter": expression}
    return [each.name for each in api.metadata.list_contexts(request=request)]


def add(api, context: v1.Context, *artifacts: str) -> None:
    """Make artifacts a context's."""
    api.metadata.add_context_artifacts_and_executions(context=context.name, artifacts=list(artifacts))


def artifacts_of(api, context: v1.Context) -> list[str]:
    """Names of a context's artifacts."""
    return [each.name for each in api.metadata.query_context_lineage_subgraph(context=context.name).artifacts]


def test_a_store_is_there_once(api, store):
    assert api.metadata.get_metadata_store(name=store).name == store
    assert store in [each.name for each in api.metadata.list_metadata_stores(parent=api.parent)]
    with pytest.raises(exceptions.AlreadyExists):
        make_store(api, store.rsplit("/", 1)[1])


def test_a_context_is_kept_as_it_was_given(api, store):
    made = make(api, store, metadata={"_params": {"n": 3, "t": "x"}, "on": True}, labels={"team": "a"})
    found = api.metadata.get_context(name=made.name)
    assert found == made
    assert dict(found.metadata["_params"]) == {"n": 3.0, "t": "x"}
    assert (found.schema_version, found.labels["team"], found.metadata["on"]) == ("0.0.1", "a", True)
    assert found.create_time == found.update_time


def test_its_id_is_the_callers_and_there_once(api, store):
    with ThreadPoolExecutor(8) as pool:
        context = {"schema_title": RUN}
        asked = [
            pool.submit(api.metadata.create_context, parent=store, context=context, context_id="just-one")
            for _ in range(8)
        ]
    errors = [one.exception() for one in asked]
    assert errors.count(None) == 1
    assert all(isinstance(error, exceptions.AlreadyExists) for error in errors if error)


def test_an_update_replaces_what_it_names_if_nobody_was_faster(api, store):
    made = make(api, store, metadata={"a": 1, "b": 2}, description="before")
    older = api.metadata.get_context(name=made.name)
    made.metadata, made.description = {"a": 2}, "after"
    changed = api.metadata.update_context(context=made, update_mask={"paths": ["metadata"]})
    assert (dict(changed.metadata), changed.description) == ({"a": 2.0}, "before")
    assert int(changed.etag) > int(older.etag)
    with pytest.raises(
        exceptions.Aborted, match=r"Specified Context `etag`: `\d+` does not match server `etag`: `\d+`"
    ):
        api.metadata.update_context(request={"context": older})
    older.etag = ""  # whatever is there
    assert dict(api.metadata.update_context(request={"context": older}).metadata) == {"a": 1.0, "b": 2.0}


def test_children_are_found_by_their_parent(api, store):
    parent, child, other = make(api, store, EXPERIMENT), make(api, store), make(api, store)
    longer = api.metadata.create_context(
        parent=store, context={"schema_title": EXPERIMENT}, context_id=f"{parent.name.rsplit('/', 1)[1]}-2"
    )
    for _ in range(2):
        api.metadata.add_context_children(context=parent.name, child_contexts=[child.name])
    api.metadata.add_context_children(context=longer.name, child_contexts=[other.name])
    assert list(api.metadata.get_context(name=child.name).parent_contexts) == [parent.name]
    assert listed(api, store, f'schema_title="{RUN}" AND parent_contexts:"{parent.name}"') == [child.name]
    assert listed(api, store, f'schema_title="{EXPERIMENT}" AND parent_contexts:"{parent.name}"') == []
    api.metadata.delete_context(name=parent.name).result(timeout=10)
    assert list(api.metadata.get_context(name=child.name).parent_contexts) == []


def test_nobody_is_above_itself(api, store):
    upper, lower = make(api, store), make(api, store)
    api.metadata.add_context_children(context=upper.name, child_contexts=[lower.name])
    for parent, child in ((lower, upper), (upper, upper)):
        with pytest.raises(exceptions.InvalidArgument, match="its own parent"):
            api.metadata.add_context_children(context=parent.name, child_contexts=[child.name])


@pytest.mark.parametrize(
    ("changes", "context_id", "said"),
    [
        ({}, "no", "Invalid ID"),
        ({}, "Upper-Case", "Invalid ID"),
        ({"schema_title": "my.Schema"}, "fine", "no schema 'my.Schema'"),
        ({"schema_version": "9"}, "fine", "no version '9'"),
        ({"metadata": {"long": "x" * 200_001}}, "fine", "at most 200000"),
        ({"labels": {"A": "b"}}, "fine", "Label key 'A'"),
    ],
    ids=["short id", "upper case", "schema", "version", "size", "label"],
)
def test_what_the_service_does_not_take_is_named(api, store, changes, context_id, said):
    with pytest.raises(exceptions.InvalidArgument, match=said):
        api.metadata.create_context(parent=store, context={"schema_title": RUN, **changes}, context_id=context_id)


def test_what_is_not_there_is_not_found(api, store):
    gone = f"{api.parent}/metadataStores/gone-store"
    with pytest.raises(exceptions.NotFound, match="MetadataStore"):
        api.metadata.create_context(parent=gone, context={"schema_title": RUN}, context_id="fine")
    with pytest.raises(exceptions.NotFound, match="MetadataStore"):
        list(api.metadata.list_contexts(parent=gone))
    with pytest.raises(exceptions.NotFound, match="Artifact"):
        api.metadata.get_artifact(name=f"{store}/artifacts/a-tb-run")
    assert list(api.metadata.list_executions(parent=store)) == []
    with pytest.raises(exceptions.NotFound, match="Artifact"):
        add(api, make(api, store), f"{store}/artifacts/nothing")


def test_what_is_not_offered_is_refused_by_name(api, store):
    with pytest.raises(exceptions.MethodNotImplemented, match="CreateExecution"):
        api.metadata.create_execution(parent=store, execution={"display_name": "a"})
    with pytest.raises(exceptions.MethodNotImplemented, match="allow_missing"):
        api.metadata.update_context(request={"context": {"name": f"{store}/contexts/new-one"}, "allow_missing": True})


def test_a_context_has_artifacts_each_once(api, store):
    """By an id that is there once; a context that is made anew under its old name has none."""
    context = make(api, store)
    artifact = {"schema_title": "google.VertexTensorboardRun", "uri": "https://x", "metadata": {"resourceName": "y"}}
    made = api.metadata.create_artifact(parent=store, artifact=artifact, artifact_id=f"a-{uuid.uuid4().hex[:8]}")
    with pytest.raises(exceptions.AlreadyExists):
        api.metadata.create_artifact(parent=store, artifact=artifact, artifact_id=made.name.rsplit("/", 1)[1])
    assert artifacts_of(api, context) == []
    for _ in range(2):
        add(api, context, made.name, made.name)
    assert artifacts_of(api, context) == [made.name]
    assert [each.name for each in api.metadata.list_artifacts({"parent": store, "filter": 'uri="https://x"'})] == [
        made.name
    ]
    api.metadata.delete_context(name=context.name).result(timeout=10)
    api.metadata.create_context(parent=store, context={"schema_title": RUN}, context_id=context.name.rsplit("/", 1)[1])
    assert artifacts_of(api, context) == []
    assert api.metadata.get_artifact(name=made.name).metadata["resourceName"] == "y"


def test_an_artifact_is_changed_if_nobody_was_faster_and_deleted_everywhere(api, store):
    context = make(api, store)
    made = api.metadata.create_artifact(parent=store, artifact={"schema_title": "system.Model"})
    add(api, context, made.name)
    made.uri = "gs://b/m"
    changed = api.metadata.update_artifact(artifact=made, update_mask={"paths": ["uri"]})
    assert changed.uri == "gs://b/m"
    with pytest.raises(exceptions.Aborted, match="Artifact `etag`"):
        api.metadata.update_artifact(request={"artifact": made})
    api.metadata.delete_artifact(name=made.name).result(timeout=10)
    assert artifacts_of(api, context) == []
    with pytest.raises(exceptions.InvalidArgument, match="no schema 'x'"):
        api.metadata.create_artifact(parent=store, artifact={"schema_title": "x"})


def test_rest_answers_alike(api, store, rest):
    made = make(api, store, metadata={"_metrics": {"auc": 0.5}})
    found = rest("GET", f"/v1/{made.name}").json()
    assert (found["schemaTitle"], found["metadata"]) == (RUN, {"_metrics": {"auc": 0.5}})
