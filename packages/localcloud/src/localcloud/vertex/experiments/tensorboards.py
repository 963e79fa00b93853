"""TensorboardService: TensorBoards, with the experiments, runs and time series in them.

Comes in: requests to create, get, list, change and delete. Goes out: resources in the store; what lies below a deleted
one goes with it. What a series has is in `points`.
https://cloud.google.com/vertex-ai/docs/experiments/tensorboard-introduction
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Tensorboard, TensorboardExperiment, TensorboardRun, TensorboardTimeSeries
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import (
    SERIES_POINTS,
    TENSORBOARD_EXPERIMENTS,
    TENSORBOARD_RUNS,
    TENSORBOARD_SERIES,
    TENSORBOARDS,
    Kind,
    Store,
    now,
)
from localcloud.vertex.resources.validation import Finding, check_display_name, check_id, check_labels, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import Aborted, AlreadyExists, InvalidArgument, Unimplemented
from localcloud.vertex.wire.listing import TENSORBOARD_FIELDS, list_page
from localcloud.vertex.wire.methods import Message

MOST_IN_BATCH, MOST_PLUGIN_BYTES = 1000, 65_000
_ID = r"[a-z0-9][a-z0-9-]{0,127}"
_ID_IN_WORDS = "1 to 128 lower-case letters, digits and dashes"
_BOARD = ("tensorboards",)
_EXPERIMENT = (*_BOARD, "experiments")
_RUN = (*_EXPERIMENT, "runs")
_SERIES = (*_RUN, "timeSeries")
_BELOW = (TENSORBOARD_EXPERIMENTS, TENSORBOARD_RUNS, TENSORBOARD_SERIES, SERIES_POINTS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Level:
    """One of the four kinds of resources: how its names look, and what of it can be changed."""

    kind: Kind
    path: tuple[str, ...]
    changeable: tuple[str, ...]
    must_be_named: bool = True


_BOARDS = _Level(kind=TENSORBOARDS, path=_BOARD, changeable=("display_name", "description", "labels", "is_default"))
_EXPERIMENTS = _Level(
    kind=TENSORBOARD_EXPERIMENTS,
    path=_EXPERIMENT,
    changeable=("display_name", "description", "labels"),
    must_be_named=False,
)
_RUNS = _Level(kind=TENSORBOARD_RUNS, path=_RUN, changeable=("display_name", "description", "labels"))
_ALL_SERIES = _Level(kind=TENSORBOARD_SERIES, path=_SERIES, changeable=("display_name", "description", "plugin_data"))


class _Shelf:
    """What the four kinds have in common."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations

    def _add(self, level: _Level, given: Message, parent: str, resource_id: str, field: str) -> Message:
        """Keep a new resource below its parent.

        Raises:
            AlreadyExists: Its name is taken, or what it is called is.
        """
        made = type(given)()
        type(given).copy_from(made, given)
        refuse([*_check(level, made, field)])
        made.name = f"{parent}/{level.path[-1]}/{resource_id}"
        made.create_time = made.update_time = now()
        made.etag = secrets.token_hex(8)
        with self._store.transaction():
            self._refuse_namesake(level, made, parent)
            self._store.insert(level.kind, made.name, parent, made)
        return made

    def _get(self, level: _Level, name: str) -> Message:
        return self._store.get(level.kind, names.check_name(name, *level.path))

    def _change(self, level: _Level, wanted: Message, mask: Message, field: str) -> Message:
        """Change what the mask names, each field as a whole; without one all that can be changed.

        Raises:
            Aborted: Its etag is that of another state.
            InvalidArgument: The mask names something else.
        """
        name = names.check_name(wanted.name, *level.path, field=f"{field}.name")
        paths = [*mask.paths] if mask.paths and "*" not in mask.paths else [*level.changeable]
        if wrong := sorted(set(paths) - set(level.changeable)):
            expected = ", ".join(level.changeable)
            raise InvalidArgument(f"update_mask names {wrong}. Expected some of {expected}.", field="update_mask")
        with self._store.change(level.kind, name) as stored:
            if wanted.etag and wanted.etag != stored.etag:
                raise Aborted(f"The etag {wanted.etag!r} of {name} is not the stored one. Get it again.")
            for path in paths:
                setattr(stored, path, getattr(wanted, path))
            refuse([*_check(level, stored, field)])
            self._refuse_namesake(level, stored, name.rsplit("/", 2)[0])
            stored.etag, stored.update_time = secrets.token_hex(8), now()
        return stored

    def _remove(self, level: _Level, name: str, call: str) -> operations_pb2.Operation:
        """Remove a resource and what lies below it."""
        self._get(level, name)

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            with self._store.transaction():
                self._store.delete(level.kind, name)
                self._remove_below(name)
            return empty_pb2.Empty()

        return self._operations.start(f"TensorboardService.{call}", name, types.DeleteOperationMetadata(), work)

    def _remove_below(self, name: str) -> None:
        for kind in _BELOW:
            for below in self._store.list_under(kind, name):
                own = below.name if kind is not SERIES_POINTS else points_name(name)
                self._remove_below(own)
                self._store.delete(kind, own)

    def _refuse_namesake(self, level: _Level, made: Message, parent: str) -> None:
        """Refuse a second run of an experiment, or series of a run, of one display name."""
        if level not in (_RUNS, _ALL_SERIES):
            return
        for other in self._store.list_under(level.kind, parent):
            if other.display_name == made.display_name and other.name != made.name:
                noun = level.kind.noun
                raise AlreadyExists(f"{noun} {other.name} has the display name {made.display_name!r} already.")


