"""Room for a job under its region's quota: asked for before the job is created, given back when it has ended.

In: the hooks, the task instance, its job. Out: whether it may begin now; what it waits for goes to the log. Without
`include/quotas.yaml`, or where that does not name the region, nothing is asked and nothing is limited. See
`core.jobs.places` for the rules.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.amounts import accelerator_names, fitting_amounts
from retraining.core.catalog.hardware import load_hardware
from retraining.core.errors import QuotaError, SpecError
from retraining.core.jobs.job import Job, machines_of
from retraining.core.jobs.places import Answer, Cause, Places, Wish, ask, running_jobs
from retraining.core.naming import dags, storage, vertex
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.quotas import FILE, Quotas, load_quotas
from retraining.core.spec.teams import spec_path
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.dag_run import run_type

LOGGER = logging.getLogger(__name__)
TRIES = 5
PAUSE_S = 0.2
CAUSES = {"score": Cause.SCORING, dags.MONITOR: Cause.MONITOR, dags.WALK_FORWARD: Cause.WALK_FORWARD}


class JobPlace:
    """A job's place among those of its region.

    Args:
        cloud: The hooks.
        context: Airflow's, of the task that wants it.
        key: Of the job.
        custom_job: The job in proto-JSON.

    Attributes:
        ahead: How many were before it when it asked last.
    """

    def __init__(self, cloud: CloudPort, context: Context, key: str, custom_job: Mapping[str, Any]) -> None:
        self._cloud, self._context, self._key = cloud, context, key
        self._machines = machines_of(custom_job)
        self._region = cloud.settings.region
        self.ahead = 0
        self._uri = storage.places_uri(cloud.settings.bucket, self._region)

    def take(self) -> bool:
        """Return whether the job may begin; False: there is no room yet, or others came before.

        Raises:
            SpecError: `quotas.yaml` is wrong.
            QuotaError: There will never be room, or there was none in time.
        """
        include = include_path()
        quotas = load_quotas(include)
        limits = quotas.limits(self._region) if quotas else {}
        if quotas is None or not limits:
            return True
        hardware = load_hardware(include)
        quotas.require_known(hardware.regions, accelerator_names(hardware))
        ti: Any = self._context["ti"]
        named = f"the job {ti.task_id} of {ti.dag_id}"
        needs = fitting_amounts(self._machines, limits, hardware, self._region, named)
        wish = _wish(self._context, include, needs)
        for tried in range(TRIES):
            now = self._cloud.clock.now()  # before both looks: what lands after the list is expected yet
            places, generation = self._read()
            running = running_jobs(self._cloud.jobs.find_active(vertex.OWNER_LABEL), hardware)
            answer = ask(places, self._key, wish, limits, running, now)
            self.ahead = answer.ahead
            if not answer.granted and now >= answer.since + timedelta(hours=quotas.wait_hours):
                self._write(places.without((self._key,)), generation)
                raise self._too_late(answer, quotas, named)
            if not answer.news or self._write(answer.places, generation):
                self._tell(answer, quotas)
                return answer.granted
            self._cloud.clock.sleep(PAUSE_S * (1 + tried))
        LOGGER.info("others took places in %s at the same time; the next poke asks again", self._region)
        return False

    def leave(self, job: Job) -> None:
        """Give the place of a job that has ended back at once; else it would come free a little later."""
        quotas = load_quotas(include_path())
        if quotas is None or not quotas.limits(self._region):
            return
        places, generation = self._read()
        if (left := places.left(self._key, job)) != places:
            self._write(left, generation)

    def _read(self) -> tuple[Places, int]:
        now = self._cloud.clock.now()
        data, generation = self._cloud.artifacts.read_generation(self._uri)
        places = Places.parse(data, self._uri, now) if data else Places(entries={})
        if places.closed_until and places.closed_until > now and not places.entries:
            LOGGER.warning("%s cannot be read: it is begun anew, and no job before %s", self._uri, places.closed_until)
        return places, generation

    def _write(self, places: Places, generation: int) -> bool:
        return self._cloud.artifacts.write_if(self._uri, places.to_bytes(), generation) is not None

    def _tell(self, answer: Answer, quotas: Quotas) -> None:
        if answer.granted:
            LOGGER.info("there is room in %s for this job", self._region)
            return
        LOGGER.info(
            "waits since %s for room in %s under %s: %s; %d before it; given up after %g hours",
            f"{answer.since:%Y-%m-%d %H:%M} UTC",
            self._region,
            FILE,
            answer.short,
            answer.ahead,
            quotas.wait_hours,
        )

    def _too_late(self, answer: Answer, quotas: Quotas, named: str) -> QuotaError:
        return QuotaError(
            f"{FILE}, regions.{self._region}",
            f"{named} waited {quotas.wait_hours:g} hours for room: {answer.short}, with {answer.ahead} before it",
            "room within wait_hours",
            "Raise the quota, the model's priority or wait_hours, or let fewer models run at once; then clear the task",
        )


def _wish(context: Context, include: Path, needs: Mapping[str, int]) -> Wish:
    ti: Any = context["ti"]
    model = dags.find_model_of_dag(ti.dag_id) or ti.dag_id
    cause = CAUSES.get(dags.kind_of_dag(ti.dag_id), Cause.RUN)
    if cause is Cause.RUN and run_type(context["dag_run"]) == "backfill":
        cause = Cause.BACKFILL
    return Wish(model=model, task=ti.task_id, cause=cause, priority=_priority(include, model), needs=needs)


def _priority(include: Path, model: str) -> int:
    """Return what the model's file says now, so that it can be changed while a job waits."""
    try:
        return load_spec(spec_path(include, model)).priority
    except SpecError:  # the run goes by its plan; the file is refused where it is planned
        return int(ModelSpec.model_fields["priority"].default)
