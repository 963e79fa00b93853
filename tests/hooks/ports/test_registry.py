"""Versions of a model, and its aliases."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import InvalidArgument

from retraining.core.documents import Evaluation
from retraining.core.errors import ConflictError
from retraining.core.promotion.model_evaluations import model_evaluation, slice_batches
from retraining.operators.deployment.version_upload import drop_duplicates
from tests.support.contracts import EXAMPLES
from tests.support.scenes.port_stage import make_upload, until

KEYS = ("20131120t030000z-000000000001", "20131121t030000z-000000000002")


@pytest.fixture
def upload(cloud, folder, unique):
    """Registers a version of this test's model for a run, and waits for it."""

    def do(key: str):
        cloud.registry.start_upload(unique, make_upload(cloud, folder, unique, key))
        return until(cloud, lambda: cloud.registry.find_by_run(unique, key))

    return do


def test_a_model_that_is_not_there_has_no_versions(cloud, unique) -> None:
    """None, not an error."""
    assert cloud.registry.find_by_alias(unique, "champion") is None
    assert cloud.registry.find_by_run(unique, KEYS[0]) is None
    assert cloud.registry.versions_of_run(unique, KEYS[0]) == []
    assert cloud.registry.list_versions(unique) == cloud.registry.running_operations(unique) == []


def test_each_run_has_a_version_of_the_same_model(cloud, upload, unique) -> None:
    """The first upload makes the model; a version carries the run's labels and the environment's."""
    first, second = upload(KEYS[0]), upload(KEYS[1])
    assert (first.version_id, second.version_id) == ("1", "2")
    assert second.model_name == first.model_name
    assert second.version_name.endswith(f"/models/{unique}@2")
    assert cloud.registry.find_by_run(unique, KEYS[1]) == second
    assert second.artifact_uri.endswith(f"/{KEYS[1]}/model")
    assert sorted(version.run_key for version in cloud.registry.list_versions(unique)) == sorted(KEYS)
    assert second.labels == {"retraining-run": KEYS[1], "retraining-model": unique, **cloud.environment.labels}


def test_two_equal_uploads_make_two_versions(cloud, upload, folder, unique) -> None:
    """The service has no request id. The operation can be looked at; the oldest version is the run's."""
    upload(KEYS[0])
    operation = cloud.registry.start_upload(unique, make_upload(cloud, folder, unique, KEYS[0]))
    until(cloud, lambda: len(cloud.registry.versions_of_run(unique, KEYS[0])) == 2)
    until(cloud, lambda: cloud.registry.operation(operation.name).done)
    assert cloud.registry.operation(operation.name).error == ""
    assert cloud.registry.operation(f"{operation.name}000") is None
    assert cloud.registry.running_operations(unique) == []
    assert [version.version_id for version in cloud.registry.versions_of_run(unique, KEYS[0])] == ["1", "2"]
    assert cloud.registry.find_by_run(unique, KEYS[0]).version_id == "1"
    assert drop_duplicates(cloud, unique, KEYS[0]).version_id == "1"
    until(cloud, lambda: len(cloud.registry.list_versions(unique)) == 1)


def test_the_first_version_is_the_default_one(cloud, upload, unique) -> None:
    """Until another is given the alias; it cannot be taken away."""
    first, second = upload(KEYS[0]), upload(KEYS[1])
    assert (first.aliases, second.aliases) == (("default",), ())
    with pytest.raises(InvalidArgument, match="default"):
        cloud.registry.merge_aliases(first, ["-default"])
    assert cloud.registry.merge_aliases(second, ["default"]).aliases == ("default",)
    assert cloud.registry.find_by_alias(unique, "default").version_id == "2"
    assert cloud.registry.find_by_run(unique, KEYS[0]).aliases == ()


def test_an_alias_moves_only_from_where_it_was_seen(cloud, upload, unique) -> None:
    """Compare-and-set: a stale expectation is a conflict, the own version is not."""
    first, second = upload(KEYS[0]), upload(KEYS[1])
    assert cloud.registry.find_by_alias(unique, "champion") is None
    cloud.registry.move_alias(unique, "champion", first, None)
    with pytest.raises(ConflictError, match=r"alias champion.*version 1"):
        cloud.registry.move_alias(unique, "champion", second, None)
    cloud.registry.move_alias(unique, "champion", first, None)
    assert set(cloud.registry.move_alias(unique, "champion", second, "1").aliases) == {"champion"}
    assert cloud.registry.find_by_alias(unique, "champion").version_id == "2"
    with pytest.raises(ConflictError, match=r"alias challenger"):
        cloud.registry.move_alias(unique, "challenger", second, "1")


def test_aliases_are_given_and_taken_in_one_call(cloud, upload, unique) -> None:
    """One that another version has moves here; one that nobody has is not missed."""
    first, second = upload(KEYS[0]), upload(KEYS[1])
    cloud.registry.merge_aliases(second, ["champion", "challenger"])
    merged = cloud.registry.merge_aliases(second, ["-champion", "previous", "-absent"])
    assert set(merged.aliases) == {"challenger", "previous"}
    assert set(cloud.registry.merge_aliases(first, ["previous"]).aliases) == {"default", "previous"}
    assert set(cloud.registry.find_by_run(unique, KEYS[1]).aliases) == {"challenger"}


def test_a_models_only_version_stays(cloud, upload, unique) -> None:
    """Any other goes, for good: its number does not come again, and `default` goes to the newest left."""
    first = upload(KEYS[0])
    assert not cloud.registry.delete_version(first)
    second = upload(KEYS[1])
    cloud.registry.merge_aliases(second, ["default"])
    assert cloud.registry.delete_version(second)
    until(cloud, lambda: len(cloud.registry.list_versions(unique)) == 1)
    assert cloud.registry.delete_version(second)
    assert cloud.registry.find_by_alias(unique, "default").version_id == "1"
    assert upload(KEYS[1]).version_id == "3"


def test_an_evaluation_and_its_slices_stand_beside_their_version(cloud, upload) -> None:
    """Found again by the display name, of this version alone; slices by their values."""
    first, second = upload(KEYS[0]), upload(KEYS[1])
    evaluation = Evaluation.parse((EXAMPLES / "evaluation__duel.json").read_bytes())
    assert cloud.registry.find_evaluation(second, evaluation.run_key) is None
    name = cloud.registry.import_evaluation(second, model_evaluation(evaluation, "gs://bucket/evaluation.json"))
    assert cloud.registry.find_evaluation(second, evaluation.run_key) == name
    assert cloud.registry.find_evaluation(second, "another") is None
    assert cloud.registry.find_evaluation(first, evaluation.run_key) is None
    assert cloud.registry.imported_slices(name) == set()
    (batch,) = slice_batches(evaluation, set())
    cloud.registry.import_slices(name, batch[:1])
    (rest,) = slice_batches(evaluation, cloud.registry.imported_slices(name))
    assert len(rest) == len(batch) - 1
    cloud.registry.import_slices(name, rest)
    assert list(slice_batches(evaluation, cloud.registry.imported_slices(name))) == []
    with pytest.raises(InvalidArgument, match="51 slices"):
        cloud.registry.import_slices(name, batch[:1] * 51)
