"""The model registry through Google's client: models, versions, aliases, evaluations."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.protobuf import field_mask_pb2, json_format, struct_pb2

from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE


@pytest.fixture
def model(api, upload, request) -> str:
    """Name of a model with three versions, made for this test."""
    model_id = f"m_{abs(hash(request.node.nodeid)) % 10**10}"
    name = upload(model_id, labels={"v": "one"}).model
    upload(
        model_id, parent_model=name, version_aliases=["challenger"], labels={"v": "two"}, version_description="second"
    )
    upload(model_id, parent_model=name, labels={"v": "three"})
    return name


def versions_by_alias(api, name: str) -> dict[str, str]:
    return {
        alias: version.version_id
        for version in api.models.list_model_versions(name=name)
        for alias in version.version_aliases
    }


def test_first_version_is_the_default_one(api, upload, saved_model_uri):
    response = upload("first_steps", version_description="the first", labels={"run": "r1"})
    assert response.model == f"{api.parent}/models/first_steps"
    assert response.model_version_id == "1"
    model = api.models.get_model(name=response.model)
    assert (model.name, model.version_id, list(model.version_aliases)) == (response.model, "1", ["default"])
    assert (model.artifact_uri, model.container_spec.image_uri) == (saved_model_uri, SERVING_IMAGE)
    assert (model.display_name, model.version_description, dict(model.labels)) == (
        "first_steps",
        "the first",
        {"run": "r1"},
    )
    assert model.version_create_time
    assert model.etag
    assert list(model.supported_deployment_resources_types) == [v1.Model.DeploymentResourcesType.DEDICATED_RESOURCES]


def test_schemata_are_kept_as_they_were_given(api, upload):
    uris = {f"{what}_schema_uri": f"gs://local-retraining/{what}.yaml" for what in ("instance", "prediction")}
    stored = api.models.get_model(name=upload("described", predict_schemata=uris).model)
    assert stored.predict_schemata == v1.PredictSchemata(**uris)


def test_versions_count_up_and_are_found_by_id_and_alias(api, model):
    assert [version.version_id for version in api.models.list_model_versions(name=model)] == ["1", "2", "3"]
    assert api.models.get_model(name=model).version_id == "1"
    assert api.models.get_model(name=f"{model}@3").version_id == "3"
    assert api.models.get_model(name=f"{model}@challenger").version_id == "2"
    with pytest.raises(exceptions.NotFound):
        api.models.get_model(name=f"{model}@nobody")
    with pytest.raises(exceptions.NotFound):
        api.models.get_model(name=f"{model}@4")


def test_versions_are_listed_by_label_order_and_page(api, model):
    def ids(**request) -> list[str]:
        return [version.version_id for version in api.models.list_model_versions(request={"name": model, **request})]

    assert ids(filter='labels.v="two"') == ["2"]
    assert ids(filter="labels.v:* AND NOT labels.v=two") == ["1", "3"]
    assert ids(order_by="create_time") == ["1", "2", "3"]
    assert ids(order_by="create_time desc") == ["3", "2", "1"]
    assert ids(page_size=2) == ["1", "2", "3"]
    with pytest.raises(exceptions.InvalidArgument, match="order_by"):
        ids(order_by="colour")


def test_alias_given_to_another_version_moves(api, model):
    merged = api.models.merge_version_aliases(name=f"{model}@3", version_aliases=["challenger", "as-of-20131120"])
    assert set(merged.version_aliases) == {"challenger", "as-of-20131120"}
    assert versions_by_alias(api, model) == {"default": "1", "challenger": "3", "as-of-20131120": "3"}


def test_alias_is_removed_with_a_dash(api, model):
    api.models.merge_version_aliases(name=f"{model}@challenger", version_aliases=["champion", "-challenger"])
    assert versions_by_alias(api, model) == {"default": "1", "champion": "2"}
    api.models.merge_version_aliases(name=f"{model}@2", version_aliases=["-nobody", "both", "-both"])
    assert versions_by_alias(api, model) == {"default": "1", "champion": "2"}


def test_default_moves_but_is_never_removed(api, model):
    with pytest.raises(exceptions.InvalidArgument, match="exactly one default"):
        api.models.merge_version_aliases(name=f"{model}@1", version_aliases=["-default"])
    api.models.merge_version_aliases(name=f"{model}@3", version_aliases=["default"])
    assert api.models.get_model(name=model).version_id == "3"


@pytest.mark.parametrize("alias", ["3", "Champion", "a", "x_y", "ends-", "a" * 129, ""])
def test_malformed_aliases_are_refused(api, model, alias):
    with pytest.raises(exceptions.InvalidArgument, match="Invalid version alias"):
        api.models.merge_version_aliases(name=f"{model}@1", version_aliases=[alias])


def test_aliases_need_a_version(api, model):
    with pytest.raises(exceptions.InvalidArgument, match="has no version"):
        api.models.merge_version_aliases(name=model, version_aliases=["champion"])


def test_upload_takes_an_alias_from_another_version(api, upload, model):
    upload(model.rsplit("/", 1)[-1], parent_model=model, version_aliases=["challenger", "default"])
    assert versions_by_alias(api, model) == {"challenger": "4", "default": "4"}


def test_deleting_the_default_version_moves_the_alias_to_the_newest(api, model):
    api.models.delete_model_version(name=f"{model}@1").result(timeout=10)
    assert versions_by_alias(api, model) == {"challenger": "2", "default": "3"}


def test_only_version_and_version_ids_are_kept(api, upload, model):
    api.models.delete_model_version(name=f"{model}@3").result(timeout=10)
    assert upload(model.rsplit("/", 1)[-1], parent_model=model).model_version_id == "4"
    for version in ("1", "2"):
        api.models.delete_model_version(name=f"{model}@{version}").result(timeout=10)
    with pytest.raises(exceptions.FailedPrecondition, match="only one"):
        api.models.delete_model_version(name=f"{model}@4")
    api.models.delete_model(name=model).result(timeout=10)
    with pytest.raises(exceptions.NotFound):
        api.models.get_model(name=model)
    with pytest.raises(exceptions.NotFound):
        list(api.models.list_model_versions(name=model))


def test_model_and_version_are_updated_apart(api, model):
    def update(name: str, *paths: str, **fields) -> v1.Model:
        return api.models.update_model(
            model=v1.Model(name=name, **fields), update_mask=field_mask_pb2.FieldMask(paths=paths)
        )

    update(model, "description", "labels", description="for all", labels={"team": "a", "v": "all"})
    update(f"{model}@2", "version_description", version_description="for two")
    second, third = api.models.get_model(name=f"{model}@2"), api.models.get_model(name=f"{model}@3")
    assert (second.description, second.version_description) == ("for all", "for two")
    assert (third.description, third.version_description) == ("for all", "")
    assert dict(second.labels) == {"team": "a", "v": "two"}
    with pytest.raises(exceptions.FailedPrecondition, match="version_description"):
        update(model, "description", "version_description", description="x", version_description="y")
    with pytest.raises(exceptions.Aborted, match="etag"):
        update(model, "description", description="x", etag="old")


def test_models_are_listed_by_name_and_label(api, model):
    model_id = model.rsplit("/", 1)[-1]

    def find(filter: str) -> list[str]:
        return [seen.name for seen in api.models.list_models(request={"parent": api.parent, "filter": filter})]

    assert find(f"model={model_id}") == [model]
    assert find(f'display_name="{model_id}" AND labels.v=one') == [model]
    assert find(f'display_name="{model_id}" AND labels.v=two') == []


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        pytest.param(
            {"artifact_uri": "gs://local-retraining/vertex-tests/empty"},
            exceptions.FailedPrecondition,
            "empty or does not exist",
            id="no artifacts",
        ),
        pytest.param(
            {"artifact_uri": "gs://local-retraining/vertex-tests/saved-model/variables"},
            exceptions.FailedPrecondition,
            "saved_model.pb",
            id="no SavedModel",
        ),
        pytest.param(
            {"artifact_uri": "gs://no-such-bucket-here/x"}, exceptions.InvalidArgument, "does not exist", id="no bucket"
        ),
        pytest.param(
            {"predict_schemata": {"instance_schema_uri": "gs://no-such-bucket-here/instance.yaml"}},
            exceptions.InvalidArgument,
            "instance_schema_uri",
            id="no bucket of schemata",
        ),
        pytest.param({"container_spec": None}, exceptions.InvalidArgument, "serving container", id="no container"),
        pytest.param({"version_aliases": ["1"]}, exceptions.InvalidArgument, "Invalid version alias", id="alias"),
        pytest.param({"labels": {"A": "b"}}, exceptions.InvalidArgument, "Label key", id="label"),
        pytest.param({"display_name": ""}, exceptions.InvalidArgument, "display_name; Message: Required", id="no name"),
    ],
)
def test_what_cannot_be_served_is_not_uploaded(api, upload, fields, error, words):
    with pytest.raises(error, match=words):
        upload("never_uploaded", **fields)
    with pytest.raises(exceptions.NotFound):
        api.models.get_model(name=f"{api.parent}/models/never_uploaded")


@pytest.mark.parametrize("model_id", ["9lives", "-x", "Upper", "a" * 64, "dot.ted"])
def test_malformed_model_ids_are_refused(upload, model_id):
    with pytest.raises(exceptions.InvalidArgument, match="Invalid ID"):
        upload(model_id, display_name="x")


def test_taken_model_id_and_missing_parent_are_refused(api, upload, model):
    with pytest.raises(exceptions.AlreadyExists, match="set parent_model"):
        upload(model.rsplit("/", 1)[-1])
    with pytest.raises(exceptions.NotFound):
        upload("orphan", parent_model=f"{api.parent}/models/nobody")


def test_evaluations_are_kept_beside_their_version(api, model):
    metrics = struct_pb2.Value()
    json_format.ParseDict({"auRoc": 0.71, "logLoss": 0.4}, metrics)
    evaluation = v1.ModelEvaluation(
        display_name="duel",
        metrics=metrics,
        metrics_schema_uri="gs://google-cloud-aiplatform/schema/modelevaluation/classification_metrics_1.0.0.yaml",
    )
    kept = api.models.import_model_evaluation(parent=f"{model}@challenger", model_evaluation=evaluation)
    assert kept.name.startswith(f"{model}/evaluations/")
    assert api.models.get_model_evaluation(name=kept.name).metrics["auRoc"] == 0.71
    assert [seen.name for seen in api.models.list_model_evaluations(parent=f"{model}@2")] == [kept.name]
    assert list(api.models.list_model_evaluations(parent=model)) == []
    with pytest.raises(exceptions.InvalidArgument, match="metrics_schema_uri"):
        api.models.import_model_evaluation(parent=model, model_evaluation=v1.ModelEvaluation(metrics=metrics))


SCHEMA_URI = "gs://google-cloud-aiplatform/schema/modelevaluation/classification_metrics_1.0.0.yaml"


def make_slice(carrier: str, **changes) -> dict:
    spec = {"configs": {"carrier": {"value": {"string_value": carrier}}}}
    part = {"dimension": "slice", "value": f"carrier={carrier}", "slice_spec": spec}
    return {"slice_": part, "metrics_schema_uri": SCHEMA_URI, "metrics": {"auRoc": 0.7}, **changes}


def test_slices_are_kept_beside_their_evaluation_and_go_with_its_version(api, model):
    evaluation = {"display_name": "duel", "metrics": {"auRoc": 0.71}, "metrics_schema_uri": SCHEMA_URI}
    parent = api.models.import_model_evaluation(parent=f"{model}@2", model_evaluation=evaluation).name
    imported = api.models.batch_import_model_evaluation_slices(
        parent=parent, model_evaluation_slices=[make_slice("UA"), make_slice("AA")]
    ).imported_model_evaluation_slices
    listed = {part.name: part for part in api.models.list_model_evaluation_slices(parent=parent)}
    assert set(listed) == set(imported)
    first = api.models.get_model_evaluation_slice(name=imported[0])
    assert first.name.startswith(f"{parent}/slices/")
    assert (first.slice_.dimension, first.slice_.value) == ("slice", "carrier=UA")
    assert first.slice_.slice_spec.configs["carrier"].value.string_value == "UA"
    assert first.metrics["auRoc"] == 0.7
    assert first.create_time
    api.models.delete_model_version(name=f"{model}@2").result()
    for lost, get in (
        (parent, api.models.get_model_evaluation),
        (imported[0], api.models.get_model_evaluation_slice),
    ):
        with pytest.raises(exceptions.NotFound):
            get(name=lost)


def test_slices_that_the_service_does_not_take_are_refused_together(api, model):
    evaluation = {"metrics": {"auRoc": 0.71}, "metrics_schema_uri": SCHEMA_URI}
    parent = api.models.import_model_evaluation(parent=model, model_evaluation=evaluation).name

    def send(*slices: dict, to: str = parent) -> None:
        api.models.batch_import_model_evaluation_slices(parent=to, model_evaluation_slices=list(slices))

    with pytest.raises(exceptions.InvalidArgument, match=r"has 51 slices\. Expected at most 50"):
        send(*(make_slice(str(number)) for number in range(51)))
    with pytest.raises(exceptions.InvalidArgument, match=r"model_evaluation_slices\[1\] has metrics without"):
        send(make_slice("UA"), make_slice("AA", metrics_schema_uri=""))
    with pytest.raises(exceptions.InvalidArgument, match="metrics_schema_uri"):
        send(make_slice("UA", metrics_schema_uri="https://example.com/schema.yaml"))
    with pytest.raises(exceptions.NotFound):
        send(make_slice("UA"), to=f"{model}/evaluations/1")
    assert list(api.models.list_model_evaluation_slices(parent=parent)) == []
