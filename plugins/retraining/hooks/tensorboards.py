"""What each epoch reported, in a Vertex AI TensorBoard: a run there for each run of a model, a series for each curve.

In: curves by name. Out: the name of the TensorBoard's run. A step that is written again has the newer value, so whoever
was killed begins anew; a series that is longer than its curve, or of none, is deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from retraining.core.errors import ConflictError, TrackingError
from retraining.core.naming.vertex import last_id
from retraining.core.report.tracking import vertex as forms
from retraining.hooks import limits
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import TensorboardServiceClient, TensorboardTimeSeries

TRIES = 5
"""Of a change that others were faster with."""
Curves = Mapping[str, tuple[float, ...]]


class TensorBoards:
    """The TensorBoards of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def require(self, board: str) -> None:
        """Check that a TensorBoard is there.

        Args:
            board: Its full name.

        Raises:
            NotFound: It is not.
        """
        call(lambda: self._client.get_tensorboard(name=board, retry=None))

    def draw(self, parent: str, run_key: str, curves: Curves, when: datetime) -> str:
        """Bring a run's curves to what they are; return the full name of the TensorBoard's run.

        Args:
            parent: Full name of the experiment in the TensorBoard, which is made where it is not there.
            run_key: The run's key, which is its id there too.
            curves: What each epoch reported, by name.
            when: The time that all points have: the run's.

        Raises:
            ConflictError: Others were faster each time.
            TrackingError: The run there is another environment's.
        """
        name = self._ensure_run(parent, run_key)
        for _ in range(TRIES):
            series = self._fitting(name, curves)
            missing = [each for each in curves if each not in series]
            if not missing:
                self._write(name, series, curves, when)
                return name
            self._create(name, missing)
        found = f"others made its series {TRIES} times meanwhile"
        raise ConflictError(name, found, "that one of them counts", "The DAG maintain shows it later")

    def _ensure_run(self, parent: str, run_key: str) -> str:
        from google.api_core.exceptions import AlreadyExists, NotFound
        from google.cloud import aiplatform_v1

        name = f"{parent}/runs/{run_key}"
        labels = self._session.labels(forms.BOARD_LABELS)
        try:
            found = call(lambda: self._client.get_tensorboard_run(name=name, retry=None))
        except NotFound:
            pass
        else:
            if not self._session.environment.owns(found.labels, ""):  # of another project's, in a shared TensorBoard
                raise TrackingError(
                    name,
                    f"a run with the labels {dict(found.labels)}",
                    f"this environment's, {self._session.environment.labels}",
                    "Give this environment a TensorBoard of its own, or another name (RETRAINING_ENVIRONMENT)",
                )
            return name
        with contextlib.suppress(AlreadyExists):  # of another run, or made by another task
            board, _, experiment = parent.rpartition("/experiments/")
            whole = aiplatform_v1.TensorboardExperiment(display_name=experiment, labels=labels)
            request = {
                "parent": board,
                "tensorboard_experiment": whole,
                "tensorboard_experiment_id": experiment,
            }
            call(lambda: self._client.create_tensorboard_experiment(request=request, retry=None))
        with contextlib.suppress(AlreadyExists):
            one = aiplatform_v1.TensorboardRun(display_name=run_key, labels=labels)
            asked = {"parent": parent, "tensorboard_run": one, "tensorboard_run_id": run_key}
            call(lambda: self._client.create_tensorboard_run(request=asked, retry=None))
        return name

    def _fitting(self, run: str, curves: Curves) -> dict[str, str]:
        """Return the ids of the series that are there, by their curves; what is of no curve, or longer, goes."""
        from google.api_core.exceptions import NotFound

        request = {"parent": run, "page_size": 1000}
        there = call(
            lambda: list(self._client.list_tensorboard_time_series(request=request, retry=None)),
            timeout_s=limits.LISTING_S,
        )
        found: dict[str, str] = {}
        for series in there:
            if _fits(series, curves):
                found[series.display_name] = last_id(series.name)
                continue
            with contextlib.suppress(NotFound):  # another task was faster
                self._delete(series.name)
        return found

    def _delete(self, series: str) -> None:
        operation = call(lambda: self._client.delete_tensorboard_time_series(name=series, retry=None))
        call(lambda: operation.result(timeout=limits.CALL_S))

    def _create(self, run: str, missing: list[str]) -> None:
        """Make series, all or none; another task may make them at the same time."""
        from google.api_core.exceptions import AlreadyExists
        from google.cloud import aiplatform_v1

        scalar = aiplatform_v1.TensorboardTimeSeries.ValueType.SCALAR
        requests = [
            {
                "parent": run,
                "tensorboard_time_series": aiplatform_v1.TensorboardTimeSeries(
                    display_name=name, value_type=scalar, plugin_name="scalars"
                ),
            }
            for name in missing
        ]
        request = {"parent": run.rpartition("/runs/")[0], "requests": requests}
        with contextlib.suppress(AlreadyExists):
            call(lambda: self._client.batch_create_tensorboard_time_series(request=request, retry=None))

    def _write(self, run: str, series: Mapping[str, str], curves: Curves, when: datetime) -> None:
        for part in forms.points(curves):
            self._write_part(run, series, part, when)

    def _write_part(
        self, run: str, series: Mapping[str, str], part: list[tuple[str, int, float]], when: datetime
    ) -> None:
        from google.cloud import aiplatform_v1

        scalar = aiplatform_v1.TensorboardTimeSeries.ValueType.SCALAR
        data = {
            name: aiplatform_v1.TimeSeriesData(tensorboard_time_series_id=series[name], value_type=scalar)
            for name, _, _ in part
        }
        for name, epoch, value in part:
            point = aiplatform_v1.TimeSeriesDataPoint(step=epoch, wall_time=when, scalar={"value": value})
            data[name].values.append(point)
        request = {"tensorboard_run": run, "time_series_data": list(data.values())}
        call(lambda: self._client.write_tensorboard_run_data(request=request, retry=None))

    @cached_property
    def _client(self) -> TensorboardServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: TensorboardServiceClient = grpc_client(
            aiplatform_v1.TensorboardServiceClient, session, client_options=session.client_options
        )
        return client


def _fits(series: TensorboardTimeSeries, curves: Curves) -> bool:
    return 0 < len(curves.get(series.display_name, ())) >= int(series.metadata.max_step)