class Tensorboards(_Shelf):
    """Answers what is asked of TensorBoards."""

    def create_tensorboard(self, request: types.CreateTensorboardRequest) -> operations_pb2.Operation:
        """Keep a new one under a generated id."""
        location = names.parse_location(request.parent)
        board_id = names.new_id()

        def work(progress: Progress) -> Tensorboard:
            progress.check()
            with self._store.transaction():
                made = self._add(_BOARDS, request.tensorboard, request.parent, board_id, "tensorboard")
                self._be_the_only_default(made)
            return made

        refuse([*_check(_BOARDS, request.tensorboard, "tensorboard")])
        metadata = types.CreateTensorboardOperationMetadata()
        name = f"{location}/tensorboards/{board_id}"
        return self._operations.start("TensorboardService.CreateTensorboard", name, metadata, work)

    def get_tensorboard(self, request: types.GetTensorboardRequest) -> Tensorboard:
        """Return one, with the number of its runs."""
        return self._counted(self._get(_BOARDS, request.name))

    def list_tensorboards(self, request: types.ListTensorboardsRequest) -> types.ListTensorboardsResponse:
        """Return those of a location, newest first."""
        names.parse_location(request.parent)
        boards = [self._counted(board) for board in self._store.list_under(TENSORBOARDS, request.parent)]
        page, token = list_page(boards, request, TENSORBOARD_FIELDS)
        return types.ListTensorboardsResponse(tensorboards=page, next_page_token=token)

    def update_tensorboard(self, request: types.UpdateTensorboardRequest) -> operations_pb2.Operation:
        """Change one in the background."""
        name = request.tensorboard.name
        self._get(_BOARDS, name)

        def work(progress: Progress) -> Tensorboard:
            progress.check()
            with self._store.transaction():
                changed = self._change(_BOARDS, request.tensorboard, request.update_mask, "tensorboard")
                self._be_the_only_default(changed)
            return changed

        metadata = types.UpdateTensorboardOperationMetadata()
        return self._operations.start("TensorboardService.UpdateTensorboard", name, metadata, work)

    def delete_tensorboard(self, request: types.DeleteTensorboardRequest) -> operations_pb2.Operation:
        """Remove one and all that it has."""
        return self._remove(_BOARDS, request.name, "DeleteTensorboard")

    def _be_the_only_default(self, board: Tensorboard) -> None:
        if not board.is_default:
            return
        for other in self._store.list_under(TENSORBOARDS, board.name.rsplit("/", 2)[0]):
            if other.is_default and other.name != board.name:
                with self._store.change(TENSORBOARDS, other.name) as changed:
                    changed.is_default = False

    def _counted(self, board: Tensorboard) -> Tensorboard:
        experiments = self._store.list_under(TENSORBOARD_EXPERIMENTS, board.name)
        board.run_count = sum(len(self._store.list_under(TENSORBOARD_RUNS, each.name)) for each in experiments)
        return board


