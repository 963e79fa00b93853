"""TensorboardService's data: one value for each step of a time series.

Comes in: points by the id of their series. Goes out: points in the order of their steps; a step that is written again
has the newer value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import TensorboardTimeSeries, TimeSeriesData, TimeSeriesDataPoint

from localcloud.vertex.experiments.tensorboards import points_name
from localcloud.vertex.resources.store import (
    SERIES_POINTS,
    TENSORBOARD_EXPERIMENTS,
    TENSORBOARD_RUNS,
    TENSORBOARD_SERIES,
    TENSORBOARDS,
    Store,
    now,
)
from localcloud.vertex.resources.validation import Finding, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import InvalidArgument

MOST_POINTS_OF_A_WRITE, MOST_SERIES_OF_A_READ, DEFAULT_PAGE, MOST_OF_A_PAGE = 5000, 100, 1000, 10_000
_EXPERIMENT = ("tensorboards", "experiments")
_SERIES = (*_EXPERIMENT, "runs", "timeSeries")
_VALUES = {
    TensorboardTimeSeries.ValueType.SCALAR: "scalar",
    TensorboardTimeSeries.ValueType.TENSOR: "tensor",
}


class SeriesPoints:
    """Answers what is written to time series, and read of them.

    Args:
        store: Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write_tensorboard_run_data(
        self, request: types.WriteTensorboardRunDataRequest
    ) -> types.WriteTensorboardRunDataResponse:
        """Keep points of a run's series, all or none."""
        run = names.check_name(request.tensorboard_run, *_EXPERIMENT, "runs", field="tensorboard_run")
        self._store.get(TENSORBOARD_RUNS, run)
        points = sum(len(data.values) for data in request.time_series_data)
        if not 0 < points <= MOST_POINTS_OF_A_WRITE:
            expected = f"Expected 1 to {MOST_POINTS_OF_A_WRITE} in a request."
            raise InvalidArgument(f"{points} data points were given. {expected}", field="time_series_data")
        with self._store.transaction():
            for data in request.time_series_data:
                self._write(f"{run}/timeSeries/{data.tensorboard_time_series_id}", data)
        return types.WriteTensorboardRunDataResponse()

    def write_tensorboard_experiment_data(
        self, request: types.WriteTensorboardExperimentDataRequest
    ) -> types.WriteTensorboardExperimentDataResponse:
        """Keep points of series of several runs of an experiment, all or none."""
        experiment = names.check_name(request.tensorboard_experiment, *_EXPERIMENT, field="tensorboard_experiment")
        self._store.get(TENSORBOARD_EXPERIMENTS, experiment)
        for each in request.write_run_data_requests:
            if not each.tensorboard_run.startswith(f"{experiment}/runs/"):
                said = f"{each.tensorboard_run} is no run of {experiment}."
                raise InvalidArgument(said, field="write_run_data_requests")
        with self._store.transaction():
            for each in request.write_run_data_requests:
                self.write_tensorboard_run_data(each)
        return types.WriteTensorboardExperimentDataResponse()

    def read_tensorboard_time_series_data(
        self, request: types.ReadTensorboardTimeSeriesDataRequest
    ) -> types.ReadTensorboardTimeSeriesDataResponse:
        """Return the points of a series, of more than are asked for evenly chosen ones with the first and the last."""
        data = self._read(request.tensorboard_time_series, "tensorboard_time_series")
        most = request.max_data_points or DEFAULT_PAGE
        if most < -1:
            raise InvalidArgument(f"max_data_points is {most}. Expected -1 or more.", field="max_data_points")
        if most != -1:
            data.values = _thinned([*data.values], most)
        return types.ReadTensorboardTimeSeriesDataResponse(time_series_data=data)

    def batch_read_tensorboard_time_series_data(
        self, request: types.BatchReadTensorboardTimeSeriesDataRequest
    ) -> types.BatchReadTensorboardTimeSeriesDataResponse:
        """Return the points of several series of a TensorBoard."""
        board = names.check_name(request.tensorboard, "tensorboards", field="tensorboard")
        self._store.get(TENSORBOARDS, board)
        if len(request.time_series) > MOST_SERIES_OF_A_READ:
            said = f"{len(request.time_series)} series were given. Expected at most {MOST_SERIES_OF_A_READ}."
            raise InvalidArgument(said, field="time_series")
        for name in request.time_series:
            if not name.startswith(f"{board}/"):
                raise InvalidArgument(f"{name} is not of {board}.", field="time_series")
        found = [self._read(name, "time_series") for name in request.time_series]
        for data in found:
            data.values = _thinned([*data.values], DEFAULT_PAGE)
        return types.BatchReadTensorboardTimeSeriesDataResponse(time_series_data=found)

    def export_tensorboard_time_series_data(
        self, request: types.ExportTensorboardTimeSeriesDataRequest
    ) -> types.ExportTensorboardTimeSeriesDataResponse:
        """Return the points of a series, page by page, in the order of their steps."""
        points = [*self._read(request.tensorboard_time_series, "tensorboard_time_series").values]
        size = request.page_size or DEFAULT_PAGE
        if size < 0:
            raise InvalidArgument(f"page_size is {size}. Expected 1 to {MOST_OF_A_PAGE}.", field="page_size")
        if request.page_token and not request.page_token.isdecimal():
            raise InvalidArgument("The page token is not of this list.", field="page_token")
        start = int(request.page_token or 0)
        end = start + min(size, MOST_OF_A_PAGE)
        token = str(end) if end < len(points) else ""
        return types.ExportTensorboardTimeSeriesDataResponse(
            time_series_data_points=points[start:end], next_page_token=token
        )

    def _write(self, name: str, data: TimeSeriesData) -> None:
        with self._store.change(TENSORBOARD_SERIES, name) as series:
            refuse([*_check(series, data)])
            kept = self._find(name)
            known = {point.step: point for point in (kept.values if kept else [])}
            known |= {point.step: point for point in data.values}
            points = [known[step] for step in sorted(known)]
            series.metadata = TensorboardTimeSeries.Metadata(
                max_step=points[-1].step, max_wall_time=max(point.wall_time for point in points)
            )
            series.update_time = now()
        whole = TimeSeriesData(
            tensorboard_time_series_id=names.last_part(name), value_type=series.value_type, values=points
        )
        if kept is not None:
            self._store.delete(SERIES_POINTS, points_name(name))
        self._store.insert(SERIES_POINTS, points_name(name), name, whole)

    def _read(self, name: str, field: str) -> TimeSeriesData:
        series = self._store.get(TENSORBOARD_SERIES, names.check_name(name, *_SERIES, field=field))
        empty = TimeSeriesData(tensorboard_time_series_id=names.last_part(name), value_type=series.value_type)
        return self._find(name) or empty

    def _find(self, series: str) -> TimeSeriesData | None:
        return self._store.find_resource(SERIES_POINTS, points_name(series))


def _check(series: TensorboardTimeSeries, data: TimeSeriesData) -> Iterator[Finding]:
    field = f"time_series_data[{data.tensorboard_time_series_id!r}]"
    if data.value_type != series.value_type:
        found, expected = data.value_type, series.value_type
        yield f"{field}.value_type", f"It is {found!r}. Expected that of the series, {expected!r}."
        return
    for point in data.values:
        if _VALUES[series.value_type] not in point:
            yield f"{field}.values", f"The point of step {point.step} has no {_VALUES[series.value_type]}."
        if "wall_time" not in point:
            yield f"{field}.values", f"The point of step {point.step} has no wall_time."


def _thinned(points: list[TimeSeriesDataPoint], most: int) -> list[TimeSeriesDataPoint]:
    """Return at most so many points, evenly chosen, with the last one."""
    if len(points) <= most:
        return points
    every = math.ceil(len(points) / most)
    return points[::-1][::every][::-1]
