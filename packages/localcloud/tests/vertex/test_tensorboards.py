"""TensorBoards through Google's client: made, changed, deleted with what is below, written to and read, refused."""

from __future__ import annotations

import datetime
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

SCALAR = v1.TensorboardTimeSeries.ValueType.SCALAR
TENSOR = v1.TensorboardTimeSeries.ValueType.TENSOR
BLOBS = v1.TensorboardTimeSeries.ValueType.BLOB_SEQUENCE
WHEN = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def board(api) -> str:
    """A TensorBoard of these tests' own."""
    return make_board(api)


@pytest.fixture
def run(api, board) -> v1.TensorboardRun:
    """A run of an experiment of its own."""
    experiment = api.boards.create_tensorboard_experiment(parent=board, tensorboard_experiment_id=own("e"))
    return api.boards.create_tensorboard_run(
        parent=experiment.name, tensorboard_run={"display_name": "first"}, tensorboard_run_id=own("r")
    )


def make_board(api, **fields: Any) -> str:
    """Make a TensorBoard; give its name."""
    made = api.boards.create_tensorboard(parent=api.parent, tensorboard={"display_name": "curves", **fields})
    return str(made.result(timeout=10).name)


def own(letter: str) -> str:
    """An id that nobody has."""
    return f"{letter}-{uuid.uuid4().hex[:8]}"


def series(api, run: v1.TensorboardRun, name: str = "loss", kind: Any = SCALAR) -> v1.TensorboardTimeSeries:
    """A time series of a run."""
    return api.boards.create_tensorboard_time_series(
        parent=run.name, tensorboard_time_series={"display_name": name, "value_type": kind}
    )


def points(one: v1.TensorboardTimeSeries, values: dict[int, float], kind: Any = SCALAR) -> v1.TimeSeriesData:
    """Values by their steps."""
    return v1.TimeSeriesData(
        tensorboard_time_series_id=one.name.rsplit("/", 1)[1],
        value_type=kind,
        values=[{"step": step, "wall_time": WHEN, "scalar": {"value": value}} for step, value in values.items()],
    )


def write(api, run: v1.TensorboardRun, *data: v1.TimeSeriesData) -> None:
    """Write to a run."""
    api.boards.write_tensorboard_run_data(tensorboard_run=run.name, time_series_data=list(data))


def read(api, one: v1.TensorboardTimeSeries, most: int = -1) -> dict[int, float]:
    """Values by their steps, in the order in which they come."""
    request = {"tensorboard_time_series": one.name, "max_data_points": most}
    data = api.boards.read_tensorboard_time_series_data(request=request).time_series_data
    return {point.step: point.scalar.value for point in data.values}


def test_points_come_by_their_steps_and_the_newest_of_a_step_counts(api, run):
    one = series(api, run)
    assert read(api, one) == {}
    write(api, run, points(one, {2: 0.5, 1: 0.9}))
    write(api, run, points(one, {2: 0.4, 10: 0.1}))
    assert list(read(api, one).items()) == [(1, 0.9), (2, 0.4), (10, 0.1)]
    found = api.boards.get_tensorboard_time_series(name=one.name)
    assert (found.metadata.max_step, found.metadata.max_wall_time) == (10, WHEN)


def test_many_points_are_read_in_parts_or_thinned(api, run):
    one = series(api, run)
    write(api, run, points(one, {step: float(step) for step in range(1, 2501)}))
    assert list(read(api, one)) == list(range(1, 2501))
    some = list(read(api, one, 100))
    assert (len(some), some[-1]) == (100, 2500)
    assert len(read(api, one, 0)) <= 1000
    pages = api.boards.export_tensorboard_time_series_data({"tensorboard_time_series": one.name, "page_size": 999})
    assert [point.step for point in pages] == list(range(1, 2501))