class TensorboardExperiments(_Shelf):
    """Answers what is asked of a TensorBoard's experiments."""

    def create_tensorboard_experiment(self, request: types.CreateTensorboardExperimentRequest) -> TensorboardExperiment:
        """Keep a new one under the id that is asked for."""
        self._store.get(TENSORBOARDS, names.check_name(request.parent, *_BOARD, field="parent"))
        refuse([*check_id(request.tensorboard_experiment_id, _ID, _ID_IN_WORDS, "tensorboard_experiment_id")])
        given, experiment_id = request.tensorboard_experiment, request.tensorboard_experiment_id
        return self._add(_EXPERIMENTS, given, request.parent, experiment_id, "tensorboard_experiment")

    def get_tensorboard_experiment(self, request: types.GetTensorboardExperimentRequest) -> TensorboardExperiment:
        """Return one."""
        return self._get(_EXPERIMENTS, request.name)

    def list_tensorboard_experiments(
        self, request: types.ListTensorboardExperimentsRequest
    ) -> types.ListTensorboardExperimentsResponse:
        """Return those of a TensorBoard, newest first."""
        self._store.get(TENSORBOARDS, names.check_name(request.parent, *_BOARD, field="parent"))
        found = self._store.list_under(TENSORBOARD_EXPERIMENTS, request.parent)
        page, token = list_page(found, request, TENSORBOARD_FIELDS)
        return types.ListTensorboardExperimentsResponse(tensorboard_experiments=page, next_page_token=token)

    def update_tensorboard_experiment(self, request: types.UpdateTensorboardExperimentRequest) -> TensorboardExperiment:
        """Change one."""
        wanted = request.tensorboard_experiment
        return self._change(_EXPERIMENTS, wanted, request.update_mask, "tensorboard_experiment")

    def delete_tensorboard_experiment(
        self, request: types.DeleteTensorboardExperimentRequest
    ) -> operations_pb2.Operation:
        """Remove one and all that it has."""
        return self._remove(_EXPERIMENTS, request.name, "DeleteTensorboardExperiment")


class TensorboardRuns(_Shelf):
    """Answers what is asked of an experiment's runs."""

    def create_tensorboard_run(self, request: types.CreateTensorboardRunRequest) -> TensorboardRun:
        """Keep a new one under the id that is asked for."""
        self._store.get(TENSORBOARD_EXPERIMENTS, names.check_name(request.parent, *_EXPERIMENT, field="parent"))
        refuse([*check_id(request.tensorboard_run_id, _ID, _ID_IN_WORDS, "tensorboard_run_id")])
        run_id, given = request.tensorboard_run_id, request.tensorboard_run
        return self._add(_RUNS, given, request.parent, run_id, "tensorboard_run")

    def batch_create_tensorboard_runs(
        self, request: types.BatchCreateTensorboardRunsRequest
    ) -> types.BatchCreateTensorboardRunsResponse:
        """Keep all or none."""
        _check_batch(request.requests)
        for each in request.requests:
            if each.parent != request.parent:
                raise InvalidArgument(f"The parent {each.parent} is not {request.parent}.", field="requests")
        with self._store.transaction():
            made = [self.create_tensorboard_run(each) for each in request.requests]
        return types.BatchCreateTensorboardRunsResponse(tensorboard_runs=made)

    def get_tensorboard_run(self, request: types.GetTensorboardRunRequest) -> TensorboardRun:
        """Return one."""
        return self._get(_RUNS, request.name)

    def list_tensorboard_runs(self, request: types.ListTensorboardRunsRequest) -> types.ListTensorboardRunsResponse:
        """Return those of an experiment, newest first."""
        self._store.get(TENSORBOARD_EXPERIMENTS, names.check_name(request.parent, *_EXPERIMENT, field="parent"))
        found = self._store.list_under(TENSORBOARD_RUNS, request.parent)
        page, token = list_page(found, request, TENSORBOARD_FIELDS)
        return types.ListTensorboardRunsResponse(tensorboard_runs=page, next_page_token=token)

    def update_tensorboard_run(self, request: types.UpdateTensorboardRunRequest) -> TensorboardRun:
        """Change one."""
        return self._change(_RUNS, request.tensorboard_run, request.update_mask, "tensorboard_run")

    def delete_tensorboard_run(self, request: types.DeleteTensorboardRunRequest) -> operations_pb2.Operation:
        """Remove one and all that it has."""
        return self._remove(_RUNS, request.name, "DeleteTensorboardRun")


