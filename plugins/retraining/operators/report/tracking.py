"""Runs in experiment trackers: each as it ends, and by `maintain` those that a tracker has not, or not as they are.

A tracker's own entry says what it was last told, so nothing beside it is kept. Whatever goes wrong is a warning: a run
counts without a tracker.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta

from airflow.sdk import Context

from retraining.core.documents.document import read_object
from retraining.core.errors import RetrainingError, TrackingError
from retraining.core.naming import pages, storage
from retraining.core.report.run import TASK_OF_KIND, Run, read_failures, read_reported_run
from retraining.core.report.tracking.tracked_run import Status, TrackedRun, track
from retraining.core.settings import include_path
from retraining.core.spec.teams import find_specs, plain_name
from retraining.hooks.ports import ArtifactsPort, CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.links import airflow_address

LOGGER = logging.getLogger(__name__)
CATCH_UP = timedelta(days=30)
"""Runs that wrote something since are looked at by `maintain`."""


class TrackRunsOperator(CloudOperator):
    """Bring the runs of the last 30 days into the environment's experiment trackers, where they are not yet.

    A tracker that fails is left alone until the next day; the others go on.

    Returns:
        How many runs each tracker was told of.
    """

    def act(self, cloud: CloudPort, context: Context) -> dict[str, int]:
        """List, compare, track."""
        del context
        told: dict[str, int] = {}
        for tracker in dict.fromkeys(cloud.settings.tracking):
            told[tracker] = 0
            try:
                for model in map(plain_name, find_specs(include_path())):
                    told[tracker] += _catch_up(cloud, tracker, model)
            except TrackingError as error:
                LOGGER.warning("left for the next day: %s", error)
        return told


def track_run(cloud: CloudPort, folder_uri: str) -> None:
    """Bring a run into the environment's trackers; whatever goes wrong stands in the log.

    Args:
        cloud: The hooks.
        folder_uri: Of the run's documents.
    """
    trackers = dict.fromkeys(cloud.settings.tracking)
    if not trackers:
        return
    try:
        run = tracked_run(cloud.artifacts, folder_uri)
        if run is None:
            return
        for tracker in trackers:
            try:
                LOGGER.info("shown in %s as %s", tracker, cloud.trackers.track(tracker, run))
            except TrackingError as error:
                LOGGER.warning("not shown in %s yet: %s", tracker, error)
    except Exception as error:  # whatever it is: the run's own page is there
        LOGGER.warning("shown in no tracker yet: %s", type(error).__name__, exc_info=True)


def tracked_run(artifacts: ArtifactsPort, folder_uri: str) -> TrackedRun | None:
    """Return a run as trackers have it, by its stored documents; None: it has no plan."""
    run = _read_run(artifacts, folder_uri)
    if run is None:
        return None
    return track(run, pages.page_address(storage.report_page_uri(folder_uri), airflow_address()))


def _read_run(artifacts: ArtifactsPort, folder_uri: str) -> Run | None:
    uris = {kind: storage.document_uri(folder_uri, kind) for kind in TASK_OF_KIND}
    failed = artifacts.list_uris(storage.failures_uri(folder_uri), suffix=".json")
    stored: Mapping[str, bytes] = artifacts.read_some([*uris.values(), *failed])
    documents = {kind: read_object(stored[uri], uri) for kind, uri in uris.items() if uri in stored}
    if "plan" not in documents:
        return None
    return read_reported_run(documents, read_failures({uri: stored[uri] for uri in failed if uri in stored}))


def _catch_up(cloud: CloudPort, tracker: str, model: str) -> int:
    """Tell a tracker of a model's runs that ended and that it has not as they are; return of how many."""
    folders = list(_recent(cloud, model))
    known = cloud.trackers.digests(tracker, model) if folders else {}
    told = 0
    for folder_uri in folders:
        try:
            run = tracked_run(cloud.artifacts, folder_uri)
            if run is None or run.status == Status.RUNNING or known.get(run.run_key) == run.digest:
                continue
        except (RetrainingError, ValueError) as error:  # one broken run does not hide the others
            LOGGER.warning("%s is left out: %s", folder_uri, error)
            continue
        cloud.trackers.track(tracker, run)
        told += 1
    if told:
        LOGGER.info("%s: %d runs of %s", tracker, told, model)
    return told


def _recent(cloud: CloudPort, model: str) -> Iterator[str]:
    """Yield the folders of a model's runs that wrote something of late, in their order."""
    root = storage.runs_uri(cloud.settings.bucket, model)
    since = cloud.clock.now() - CATCH_UP
    found = {pages.run_page_of(model, each.uri) for each in cloud.objects.walk(root) if each.created >= since}
    for _, key in sorted(filter(None, found)):
        yield storage.run_uri(cloud.settings.bucket, model, key)
