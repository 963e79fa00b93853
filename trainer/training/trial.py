"""A trial of a study: a training that is scored and not stored.

Comes in: the request of all trials of a study, this one's flags, and its number from the service
(`CLOUD_ML_TRIAL_ID`). Goes out: a request of its own below the common addresses; each epoch's metric in the file that
the service reads (`CLOUD_ML_HP_METRIC_FILE`); and at the end a result, which says that this trial need not run again.
A later tuning job of the same run counts its trials from 1 again: a result is a trial's own by its request's digest.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.contract.documents import HyperparameterValue, TrainRequest
from trainer.contract.reading import digest
from trainer.contract.results import REQUEST_DIGEST, trial_result
from trainer.errors import RequestError
from trainer.storage import Storage, join_uri

LOGGER = logging.getLogger(__name__)
PRIOR = "prior"
_NUMBER = "CLOUD_ML_TRIAL_ID"
# As cloudml-hypertune 0.1.0.dev6, which reads the same variable and keeps as many lines.
_FILE = "CLOUD_ML_HP_METRIC_FILE"
_DEFAULT_FILE = "/tmp/hypertune/output.metrics"  # noqa: S108 - where the service looks
_KEPT_LINES = 100


def place(
    request: TrainRequest, flags: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[TrainRequest, dict[str, str]]:
    """Return a trial's own request, and the flags that are hyperparameters.

    Args:
        flags: Of the command line; `prior` chooses one of the request's priors as the hyperparameters.

    Raises:
        RequestError: The process is no trial of a tuning job, or there is no such prior.
    """
    number = environ.get(_NUMBER, "")
    if not number.isdigit():
        raise RequestError(
            f"trial_metric {request.trial_metric!r}",
            f"{_NUMBER} is {number!r}",
            "the number of a trial, which a tuning job gives",
            f"Train without trial_metric, or set {_NUMBER}=1 to try a trial by hand",
        )
    hyperparameters = {name: value for name, value in flags.items() if name != PRIOR}
    training = request.training
    if PRIOR in flags:
        merged = {**training.hyperparameters, **_prior(request.priors, flags[PRIOR])}
        training = dataclasses.replace(training, hyperparameters=merged)
    placed = dataclasses.replace(
        request,
        training=training,
        model_uri=join_uri(request.model_uri, number),
        checkpoint_uri=join_uri(request.checkpoint_uri, number),
        tensorboard_uri=join_uri(request.tensorboard_uri, number),
        report_uri=join_uri(request.report_uri.removesuffix(".json"), f"{number}.json"),
    )
    return placed, hyperparameters


def _prior(priors: Sequence[Mapping[str, HyperparameterValue]], given: str) -> Mapping[str, HyperparameterValue]:
    # The values of a discrete parameter are doubles: 2 may come as 2.0.
    try:
        return priors[range(len(priors)).index(float(given))]  # type: ignore[arg-type]  # 2.0 equals 2
    except ValueError:
        raise RequestError(f"flag --{PRIOR}", f"{given!r}", f"a number from 0 to {len(priors) - 1}") from None


class Measurements:
    """Reports a trial's metric as cloudml-hypertune does: a file of JSON lines, written anew with each report.

    An epoch that this process has reported is not reported again; the service replaces one that an earlier process did.

    Args:
        environ: Names the file, and the trial.
        clock: Gives seconds since 1970.
    """

    def __init__(self, metric: str, environ: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self.metric = metric
        self.path = Path(environ.get(_FILE) or _DEFAULT_FILE)
        self._trial, self._clock = environ.get(_NUMBER, "0"), clock
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._epochs: set[int] = set()

    def report(self, value: float, epoch: int) -> None:
        """Report the value after an epoch, counted from 1."""
        if epoch in self._epochs:
            return
        self._epochs.add(epoch)
        line = {
            "timestamp": self._clock(),
            "trial": self._trial,
            self.metric: str(float(value)),
            "global_step": str(epoch),
            "checkpoint_path": "",
        }
        self._lines.append(json.dumps(line, sort_keys=True))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(f"{line}\n" for line in self._lines), encoding="utf-8")

    def report_all(self, history: Mapping[str, Sequence[float]]) -> int:
        """Report every epoch of a training's history that has a number; gives how many."""
        values = history.get(self.metric, ())
        finite = [(epoch, value) for epoch, value in enumerate(values, start=1) if math.isfinite(value)]
        for epoch, value in finite:
            self.report(value, epoch)
        return len(finite)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial that runs in this process.

    Attributes:
        request: Its own.
        storage: Where its result is.
        measurements: What it reports.
    """

    request: TrainRequest
    storage: Storage
    measurements: Measurements

    @classmethod
    def of(cls, request: TrainRequest, storage: Storage) -> Trial | None:
        """Return the trial of a request; None when it is none."""
        if request.trial_metric is None:
            return None
        if storage.exists(request.report_uri) and trial_result(request, storage) is None:
            LOGGER.warning("train: %s is of a trial with another request; this one is trained", request.report_uri)
        measurements = Measurements(request.trial_metric, os.environ)
        return cls(request=request, storage=storage, measurements=measurements)

    def report_again(self) -> None:
        """Report the measurements of a trial that came to its end before."""
        result = trial_result(self.request, self.storage)
        self.measurements.report_all(result["history"] if result else {})

    def finish(self, hyperparameters: Mapping[str, Any], history: Mapping[str, Sequence[float]], ending: str) -> None:
        """Report what is missing, write the result, drop the checkpoints.

        Args:
            history: One number per epoch, by name.
        """
        values = self.measurements.report_all(history)
        if not values:
            ending = f"{ending}; no epoch has {self.measurements.metric}: the trial is infeasible"
        result = {
            "trial": self.request.report_uri.rsplit("/", 1)[-1].removesuffix(".json"),
            REQUEST_DIGEST: digest(self.request),
            "metric": self.measurements.metric,
            "hyperparameters": hyperparameters,
            "history": {name: list(numbers) for name, numbers in history.items()},
            "words": ending,
        }
        self.storage.replace(self.request.report_uri, (json.dumps(result, indent=2, sort_keys=True) + "\n").encode())
        for item in self.storage.list_objects(self.request.checkpoint_uri + "/"):
            self.storage.delete_object(item.uri)
        LOGGER.info("train: %s", ending)
