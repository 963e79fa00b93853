"""JobService, hyperparameter tuning jobs: checked as the service does, run as trials, which are custom jobs.

Everything that decides is in the store, so a tuning job goes on after a restart.
"""

from __future__ import annotations

from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, JobState

from localcloud.vertex.jobs.family import JobFamily
from localcloud.vertex.jobs.tuning.checks import CheckJobSpec, check_tuning_job
from localcloud.vertex.jobs.tuning.run import TuningRun
from localcloud.vertex.jobs.tuning.search.algorithms import needs_designer
from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.trial_run import TrialJobs
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.operations import Operations
from localcloud.vertex.resources.store import CUSTOM_JOBS, TUNING_JOBS
from localcloud.vertex.resources.validation import refuse


class TuningJobs(JobFamily):
    """The tuning jobs.

    Args:
        trial_jobs: Runs the trials' custom jobs.
        designer: Suggests trials where Bayesian optimization is asked for; it ends with the jobs.
        check_job_spec: Knows the rules of custom jobs, which their trials are.
    """

    kind = TUNING_JOBS
    first_state = JobState.JOB_STATE_QUEUED
    outlives_server = True

    def __init__(
        self,
        machinery: Machinery,
        operations: Operations,
        trial_jobs: TrialJobs,
        designer: Designer,
        check_job_spec: CheckJobSpec,
    ) -> None:
        super().__init__(machinery.store, operations)
        self._machinery = machinery
        self._trial_jobs = trial_jobs
        self._check_job_spec = check_job_spec
        self._designer = designer

    def _check(self, job: HyperparameterTuningJob) -> None:
        refuse(check_tuning_job(job, self._check_job_spec))
        if needs_designer(job.study_spec):
            self._designer.check_ready()

    def _make_run(self, name: str) -> TuningRun:
        return TuningRun(self._machinery, self._trial_jobs, self._designer, name)

    def forget(self, name: str) -> None:
        """Remove a job that has ended, with its trials' custom jobs and their files."""
        for job in self._machinery.store.list_under(CUSTOM_JOBS, name):
            self._trial_jobs.forget(job.name)
        super().forget(name)

    def _abandon(self) -> None:
        super()._abandon()
        self._designer.close()
