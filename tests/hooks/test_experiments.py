"""Runs in Vertex AI Experiments of the local cloud, read back by Google's SDK: one for each, whatever dies."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.cloud import aiplatform

from retraining.core.errors import TrackingError
from retraining.core.naming.environments import Environment
from retraining.core.report.tracking.tracked_run import VERTEX, Status, TrackedRun
from retraining.core.report.tracking.vertex import experiment_id
from retraining.hooks import limits, trackers
from retraining.hooks.experiments import Experiments
from retraining.hooks.trackers import Trackers
from tests.core.report.tracking.test_tracked_run import WHOLE, tracked
from tests.support.fakes.dying import Death


@pytest.fixture
def run() -> TrackedRun:
    """A whole run of a model of this test's own."""
    return dataclasses.replace(tracked(*WHOLE), model=f"m_{uuid.uuid4().hex[:8]}")


@pytest.fixture
def sdk(local_cloud: Any) -> Any:
    """Google's, pointed at the local cloud by environment alone."""
    aiplatform.init(project=local_cloud.project, location=local_cloud.region)
    return aiplatform


def name_of(cloud: Any, run: TrackedRun) -> str:
    """The run's experiment."""
    return experiment_id(cloud.environment.label, run.model)


def test_the_sdk_reads_what_was_tracked(cloud: Any, sdk: Any, run: TrackedRun) -> None:
    """As a table, and as a run with its parameters, metrics and state."""
    cloud.trackers.track(VERTEX, run)
    table = sdk.get_experiment_df(name_of(cloud, run))
    assert table["run_name"].tolist() == [run.run_key]
    assert table["metric.auc"].tolist() == [0.71]
    assert table["param.training.hyperparameters.learning_rate"].tolist() == [0.001]
    found = sdk.ExperimentRun(run.run_key, experiment=name_of(cloud, run))
    assert found.get_metrics() == run.metrics
    assert run.parameters.items() <= found.get_params().items()
    assert found.get_params()["page"] == run.tags["retraining.page"]
    assert found.get_state() == "COMPLETE"
    assert name_of(cloud, run) in [each.name for each in sdk.Experiment.list()]


def test_a_run_that_changed_is_as_it_is_now(cloud: Any, sdk: Any, run: TrackedRun) -> None:
    """It failed, was cleared, and came to its end: nothing of before stays."""
    failed = dataclasses.replace(run, status=Status.FAILED, metrics={"gone": 1.0})
    assert cloud.trackers.track(VERTEX, failed) == cloud.trackers.track(VERTEX, run)
    found = sdk.ExperimentRun(run.run_key, experiment=name_of(cloud, run))
    assert (found.get_metrics(), found.get_state()) == (run.metrics, "COMPLETE")


def test_of_many_at_once_one_is_there(cloud: Any, sdk: Any, run: TrackedRun) -> None:
    """Its id is known beforehand, its experiment's too."""
    with ThreadPoolExecutor(6) as pool:
        asked = [Trackers(cloud.settings, lambda: cloud.session) for _ in range(6)]
        list(pool.map(lambda one: one.track(VERTEX, run), asked))
    assert sdk.get_experiment_df(name_of(cloud, run))["run_name"].tolist() == [run.run_key]
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: run.digest}


@pytest.fixture
def board(cloud: Any, sdk: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A TensorBoard that the environment names."""
    name = str(sdk.Tensorboard.create(display_name="curves").resource_name)
    settings = dataclasses.replace(cloud.settings, tensorboard=name)
    monkeypatch.setattr(cloud, "settings", settings)
    monkeypatch.setattr(cloud, "trackers", Trackers(settings, lambda: cloud.session))
    return name


def curves_of(sdk: Any, cloud: Any, run: TrackedRun) -> dict[str, tuple[float, ...]]:
    """What the SDK reads of a run's epochs."""
    frame = sdk.ExperimentRun(run.run_key, experiment=name_of(cloud, run)).get_time_series_data_frame()
    if frame.empty:
        return {}
    frame = frame.set_index("step").drop(columns="wall_time")
    return {name: tuple(frame[name].dropna()) for name in frame.columns}


def test_the_sdk_reads_what_each_epoch_reported(cloud: Any, sdk: Any, board: str, run: TrackedRun) -> None:
    """In the TensorBoard that the environment names, and in the experiment's table its newest value."""
    cloud.trackers.track(VERTEX, run)
    assert run.curves
    assert curves_of(sdk, cloud, run) == run.curves
    table = sdk.get_experiment_df(name_of(cloud, run))
    for name, values in run.curves.items():
        assert table[f"time_series_metric.{name}"].tolist() == [values[-1]]
    assert [each.name for each in sdk.TensorboardRun.list(f"{board}/experiments/{name_of(cloud, run)}")] == [
        run.run_key
    ]
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: run.digest}