def test_several_series_are_written_whole_or_not(api, run):
    loss, accuracy = series(api, run, "loss"), series(api, run, "accuracy")
    wrong = points(accuracy, {1: 1.0}, TENSOR)
    with pytest.raises(exceptions.InvalidArgument, match="value_type"):
        write(api, run, points(loss, {1: 1.0}), wrong)
    assert read(api, loss) == {}
    write(api, run, points(loss, {1: 1.0}), points(accuracy, {1: 0.5}))
    board = run.name.partition("/experiments/")[0]
    found = api.boards.batch_read_tensorboard_time_series_data(
        request={"tensorboard": board, "time_series": [loss.name, accuracy.name]}
    )
    assert [data.values[0].scalar.value for data in found.time_series_data] == [1.0, 0.5]


def test_an_experiment_is_written_over_its_runs(api, run):
    parent = run.name.rsplit("/", 2)[0]
    other = api.boards.create_tensorboard_run(
        parent=parent, tensorboard_run={"display_name": "second"}, tensorboard_run_id="second"
    )
    one, two = series(api, run), series(api, other)
    requests = [
        {"tensorboard_run": each.name, "time_series_data": [points(its, {1: value})]}
        for each, its, value in ((run, one, 1.0), (other, two, 2.0))
    ]
    api.boards.write_tensorboard_experiment_data(tensorboard_experiment=parent, write_run_data_requests=requests)
    assert (read(api, one), read(api, two)) == ({1: 1.0}, {1: 2.0})


def test_of_one_id_and_of_one_name_there_is_one(api, run):
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(series, api, run) for _ in range(8)]
    errors = [one.exception() for one in asked]
    assert errors.count(None) == 1
    assert all(isinstance(error, exceptions.AlreadyExists) for error in errors if error)
    parent, run_id = run.name.rsplit("/", 2)[0], run.name.rsplit("/", 1)[1]
    for same_id, name in ((run_id, "another"), ("another", "first")):
        with pytest.raises(exceptions.AlreadyExists):
            api.boards.create_tensorboard_run(
                parent=parent, tensorboard_run={"display_name": name}, tensorboard_run_id=same_id
            )


def test_a_batch_is_made_whole_or_not(api, run):
    parent = run.name.rsplit("/", 2)[0]
    asked = [
        {"parent": run.name, "tensorboard_time_series": {"display_name": name, "value_type": SCALAR}}
        for name in ("a", "b", "a")
    ]
    with pytest.raises(exceptions.AlreadyExists):
        api.boards.batch_create_tensorboard_time_series(parent=parent, requests=asked)
    assert list(api.boards.list_tensorboard_time_series(parent=run.name)) == []
    api.boards.batch_create_tensorboard_time_series(parent=parent, requests=asked[:2])
    assert {each.display_name for each in api.boards.list_tensorboard_time_series(parent=run.name)} == {"a", "b"}
    runs = [
        {"parent": parent, "tensorboard_run": {"display_name": name}, "tensorboard_run_id": name} for name in ("x", "y")
    ]
    made = api.boards.batch_create_tensorboard_runs(parent=parent, requests=runs)
    assert [each.display_name for each in made.tensorboard_runs] == ["x", "y"]


def test_what_is_below_goes_with_it(api):
    board = make_board(api)
    experiment = api.boards.create_tensorboard_experiment(parent=board, tensorboard_experiment_id="gone")
    run = api.boards.create_tensorboard_run(
        parent=experiment.name, tensorboard_run={"display_name": "r"}, tensorboard_run_id="r"
    )
    one = series(api, run)
    write(api, run, points(one, {1: 1.0}))
    assert api.boards.get_tensorboard(name=board).run_count == 1
    api.boards.delete_tensorboard_experiment(name=experiment.name).result(timeout=10)
    for look, name in (
        (api.boards.get_tensorboard_experiment, experiment.name),
        (api.boards.get_tensorboard_run, run.name),
        (api.boards.get_tensorboard_time_series, one.name),
    ):
        with pytest.raises(exceptions.NotFound):
            look(name=name)
    again = api.boards.create_tensorboard_experiment(parent=board, tensorboard_experiment_id="gone")
    assert list(api.boards.list_tensorboard_runs(parent=again.name)) == []
    api.boards.delete_tensorboard(name=board).result(timeout=10)
    assert board not in [each.name for each in api.boards.list_tensorboards(parent=api.parent)]


