"""VizierService, trials: created by callers, measured, completed, stopped, listed, deleted.

A study is warm when it is given trials that were completed elsewhere (`CreateTrial` with a final measurement): its
algorithm learns from them as from its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Measurement, Study, StudySpec, Trial
from google.protobuf import empty_pb2

from localcloud.vertex.jobs.tuning.search.measurements import (
    ENDED,
    State,
    is_whole,
    optimal_trials,
    select_final,
    sort_key,
)
from localcloud.vertex.jobs.tuning.search.space import read_space, values_of, write_parameters
from localcloud.vertex.resources.store import STUDIES, TRIALS, Store, now
from localcloud.vertex.resources.validation import Finding, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.listing import list_page


class Trials:
    """Answers what is asked of trials."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create_trial(self, request: types.CreateTrialRequest) -> Trial:
        """Add a caller's trial: one that is done, with its final measurement, or one to be tried (REQUESTED)."""
        store, given = self._store, request.trial
        study = store.get(STUDIES, names.check_name(request.parent, "studies", field="parent"))
        values = read_space(study.study_spec).check(values_of(given), "trial.parameters")
        trial = Trial(start_time=now(), measurements=sorted(given.measurements, key=sort_key))
        write_parameters(trial, values)
        if given.state == State.INFEASIBLE or given.infeasible_reason:
            trial.state, trial.infeasible_reason = State.INFEASIBLE, given.infeasible_reason
        elif "final_measurement" in given or given.state == State.SUCCEEDED:
            refuse(_check_final(study.study_spec, given.final_measurement, "trial.final_measurement"))
            trial.state, trial.final_measurement = State.SUCCEEDED, given.final_measurement
        else:
            trial.state = State.REQUESTED
        if trial.state in ENDED:
            trial.client_id, trial.end_time = given.client_id, trial.start_time
        with store.transaction():
            return add_trial(store, study, trial)

    def get_trial(self, request: types.GetTrialRequest) -> Trial:
        """Return the trial as it stands."""
        return self._store.get(TRIALS, _checked(request.name))

    def list_trials(self, request: types.ListTrialsRequest) -> types.ListTrialsResponse:
        """Return trials of a study, in order of their numbers."""
        self._store.get(STUDIES, names.check_name(request.parent, "studies", field="parent"))
        page, token = list_page(trials_of(self._store, request.parent), request, {})
        return types.ListTrialsResponse(trials=page, next_page_token=token)

    def add_trial_measurement(self, request: types.AddTrialMeasurementRequest) -> Trial:
        """Note a measurement of a trial that runs; one at the same step and time is replaced."""
        store, name = self._store, _checked(request.trial_name, "trial_name")
        spec, given = _study_of(store, name).study_spec, request.measurement
        refuse(_check_measurement(spec, given, "measurement"))
        with store.change(TRIALS, name) as trial:
            _require_running(trial)
            kept = [each for each in trial.measurements if sort_key(each) != sort_key(given)]
            trial.measurements = sorted([*kept, given], key=sort_key)
        return trial

    def complete_trial(self, request: types.CompleteTrialRequest) -> Trial:
        """End a trial: with the measurement given, with one of its own, or as infeasible."""
        store, name = self._store, _checked(request.name)
        spec = _study_of(store, name).study_spec
        if "final_measurement" in request and not request.trial_infeasible:
            refuse(_check_final(spec, request.final_measurement, "final_measurement"))
        with store.change(TRIALS, name) as trial:
            if trial.state in ENDED:
                raise FailedPrecondition(
                    f"The Trial {name} is {trial.state.name} already. Expected one that is not done."
                )
            given = request.final_measurement if "final_measurement" in request else None
            final = None if request.trial_infeasible else given or select_final(spec, trial.measurements)
            trial.end_time = now()
            if final is not None:
                trial.state, trial.final_measurement = State.SUCCEEDED, final
            else:
                trial.state = State.INFEASIBLE
                missing = "" if request.trial_infeasible else "The trial was completed without any measurement."
                trial.infeasible_reason = request.infeasible_reason or missing
        return trial

    def stop_trial(self, request: types.StopTrialRequest) -> Trial:
        """Ask whoever runs the trial to stop it."""
        with self._store.change(TRIALS, _checked(request.name)) as trial:
            _require_running(trial)
            trial.state = State.STOPPING
        return trial

    def delete_trial(self, request: types.DeleteTrialRequest) -> empty_pb2.Empty:
        """Remove a trial; its algorithm forgets it too."""
        self._store.delete(TRIALS, _checked(request.name))
        return empty_pb2.Empty()

    def list_optimal_trials(self, request: types.ListOptimalTrialsRequest) -> types.ListOptimalTrialsResponse:
        """Return the best trial, or with several metrics the Pareto front."""
        study = self._store.get(STUDIES, names.check_name(request.parent, "studies", field="parent"))
        trials = optimal_trials(study.study_spec, trials_of(self._store, study.name))
        return types.ListOptimalTrialsResponse(optimal_trials=trials)


def trials_of(store: Store, study_name: str) -> list[Trial]:
    """Return all trials of a study in order of their numbers."""
    return sorted(store.list_under(TRIALS, study_name), key=lambda trial: int(trial.id))


def add_trial(store: Store, study: Study, trial: Trial) -> Trial:
    """Keep a trial under the study's next number; call it within a transaction."""
    number = max((int(other.id) for other in store.list_under(TRIALS, study.name)), default=0) + 1
    trial.id, trial.name = str(number), f"{study.name}/trials/{number}"
    store.insert(TRIALS, trial.name, study.name, trial)
    return trial


def _checked(name: str, field: str = "name") -> str:
    return names.check_name(name, "studies", "trials", field=field)


def _study_of(store: Store, trial_name: str) -> Study:
    return store.get(STUDIES, trial_name.rsplit("/trials/", 1)[0])


def _require_running(trial: Trial) -> None:
    if trial.state not in (State.ACTIVE, State.STOPPING):
        raise FailedPrecondition(
            f"The Trial {trial.name} is {trial.state.name}. Expected ACTIVE or STOPPING: a trial that SuggestTrials"
            " gave and that is not done."
        )


def _check_final(spec: StudySpec, measurement: Measurement, field: str) -> Iterator[Finding]:
    yield from _check_measurement(spec, measurement, field)
    if not is_whole(spec, measurement):
        expected = ", ".join(metric.metric_id for metric in spec.metrics)
        yield f"{field}.metrics", f"Not every metric of the study has a finite value. Expected {expected}."


def _check_measurement(spec: StudySpec, measurement: Measurement, field: str) -> Iterator[Finding]:
    known = {metric.metric_id for metric in spec.metrics}
    if not measurement.metrics:
        yield f"{field}.metrics", f"No metric was given. Expected {', '.join(sorted(known))}."
    for index, metric in enumerate(measurement.metrics):
        if metric.metric_id not in known:
            yield (
                f"{field}.metrics[{index}].metric_id",
                f"The study has no metric {metric.metric_id!r}. Expected one of {', '.join(sorted(known))}.",
            )
    if measurement.step_count < 0:
        yield f"{field}.step_count", f"The step count is {measurement.step_count}. Expected 0 or more."