def test_curves_that_changed_are_as_they_are_now(cloud: Any, sdk: Any, board: str, run: TrackedRun) -> None:
    """A training that was done again had fewer epochs, another curve, and one less."""
    del board
    before = dataclasses.replace(run, curves={"epoch/loss": (3.0, 2.0, 1.0), "epoch/gone": (1.0,), "epoch/auc": (0.5,)})
    cloud.trackers.track(VERTEX, before)
    after = dataclasses.replace(run, curves={"epoch/loss": (4.0, 2.0), "epoch/auc": (0.5, 0.6), "epoch/new": (7.0,)})
    cloud.trackers.track(VERTEX, after)
    assert curves_of(sdk, cloud, run) == after.curves


def test_a_tensorboard_that_is_named_later_is_filled_in(
    cloud: Any, sdk: Any, run: TrackedRun, request: pytest.FixtureRequest
) -> None:
    """What was shown without one is shown again, once."""
    cloud.trackers.track(VERTEX, run)
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: run.digest}
    request.getfixturevalue("board")
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: ""}
    cloud.trackers.track(VERTEX, run)
    assert curves_of(sdk, cloud, run) == run.curves
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: run.digest}


def test_many_at_once_draw_one_set_of_curves(cloud: Any, sdk: Any, board: str, run: TrackedRun) -> None:
    """Each series once."""
    with ThreadPoolExecutor(6) as pool:
        asked = [Trackers(cloud.settings, lambda: cloud.session) for _ in range(6)]
        list(pool.map(lambda one: one.track(VERTEX, run), asked))
    assert curves_of(sdk, cloud, run) == run.curves
    name = f"{board}/experiments/{name_of(cloud, run)}/runs/{run.run_key}"
    assert sorted(each.display_name for each in sdk.TensorboardTimeSeries.list(name)) == sorted(run.curves)


@pytest.mark.parametrize(
    "call",
    [
        "TensorboardService.GetTensorboardRun",
        "TensorboardService.CreateTensorboardExperiment",
        "TensorboardService.CreateTensorboardRun",
        "TensorboardService.ListTensorboardTimeSeries",
        "TensorboardService.BatchCreateTensorboardTimeSeries",
        "TensorboardService.WriteTensorboardRunData",
        "MetadataService.CreateArtifact",
        "MetadataService.AddContextArtifactsAndExecutions",
    ],
)
def test_a_lost_answer_leaves_whole_curves(
    cloud: Any, sdk: Any, board: str, run: TrackedRun, add_fault: Callable[..., Any], call: str
) -> None:
    """Each call may be repeated."""
    del board
    add_fault(call, "lost_response")
    cloud.trackers.track(VERTEX, run)
    assert curves_of(sdk, cloud, run) == run.curves


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_task_that_is_killed_at_its_curves_leaves_what_the_next_one_ends(
    cloud: Any, sdk: Any, board: str, run: TrackedRun, number: int, after: bool
) -> None:
    """Before or after any call of the TensorBoard; until then the run is not taken for told."""
    killed = Experiments(cloud.session, board)
    vars(killed._boards)["_client"] = _Dying(killed._boards._client, number, after=after)
    with limits.limited(60), contextlib.suppress(Death):
        killed.track(run)
        assert number > 6
    if number <= 6:
        assert cloud.trackers.digests(VERTEX, run.model) == {}
    cloud.trackers.track(VERTEX, run)
    assert curves_of(sdk, cloud, run) == run.curves


