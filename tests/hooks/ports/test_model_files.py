"""Stored models: brought to another folder inside the service, file by file, each once."""

from __future__ import annotations

import uuid

FILES = {"saved_model.pb": b"graph", "variables/variables.index": b"index", "variables/variables.data": b"\x00" * 5000}


def store(cloud, folder: str) -> None:
    """Store a model."""
    for path, data in FILES.items():
        cloud.artifacts.write_once(f"{folder}/{path}", data)


def test_a_model_is_copied_to_another_bucket(stage, cloud, folder) -> None:
    """With all folders below it, and nothing beside it; a console's placeholder is no file."""
    bucket, _ = stage.make_places(f"copies-{uuid.uuid4().hex[:12]}", "us-central1")
    store(cloud, f"{folder}/model")
    cloud.artifacts.write_once(f"{folder}/model2/other", b"another model's")
    target = f"gs://{bucket}/jobs/model"
    assert cloud.model_files.copy_missing(f"{folder}/model", target) == 3
    assert {uri: cloud.artifacts.read_object(uri) for uri in cloud.artifacts.list_uris(target)} == {
        f"{target}/{path}": data for path, data in FILES.items()
    }
    assert cloud.model_files.digest(target) == cloud.model_files.digest(f"{folder}/model")


def test_what_is_there_stays_and_is_not_copied_again(cloud, folder) -> None:
    """So that a copy that was cut off goes on; whether the whole is right, the digest tells."""
    store(cloud, f"{folder}/model")
    cloud.artifacts.write_once(f"{folder}/copy/saved_model.pb", b"somebody else's")
    assert cloud.model_files.copy_missing(f"{folder}/model", f"{folder}/copy") == 2
    generations = [item.generation for item in cloud.objects.walk(f"{folder}/copy")]
    assert cloud.model_files.copy_missing(f"{folder}/model", f"{folder}/copy") == 0
    assert [item.generation for item in cloud.objects.walk(f"{folder}/copy")] == generations
    assert cloud.artifacts.read_object(f"{folder}/copy/saved_model.pb") == b"somebody else's"
    assert cloud.model_files.digest(f"{folder}/copy") != cloud.model_files.digest(f"{folder}/model")


def test_of_nothing_nothing_is_copied(cloud, folder) -> None:
    assert cloud.model_files.copy_missing(f"{folder}/none", f"{folder}/copy") == 0
    assert cloud.model_files.digest(f"{folder}/copy") is None
