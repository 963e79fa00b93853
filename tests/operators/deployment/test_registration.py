"""What a registration leaves beside the version."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.scenes.deployment import Scene, answered, deploy_at_last, example, register


def test_the_version_points_to_schemata_of_its_signature(make_run: Any) -> None:
    """In the run's folder, one file for each part of a request and its answer."""
    scene = Scene()
    uploads = []
    scene.cloud.registry.start_upload = record_uploads(scene.cloud.registry.start_upload, uploads)
    register(scene, make_run())
    (upload,) = uploads
    names = ("instance", "prediction", "parameters")
    assert upload.schema_uris == {name: f"{scene.folder}/schemata/{name}.yaml" for name in names}
    schemata = {name: yaml.safe_load(scene.cloud.artifacts.objects[uri]) for name, uri in upload.schema_uris.items()}
    assert set(schemata["instance"]["properties"]) == set(scene.report["signature"]["inputs"])
    assert schemata["prediction"] == {"type": "number", "format": "float"}


def record_uploads(real: Any, uploads: list[Any]) -> Any:
    """The call, which keeps what is uploaded."""

    def called(model: str, upload: Any) -> Any:
        uploads.append(upload)
        return real(model, upload)

    return called


def test_a_version_has_its_card_from_its_registration_on_and_the_approval_at_the_end(make_run: Any) -> None:
    """Purpose and owner are the spec's; a deployment that is tried again writes the same again."""
    scene, run = Scene(), make_run()
    register(scene, run)
    spec, card = scene.read("plan")["spec"], scene.read("model_card")
    assert (card["purpose"], card["owner"], card["licence"]) == (spec["description"], spec["owner"], None)
    assert card["version_name"].endswith("/models/flight_delays@1")
    assert card["metrics"] == scene.read("evaluation")["challenger"]["metrics"]
    assert card["approval"] is None
    approval = {"approved": True, "asked": True, "person": "ann", "answered": "2013-11-20T05:00:00Z", "words": "yes"}
    answered(scene, run, approval)
    deploy_at_last(scene, run, approval_task_id="approve")
    deployed = scene.read("model_card")
    assert deployed == card | {"approval": approval, "readiness": deployed["readiness"]}
    points = [{test["name"]: test["points"] for test in each["readiness"]["tests"]} for each in (card, deployed)]
    assert points[1] == {**points[0], "pipeline_test": 1.0}, "the run has ended, and nothing else became of it"
    assert (points[0]["pipeline_test"], points[0]["new_features"]) == (0.0, 1.0)
    assert card["readiness"]["run_key"] == card["run_key"]
    del scene.cloud.artifacts.objects[f"{scene.folder}/model_card.json"]
    deploy_at_last(scene, run, approval_task_id="approve")
    assert scene.read("model_card")["approval"] == approval


def registered(make_run: Any, **deployment: Any) -> Any:
    """What the registry is given of a run with these options of its endpoint."""
    scene, uploads = Scene(), []
    scene.deployment(**deployment)
    scene.put("statistics", example("statistics__two_features") | {"model": "flight_delays", "run_key": scene.run_key})
    scene.cloud.registry.start_upload = record_uploads(scene.cloud.registry.start_upload, uploads)
    register(scene, make_run())
    return uploads[0].explanation_spec


def test_the_version_is_explained_as_the_file_says(make_run: Any) -> None:
    """Every feature of its signature beside what is usual of it in the run's own statistics; without the key not."""
    told = registered(make_run, explanations={"paths": 20})
    assert told["parameters"] == {"sampled_shapley_attribution": {"path_count": 20}}
    features = {feature["name"] for feature in Scene().read("plan")["spec"]["features"]}
    assert set(told["metadata"]["inputs"]) == features & set(Scene().report["signature"]["inputs"]) != set()
    assert set(told["metadata"]["outputs"]) == {"score"}
    assert all(len(each["input_baselines"]) == 1 for each in told["metadata"]["inputs"].values())
    assert registered(make_run) is None