def test_one_of_a_region_is_the_default(api):
    first, second = make_board(api, is_default=True), make_board(api, is_default=True)
    assert [api.boards.get_tensorboard(name=name).is_default for name in (first, second)] == [False, True]
    api.boards.update_tensorboard(
        tensorboard={"name": first, "is_default": True}, update_mask={"paths": ["is_default"]}
    ).result(timeout=10)
    assert [api.boards.get_tensorboard(name=name).is_default for name in (first, second)] == [True, False]


def test_a_change_is_of_what_it_names_if_nobody_was_faster(api, run):
    run.description, run.display_name = "after", "other"
    changed = api.boards.update_tensorboard_run(tensorboard_run=run, update_mask={"paths": ["description"]})
    assert (changed.description, changed.display_name) == ("after", "first")
    with pytest.raises(exceptions.Aborted, match="etag"):
        api.boards.update_tensorboard_run(tensorboard_run=run, update_mask={"paths": ["description"]})
    with pytest.raises(exceptions.InvalidArgument, match="value_type"):
        api.boards.update_tensorboard_time_series(
            tensorboard_time_series={"name": series(api, run).name, "value_type": TENSOR},
            update_mask={"paths": ["value_type"]},
        )


def test_lists_are_filtered(api, run):
    parent = run.name.rsplit("/", 2)[0]
    api.boards.create_tensorboard_run(
        parent=parent, tensorboard_run={"display_name": "b", "labels": {"a": "1"}}, tensorboard_run_id="b"
    )
    for expression in ('display_name="b"', 'labels.a="1"'):
        found = api.boards.list_tensorboard_runs({"parent": parent, "filter": expression})
        assert [each.display_name for each in found] == ["b"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"display_name": ""}, "display_name"),
        ({"value_type": 0}, "value_type"),
        ({"display_name": "x" * 129}, "128"),
        ({"plugin_data": b"x" * 65_001}, "65 KB"),
    ],
    ids=["no name", "no type", "long name", "plugin data"],
)
def test_what_the_service_does_not_take_is_named(api, run, changes, said):
    wanted = {"display_name": "loss", "value_type": SCALAR, **changes}
    with pytest.raises(exceptions.InvalidArgument, match=said):
        api.boards.create_tensorboard_time_series(parent=run.name, tensorboard_time_series=wanted)


def test_what_is_not_offered_is_refused_by_name(api, run):
    with pytest.raises(exceptions.MethodNotImplemented, match="blobs"):
        series(api, run, "images", BLOBS)
    one = series(api, run)
    with pytest.raises(exceptions.MethodNotImplemented, match="ReadTensorboardBlobData"):
        list(api.boards.read_tensorboard_blob_data(time_series=one.name))
    with pytest.raises(exceptions.MethodNotImplemented, match="filter"):
        api.boards.read_tensorboard_time_series_data({"tensorboard_time_series": one.name, "filter": "step > 1"})


def test_what_cannot_be_a_point_is_refused(api, run):
    one = series(api, run)
    nothing = v1.TimeSeriesData(tensorboard_time_series_id=one.name.rsplit("/", 1)[1], value_type=SCALAR)
    for values, said in (
        ([], "Required field is not set"),
        ([{"step": 1, "wall_time": WHEN}], "no scalar"),
        ([{"step": 1, "scalar": {"value": 1}}], "no wall_time"),
        ([{"step": n, "wall_time": WHEN, "scalar": {"value": 1}} for n in range(5001)], "5001 data points"),
    ):
        nothing.values = values
        with pytest.raises(exceptions.InvalidArgument, match=said):
            write(api, run, nothing)
    nothing.tensorboard_time_series_id = "missing"
    nothing.values = [{"step": 1, "wall_time": WHEN, "scalar": {"value": 1}}]
    with pytest.raises(exceptions.NotFound, match="missing"):
        write(api, run, nothing)
    assert read(api, one) == {}


def test_rest_answers_alike(api, run, rest):
    one = series(api, run)
    write(api, run, points(one, {1: 0.25}))
    data = rest("GET", f"/v1/{one.name}:read").json()["timeSeriesData"]
    assert (data["valueType"], data["values"][0]["scalar"]) == ("SCALAR", {"value": 0.25})
