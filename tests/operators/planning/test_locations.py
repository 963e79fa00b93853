"""What `plan` does about a bucket or a dataset that is not where the jobs run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operators.data.test_hash_split import QUERY, SPEC
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud that does not say where bucket and dataset are, as to an account that may not look."""
    return FakeCloud()


@pytest.fixture
def night(make_run, include: Path, cloud: FakeCloud) -> DataRun:
    """A run in it."""
    made = DataRun(include, "placed", make_run(dag_id="retrain__placed"), SPEC, cloud=cloud.connect)
    made.write(QUERY)
    return made


def test_a_bucket_elsewhere_is_told_and_the_run_goes_on(night, cloud, capsys) -> None:
    night.plan()
    assert "crosses regions" not in capsys.readouterr().out
    cloud.artifacts.locations[cloud.settings.bucket] = ("EU",)
    assert night.plan()["model"] == "placed"
    assert f"bucket {cloud.settings.bucket} is in EU" in capsys.readouterr().out


def test_images_elsewhere_are_told_with_their_way_out(night, cloud, capsys) -> None:
    """The export reads them across regions."""
    image = "features: [{{name: photo, kind: image, height: 8, width: 8, objects: gs://my-photos/cats/}}]"
    spec = SPEC.replace("features: [{{name: size, kind: numeric}}]", image).replace("model: dense", "model: cnn")
    night = DataRun(night.include, "placed", night._run, spec, cloud.connect)
    night.write(QUERY)
    cloud.artifacts.locations["my-photos"] = ("EU",)
    assert night.plan()["model"] == "placed"
    found = capsys.readouterr().out
    assert "my-photos is in EU" in found
    assert "Copy the images" in found


def test_a_dataset_elsewhere_ends_the_run_before_its_plan_is_written(night, cloud) -> None:
    cloud.warehouse.locations[cloud.settings.dataset] = "EU"
    with pytest.raises(AirflowFailException, match=rf"dataset {cloud.settings.dataset}: location EU"):
        night.plan()
    assert not [uri for uri in cloud.artifacts.objects if uri.endswith("/plan.json")]


def test_files_that_no_load_of_the_region_reads_end_it_too(night, cloud) -> None:
    """A multi-region that holds it is near enough."""
    files = "{{uris: gs://my-files/*.csv, format: csv, columns: [{{name: id, type: STRING}}]}}"
    night = DataRun(
        night.include, "placed", night._run, SPEC.replace("  key: id", f"  key: id\n  files: {files}"), cloud.connect
    )
    night.write(QUERY)
    cloud.artifacts.locations["my-files"] = ("US",)
    assert night.plan()["model"] == "placed"
    cloud.artifacts.locations["my-files"] = ("EU",)
    with refuses(AirflowFailException, where="bucket my-files", found="EU", expected="us-central1"):
        night.plan()
