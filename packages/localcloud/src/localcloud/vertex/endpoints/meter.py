"""Measuring what an endpoint answers: the code of each request, the time of the model and the time around it.

Comes in: requests as they begin and end. Goes out: measurements, which Cloud Monitoring lists.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from http import HTTPStatus

from localcloud.logs.metrics.measurements import Measurement, Measurements
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError


class Measured:
    """One request under way."""

    def __init__(self) -> None:
        self.model_s = 0.0

    @contextlib.contextmanager
    def model_time(self) -> Iterator[None]:
        """Take the time inside for the model's."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.model_s = time.monotonic() - begin


class Meter:
    """Measures requests.

    Args:
        measurements: Where they go.
        clock: Gives the time of a request.
    """

    def __init__(self, measurements: Measurements, clock: Callable[[], datetime]) -> None:
        self._measurements = measurements
        self._clock = clock

    @contextlib.contextmanager
    def measure(self, endpoint_name: str, deployed_model_id: str, instances: int) -> Iterator[Measured]:
        """Measure the request inside; an error of the API is measured by its code, and raised."""
        measured, begin, code = Measured(), time.monotonic(), HTTPStatus.INTERNAL_SERVER_ERROR.value
        try:
            yield measured
            code = HTTPStatus.OK.value
        except ApiError as error:
            code = error.http_status
            raise
        finally:
            location = names.parse_location(str(names.location_of(endpoint_name)))
            self._measurements.add(
                Measurement(
                    time_ns=int(self._clock().timestamp() * 1e9),
                    project=location.project,
                    location=location.region,
                    endpoint_id=names.last_part(endpoint_name),
                    deployed_model_id=deployed_model_id,
                    response_code=code,
                    instances=instances,
                    model_ms=measured.model_s * 1000,
                    overhead_ms=(time.monotonic() - begin - measured.model_s) * 1000,
                )
            )
