"""What a registration leaves beside the version."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.scenes.deployment import Scene, register


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