class TensorboardSeries(_Shelf):
    """Answers what is asked of a run's time series, but for what they have."""

    def create_tensorboard_time_series(
        self, request: types.CreateTensorboardTimeSeriesRequest
    ) -> TensorboardTimeSeries:
        """Keep a new one under the requested id or a generated one."""
        self._store.get(TENSORBOARD_RUNS, names.check_name(request.parent, *_RUN, field="parent"))
        series_id = request.tensorboard_time_series_id or names.new_id()
        refuse([*check_id(series_id, _ID, _ID_IN_WORDS, "tensorboard_time_series_id")])
        given = request.tensorboard_time_series
        if given.value_type == TensorboardTimeSeries.ValueType.BLOB_SEQUENCE:
            raise Unimplemented("The local cloud keeps no blobs of a time series. Use SCALAR or TENSOR.")
        return self._add(_ALL_SERIES, given, request.parent, series_id, "tensorboard_time_series")

    def batch_create_tensorboard_time_series(
        self, request: types.BatchCreateTensorboardTimeSeriesRequest
    ) -> types.BatchCreateTensorboardTimeSeriesResponse:
        """Keep all or none, of any runs of one experiment."""
        _check_batch(request.requests)
        experiment = names.check_name(request.parent, *_EXPERIMENT, field="parent")
        for each in request.requests:
            if not each.parent.startswith(f"{experiment}/runs/"):
                raise InvalidArgument(f"{each.parent} is no run of {experiment}.", field="requests")
        with self._store.transaction():
            made = [self.create_tensorboard_time_series(each) for each in request.requests]
        return types.BatchCreateTensorboardTimeSeriesResponse(tensorboard_time_series=made)

    def get_tensorboard_time_series(self, request: types.GetTensorboardTimeSeriesRequest) -> TensorboardTimeSeries:
        """Return one."""
        return self._get(_ALL_SERIES, request.name)

    def list_tensorboard_time_series(
        self, request: types.ListTensorboardTimeSeriesRequest
    ) -> types.ListTensorboardTimeSeriesResponse:
        """Return those of a run, newest first."""
        self._store.get(TENSORBOARD_RUNS, names.check_name(request.parent, *_RUN, field="parent"))
        found = self._store.list_under(TENSORBOARD_SERIES, request.parent)
        page, token = list_page(found, request, {"display_name": "display_name"})
        return types.ListTensorboardTimeSeriesResponse(tensorboard_time_series=page, next_page_token=token)

    def update_tensorboard_time_series(
        self, request: types.UpdateTensorboardTimeSeriesRequest
    ) -> TensorboardTimeSeries:
        """Change one."""
        wanted = request.tensorboard_time_series
        return self._change(_ALL_SERIES, wanted, request.update_mask, "tensorboard_time_series")

    def delete_tensorboard_time_series(
        self, request: types.DeleteTensorboardTimeSeriesRequest
    ) -> operations_pb2.Operation:
        """Remove one with its points."""
        return self._remove(_ALL_SERIES, request.name, "DeleteTensorboardTimeSeries")


def points_name(series: str) -> str:
    """Return under which name a series' points are kept."""
    return f"{series}/points"


def _check(level: _Level, resource: Message, field: str) -> Iterator[Finding]:
    yield from check_display_name(resource.display_name, f"{field}.display_name")
    if level.must_be_named and not resource.display_name:
        yield f"{field}.display_name", "It is missing. Expected what people shall call it."
    if "labels" in level.changeable:
        yield from check_labels(resource.labels, f"{field}.labels")
    if level is _ALL_SERIES:
        if not resource.value_type:
            yield f"{field}.value_type", "It is missing. Expected SCALAR or TENSOR."
        if len(resource.plugin_data) > MOST_PLUGIN_BYTES:
            yield f"{field}.plugin_data", f"It has {len(resource.plugin_data)} bytes. Expected at most 65 KB."


def _check_batch(requests: list[Message]) -> None:
    if not 0 < len(requests) <= MOST_IN_BATCH:
        raise InvalidArgument(f"{len(requests)} requests. Expected 1 to {MOST_IN_BATCH}.", field="requests")