def test_another_environments_run_in_a_shared_tensorboard_stays(
    cloud: Any, sdk: Any, board: str, run: TrackedRun
) -> None:
    """Of the same names, in another project: nothing of it is drawn anew or deleted."""
    parent = f"{board}/experiments/{name_of(cloud, run)}"
    theirs = {"retraining-environment": "another"}
    sdk.TensorboardExperiment.create(name_of(cloud, run), tensorboard_name=board)
    sdk.TensorboardRun.create(run.run_key, tensorboard_experiment_name=parent, labels=theirs)
    series = sdk.TensorboardTimeSeries.create("loss", tensorboard_run_name=f"{parent}/runs/{run.run_key}")
    with pytest.raises(TrackingError, match="another"):
        cloud.trackers.track(VERTEX, run)
    assert [each.resource_name for each in sdk.TensorboardTimeSeries.list(f"{parent}/runs/{run.run_key}")] == [
        series.resource_name
    ]


def test_a_tensorboard_that_is_not_there_is_named(cloud: Any, run: TrackedRun, board: str) -> None:
    """When a run is shown, and when it is only asked for, also in a project that has tracked nothing yet."""
    gone = dataclasses.replace(cloud.settings, tensorboard=f"{board[:-1]}{(int(board[-1]) + 1) % 10}")
    elsewhere = Trackers(gone, lambda: cloud.session)
    for ask in (lambda: elsewhere.track(VERTEX, run), lambda: elsewhere.digests(VERTEX, run.model)):
        with pytest.raises(TrackingError, match="ensorboard"):
            ask()


@pytest.mark.parametrize(
    "call", ["CreateContext", "AddContextChildren", "GetContext", "GetMetadataStore", "CreateMetadataStore"]
)
def test_a_lost_answer_leaves_one_run(
    cloud: Any, sdk: Any, run: TrackedRun, add_fault: Callable[..., Any], call: str
) -> None:
    """Each call may be repeated."""
    add_fault(f"MetadataService.{call}", "lost_response")
    cloud.trackers.track(VERTEX, run)
    assert sdk.get_experiment_df(name_of(cloud, run))["run_name"].tolist() == [run.run_key]
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: run.digest}


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_task_that_is_killed_leaves_what_the_next_one_ends(
    cloud: Any, run: TrackedRun, number: int, after: bool
) -> None:
    """Before or after any call."""
    killed = Experiments(cloud.session)
    vars(killed)["_client"] = _Dying(killed._client, number, after=after)
    with limits.limited(60), contextlib.suppress(Death):
        killed.track(run)
    cloud.trackers.track(VERTEX, run)
    assert cloud.trackers.digests(VERTEX, run.model) == {run.run_key: run.digest}


class _Dying:
    """A client whose n-th call is the task's last."""

    def __init__(self, client: Any, number: int, *, after: bool) -> None:
        self._client, self._left, self._after = client, number, after

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Death
            try:
                return getattr(self._client, name)(*arguments, **options)
            finally:
                if self._left == 0:
                    raise Death

        return call


def test_another_environments_experiment_is_refused(cloud: Any, run: TrackedRun) -> None:
    """By name: nothing is written to it."""
    cloud.trackers.track(VERTEX, run)
    other = dataclasses.replace(
        cloud.session, environment=Environment(label=f"-{cloud.environment.label}", bucket="other")
    )
    assert experiment_id(other.environment.label, run.model) == name_of(cloud, run)
    with pytest.raises(TrackingError, match="this environment's experiment"):
        Trackers(cloud.settings, lambda: other).track(VERTEX, run)


@pytest.mark.parametrize("action", ["PERMISSION_DENIED", "UNAVAILABLE"])
def test_a_service_that_refuses_or_is_away_is_one_kind_of_error(
    cloud: Any, run: TrackedRun, add_fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """In time, with the way out."""
    monkeypatch.setattr(trackers, "DEADLINE_S", 3.0)
    add_fault("MetadataService.GetContext", "error", code=action, count=1000)
    with pytest.raises(TrackingError) as raised:
        cloud.trackers.track(VERTEX, run)
    assert raised.value.way_out
