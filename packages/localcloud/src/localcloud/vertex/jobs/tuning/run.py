"""One tuning job from queue to end: trials are suggested, run as custom jobs, measured, stopped early, judged.

Comes in: the name of a tuning job in the store. Goes out: its trials, states, times and error in the store.

Everything that decides is in the store, so after a restart of the local cloud the job goes on: trials that ran are run
again with the same number, parameters and folder. The job fails when as many trials failed as `max_failed_trial_count`
says, or when a trial gets no machines.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState, Measurement, Trial
from google.rpc import code_pb2

from localcloud.vertex.jobs.runs import LoggedRun, Outcome, cancelled, failed
from localcloud.vertex.jobs.tuning.search.algorithms import Problem, suggest
from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.search.measurements import ENDED, State, select_final
from localcloud.vertex.jobs.tuning.search.space import Assignment, write_parameters
from localcloud.vertex.jobs.tuning.search.stopping import should_stop
from localcloud.vertex.jobs.tuning.search.study_end import is_over
from localcloud.vertex.jobs.tuning.trial_run import TrialJobs, TrialRun, flags, has_ended
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.store import CUSTOM_JOBS, TUNING_JOBS, Store, now
from localcloud.vertex.wire.errors import ApiError, NotFound

_TICK_S = 0.05
_NO_MACHINES = 8  # google.rpc.Code.RESOURCE_EXHAUSTED


class TuningRun(LoggedRun):
    """One tuning job from queue to end; again after a restart.

    Args:
        trial_jobs: Runs the trials' custom jobs.
        designer: Suggests trials where Bayesian optimization is asked for.
    """

    def __init__(self, machinery: Machinery, trial_jobs: TrialJobs, designer: Designer, name: str) -> None:
        super().__init__(machinery, TUNING_JOBS, name, "Tuning")
        self._trial_jobs = trial_jobs
        self._designer = designer
        self._running: dict[str, TrialRun] = {}
        self._thinking = ThreadPoolExecutor(1, thread_name_prefix="suggest")
        self._asked: Future[list[Assignment]] | None = None
        self._asked_count = 0
        self._no_more = False  # the space is used up, or the study ends by its own conditions

    def _release(self) -> None:
        self._thinking.shutdown(wait=False, cancel_futures=True)

    def _execute(self) -> Outcome:
        self._advance(JobState.JOB_STATE_PENDING)
        job = self._read_job()
        self._say(f"Tuning is preparing: {job.max_trial_count} trials, {job.parallel_trial_count} at a time.")
        for trial in job.trials:
            if trial.state not in ENDED:
                self._start_trial(trial.id)
        while not self._progress.is_cancelled:
            for run in list(self._running.values()):
                self._look_after(run)
            outcome = self._verdict()
            if outcome is not None:
                return outcome
            self._ask_for_trials()
            self._take_suggestions()
            self._progress.wait(_TICK_S)
        return cancelled()

    def _read_job(self) -> HyperparameterTuningJob:
        return self._store.get(TUNING_JOBS, self.name)

    # --- trials: asked for, started, looked after, ended --------------------------------------------------------------

    def _ask_for_trials(self) -> None:
        job = self._read_job()
        free = job.parallel_trial_count - len(self._running)
        count = min(free, job.max_trial_count - len(job.trials))
        if self._no_more or self._asked is not None or count < 1:
            return
        if is_over(job.study_spec, job.create_time, job.trials, now()):
            self._say("The study's own conditions end it: no more trials.")
            self._no_more = True
            if job.study_spec.study_stopping_config.should_stop_asap:
                self._stop_trials()
            return
        problem = Problem(display_name=job.display_name, spec=job.study_spec, trials=list(job.trials))
        self._asked_count = count
        self._asked = self._thinking.submit(suggest, problem, count, self._designer)

    def _take_suggestions(self) -> None:
        if self._asked is None or not self._asked.done():
            return
        suggestions, self._asked = self._asked.result(), None
        if len(suggestions) < self._asked_count:
            self._say("Every point of the search space has been tried: no more trials.")
            self._no_more = True
        for values in suggestions:
            with self._change() as job:
                trial = Trial(id=str(len(job.trials) + 1), state=State.REQUESTED, start_time=now())
                write_parameters(trial, values)
                job.trials.append(trial)
            self._start_trial(trial.id)

    def _start_trial(self, trial_id: str) -> None:
        with self._change() as job:
            trial = _find_trial(job, trial_id)
            trial.state = State.REQUESTED
            run = self._running[trial_id] = TrialRun(self._store, self._trial_jobs, job, trial)
            trial.custom_job = run.job_name
        self._say(f"Trial {trial_id} begins: {' '.join(flags(trial))}")
        run.start()

    def _look_after(self, run: TrialRun) -> None:
        custom_job = run.job()  # read before the measurements: what an ended one reported is all there
        trial = _find_trial(self._read_job(), run.trial_id)
        if trial.state == State.REQUESTED and "start_time" in custom_job:  # a quick one has ended already
            self._mark_running(run.trial_id)
        measurements = run.new_measurements(trial.measurements)
        if measurements is not None:
            self._note(run.trial_id, measurements)
        if has_ended(custom_job):
            self._conclude(run, custom_job)
        elif measurements is not None and not run.stopping:
            self._stop_if_hopeless(run)

    def _mark_running(self, trial_id: str) -> None:
        with self._change() as job:
            _find_trial(job, trial_id).state = State.ACTIVE
            if job.state == JobState.JOB_STATE_PENDING:
                job.state, job.start_time = JobState.JOB_STATE_RUNNING, now()

    def _note(self, trial_id: str, measurements: list[Measurement]) -> None:
        with self._change() as job:
            _find_trial(job, trial_id).measurements = measurements

    def _stop_if_hopeless(self, run: TrialRun) -> None:
        job = self._read_job()
        if should_stop(job.study_spec, job.trials, _find_trial(job, run.trial_id)):
            self._say(f"Trial {run.trial_id} is stopped early: it will not become the best.")
            self._stop_trial(run)

    def _stop_trial(self, run: TrialRun) -> None:
        with self._change() as job:
            _find_trial(job, run.trial_id).state = State.STOPPING
        run.stop()

    def _stop_trials(self) -> None:
        for run in self._running.values():
            self._stop_trial(run)

    def _conclude(self, run: TrialRun, custom_job: CustomJob) -> None:
        succeeded = run.stopping or custom_job.state == JobState.JOB_STATE_SUCCEEDED
        with self._change() as job:
            trial = _find_trial(job, run.trial_id)
            final = select_final(job.study_spec, trial.measurements) if succeeded else None
            if final is not None:
                trial.state, trial.final_measurement = State.SUCCEEDED, final
            else:
                trial.state = State.INFEASIBLE
                ids = ", ".join(metric.metric_id for metric in job.study_spec.metrics)
                missing = f"The trial ended without a measurement of {ids}. Report it with hypertune."
                trial.infeasible_reason = missing if succeeded else custom_job.error.message
            trial.end_time = job.update_time = now()
        del self._running[run.trial_id]
        score = ", ".join(f"{metric.metric_id} {metric.value:g}" for metric in trial.final_measurement.metrics)
        self._say(f"Trial {trial.id} ends: {trial.state.name}, {score or trial.infeasible_reason}")

    # --- the end ------------------------------------------------------------------------------------------------------

    def _verdict(self) -> Outcome | None:
        """Return how the job ends; None while it goes on."""
        job = self._read_job()
        failures = failed_trials(self._store, job)
        if failures and failures[-1].error.code == _NO_MACHINES:
            message = failures[-1].error.message
            error = ApiError(f"A trial got no machines: {message}", code="RESOURCE_EXHAUSTED")
            return failed(error)
        if len(failures) >= failure_limit(job):
            return failed(too_many_failed(job, failures))
        enough = self._no_more or len(job.trials) >= job.max_trial_count
        if enough and not self._running and self._asked is None:
            return Outcome(state=JobState.JOB_STATE_SUCCEEDED)
        return None

    def _finish(self, outcome: Outcome) -> None:
        """End what runs, wait for it, and write the end down."""
        for run in self._running.values():
            run.stop()
        end = time.monotonic() + self._machinery.grace_s + 10.0
        while time.monotonic() < end and not all(has_ended(run.job()) for run in self._running.values()):
            time.sleep(_TICK_S)
        with contextlib.suppress(NotFound), self._change() as job:
            for trial in job.trials:
                if trial.state not in ENDED:
                    trial.state, trial.end_time = State.INFEASIBLE, now()
                    trial.infeasible_reason = f"The tuning job ended before the trial: {outcome.state.name}."
        super()._finish(outcome)


def _find_trial(job: HyperparameterTuningJob, trial_id: str) -> Trial:
    return next(trial for trial in job.trials if trial.id == trial_id)


LEAST_LIMIT = 3  # where the service decides


def failed_trials(store: Store, job: HyperparameterTuningJob) -> list[CustomJob]:
    """Return the custom jobs whose program failed, by trial; one that only measured nothing is none of them."""
    infeasible = [trial.custom_job for trial in job.trials if trial.state == State.INFEASIBLE and trial.custom_job]
    jobs = [store.find_resource(CUSTOM_JOBS, name) for name in infeasible]
    return [each for each in jobs if each is not None and each.state != JobState.JOB_STATE_SUCCEEDED]


def failure_limit(job: HyperparameterTuningJob) -> int:
    """Return how many failed trials fail the job.

    With 0 the service decides, and does not say how; here: half of the trials, at least three, at most all.
    """
    own = max(LEAST_LIMIT, job.max_trial_count // 2)
    return int(job.max_failed_trial_count or min(own, job.max_trial_count))


def too_many_failed(job: HyperparameterTuningJob, failed: Sequence[CustomJob]) -> ApiError:
    """Return the job's error: the code and the message of the last failed trial are in it."""
    last = failed[-1]
    trial = next(trial for trial in job.trials if trial.custom_job == last.name)
    return ApiError(
        f"Too many failed trials: {len(failed)} of {len(job.trials)} failed, the job ends at {failure_limit(job)}"
        f" (max_failed_trial_count). Trial {trial.id}: {last.error.message}",
        code=code_pb2.Code.Name(last.error.code),
    )
