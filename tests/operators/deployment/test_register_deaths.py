"""The process dies at every call of a registration, or two are at it at once: a run has one version."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from retraining.core.errors import ConflictError, JobError
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_upload import drop_duplicates
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.deployment import Scene


class Slow:
    """Lets uploads of a scene end only when somebody has waited long enough.

    Args:
        scene: Whose registry.
        seconds: How long an upload takes.
    """

    def __init__(self, scene: Scene, seconds: float) -> None:
        registry: Any = scene.cloud.registry
        self._registry, self._clock, self._seconds = registry, scene.cloud.clock, seconds
        self._registry.ready = False
        self._real, self._registry.start_upload = self._registry.start_upload, self._start
        self._look, self._registry.versions_of_run = self._registry.versions_of_run, self._versions
        self._began: float | None = None

    def _start(self, *args: Any) -> Any:
        self._began = self._clock.monotonic()
        return self._real(*args)

    def _versions(self, *args: Any) -> Any:
        self._registry.ready = self._began is not None and self._clock.monotonic() >= self._began + self._seconds
        return self._look(*args)


def register(run: Any, scene: Scene, cloud: Any) -> Any:
    """A try of the task."""
    return run.execute(RegisterModelOperator(task_id="register", run_uri=scene.folder, cloud=cloud.connect))


def require_one_evaluation(scene: Scene, at: int) -> None:
    """The version has its evaluation once, and each slice once."""
    registry = scene.cloud.registry
    assert [found["display_name"] for found in registry.evaluations.values()] == [scene.run_key], at
    (slices,) = registry.slices.values()
    values = [item["slice_"]["value"] for item in slices]
    expected = [f"{item['column']}={item['value']}" for item in scene.read("evaluation")["challenger"]["slices"]]
    assert values == expected, at


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_anywhere_makes_no_second_version(make_run, after: bool) -> None:
    """The next try waits for the upload that is under way, and finds its version."""
    for at in range(1, 100):
        scene, run = Scene(), make_run()
        Slow(scene, 30)
        cloud = DyingCloud(scene.cloud, at, after=after)
        try:
            register(run, scene, cloud)
        except Death:
            scene.cloud.clock.sleep(30)
            assert register(run, scene, scene.cloud)["version_name"].endswith("@1"), at
            assert len(scene.cloud.registry.uploads) == 1, f"call {at}: {cloud.calls[-1]}"
            assert list(scene.cloud.registry.versions) == ["1"], at
            require_one_evaluation(scene, at)
        else:
            assert at > 10
            return
    raise AssertionError("a registration has more calls than that")


def test_two_workers_at_once_make_one_version(make_run) -> None:
    """A second worker does all in the middle of the first one, at every call.

    Where the first is held up for minutes just before its create, there are two uploads: the older version stays.
    """
    for at in range(1, 100):
        scene, run = Scene(), make_run()
        Slow(scene, 5)
        cloud = DyingCloud(scene.cloud, at, instead=lambda scene=scene, run=run: register(run, scene, scene.cloud))
        with contextlib.suppress(ConflictError):
            register(run, scene, cloud)
        scene.cloud.clock.sleep(5)
        assert register(run, scene, scene.cloud)["version_name"].endswith("@1")
        held_up = len(cloud.calls) >= at and cloud.calls[at - 1] == "start_upload"
        assert len(scene.cloud.registry.uploads) == (2 if held_up else 1), at
        assert drop_duplicates(scene.cloud, "flight_delays", scene.run_key).version_id == "1"
        assert list(scene.cloud.registry.versions) == ["1"]
        if len(cloud.calls) < at:
            return
    raise AssertionError("a registration has more calls than that")


def test_of_two_versions_of_a_run_the_first_counts(make_run) -> None:
    """Made by an upload that nobody knew of any more: the other is deleted, unless an alias points to it."""
    scene, run = Scene(), make_run()
    for aliases in ((), (), ("mine",)):
        scene.cloud.registry.add(scene.run_key, *aliases)
    assert register(run, scene, scene.cloud)["version_name"].endswith("@1")
    assert list(scene.cloud.registry.versions) == ["1", "3"]


def test_an_upload_without_an_answer_is_looked_for_before_another(make_run) -> None:
    """For five minutes; an upload that the service refuses is not waited for."""
    scene, run = Scene(), make_run()
    registry, clock = scene.cloud.registry, scene.cloud.clock
    real = registry.start_upload
    registry.start_upload = lambda *_: (_ for _ in ()).throw(ConnectionError("no answer"))
    with pytest.raises(AirflowRescheduleException):
        register(run, scene, scene.cloud)
    registry.start_upload = real
    began = clock.monotonic()
    register(run, scene, scene.cloud)
    assert clock.monotonic() - began >= 300
    assert len(registry.uploads) == 1


def test_a_failed_upload_says_why_and_may_be_tried_again(make_run) -> None:
    """With the service's words."""
    scene, run = Scene(), make_run()
    scene.cloud.registry.ready, scene.cloud.registry.error = False, "Model directory is empty"
    with pytest.raises(JobError, match="Model directory is empty"):
        register(run, scene, scene.cloud)
    scene.cloud.registry.ready, scene.cloud.registry.error = True, ""
    scene.cloud.registry.uploading.clear()
    assert register(run, scene, scene.cloud)["version_name"].endswith("@1")


@pytest.mark.parametrize(("digest", "words"), [("0" * 64, "written again since the report"), (None, "model is gone")])
def test_another_model_than_the_reports_is_not_registered(make_run, digest, words: str) -> None:
    """Its files changed after the training's report, or are gone: nothing is uploaded."""
    scene, run = Scene(), make_run()
    scene.cloud.model_files.digests = {scene.report["model_uri"]: digest} if digest else {}
    with pytest.raises(AirflowFailException, match=words):
        register(run, scene, scene.cloud)
    assert scene.cloud.registry.versions == {}
