"""VizierService, what a study says of itself: which trials to run next, and whether a running one should stop.

Both are long-running operations. A client gets its own unfinished trials again before anything new; then trials that
were requested by callers; then what the algorithm suggests.
"""

from __future__ import annotations

import threading
from collections import defaultdict

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Study, Trial
from google.longrunning import operations_pb2

from localcloud.vertex.jobs.tuning.search.algorithms import Problem, suggest
from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.search.measurements import ENDED, State
from localcloud.vertex.jobs.tuning.search.space import write_parameters
from localcloud.vertex.jobs.tuning.search.stopping import should_stop
from localcloud.vertex.jobs.tuning.search.study_end import is_over
from localcloud.vertex.jobs.tuning.vizier.trials import add_trial, trials_of
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import STUDIES, TRIALS, Store, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition, InvalidArgument

# Suggestions of one study are made one after another: each depends on the trials before it.
_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class Suggestions:
    """Answers what is asked of a study's algorithm.

    Args:
        store: Keeps studies and trials.
        designer: Suggests trials where Bayesian optimization is asked for.
    """

    def __init__(self, store: Store, operations: Operations, designer: Designer) -> None:
        self._store = store
        self._operations = operations
        self._designer = designer

    def suggest_trials(self, request: types.SuggestTrialsRequest) -> operations_pb2.Operation:
        """Return a client's next trials."""
        study = self._store.get(STUDIES, names.check_name(request.parent, "studies", field="parent"))
        if request.suggestion_count < 1:
            raise InvalidArgument(
                f"suggestion_count is {request.suggestion_count}. Expected 1 or more.", field="suggestion_count"
            )
        if len(request.contexts) not in (0, request.suggestion_count):
            raise InvalidArgument(
                f"{len(request.contexts)} contexts were given. Expected none or suggestion_count.", field="contexts"
            )

        def work(progress: Progress) -> types.SuggestTrialsResponse:
            began = now()
            with _LOCKS[study.name]:
                progress.check()
                trials = _next_trials(self._store, self._designer, study, request.client_id, request.suggestion_count)
            return types.SuggestTrialsResponse(
                trials=trials, study_state=self._store.get(STUDIES, study.name).state, start_time=began, end_time=now()
            )

        metadata = types.SuggestTrialsMetadata(client_id=request.client_id)
        return self._operations.start("VizierService.SuggestTrials", study.name, metadata, work)

    def check_trial_early_stopping_state(
        self, request: types.CheckTrialEarlyStoppingStateRequest
    ) -> operations_pb2.Operation:
        """Return whether a trial should stop: by the study's rule, or because someone stopped it."""
        store = self._store
        name = names.check_name(request.trial_name, "studies", "trials", field="trial_name")
        trial, study_name = store.get(TRIALS, name), name.rsplit("/trials/", 1)[0]
        if trial.state in ENDED:
            raise FailedPrecondition(f"The Trial {name} is {trial.state.name} already. Expected one that is not done.")

        def work(progress: Progress) -> types.CheckTrialEarlyStoppingStateResponse:
            progress.check()
            study, trials = store.get(STUDIES, study_name), trials_of(store, study_name)
            with store.change(TRIALS, name) as trial:
                if trial.state == State.ACTIVE and should_stop(study.study_spec, trials, trial):
                    trial.state = State.STOPPING
            return types.CheckTrialEarlyStoppingStateResponse(should_stop=trial.state == State.STOPPING)

        # The API's own spelling.
        metadata = types.CheckTrialEarlyStoppingStateMetatdata(study=study_name, trial=name)
        return self._operations.start("VizierService.CheckTrialEarlyStoppingState", name, metadata, work)


def _next_trials(store: Store, designer: Designer, study: Study, client_id: str, count: int) -> list[Trial]:
    trials = trials_of(store, study.name)
    chosen = [trial for trial in trials if trial.client_id == client_id and trial.state == State.ACTIVE][:count]
    requested = [trial for trial in trials if trial.state == State.REQUESTED]
    for trial in requested[: count - len(chosen)]:
        with store.change(TRIALS, trial.name) as changed:
            changed.state, changed.client_id, changed.start_time = State.ACTIVE, client_id, now()
        chosen.append(changed)
    missing = count - len(chosen)
    if missing and store.get(STUDIES, study.name).state == Study.State.ACTIVE:
        chosen.extend(_suggested(store, designer, study, client_id, missing))
    return chosen


def _suggested(store: Store, designer: Designer, study: Study, client_id: str, count: int) -> list[Trial]:
    """Return new trials of the algorithm; a study that can give no more is COMPLETED."""
    trials = trials_of(store, study.name)
    over = is_over(study.study_spec, study.create_time, trials, now())
    problem = Problem(display_name=study.display_name, spec=study.study_spec, trials=trials)
    suggestions = [] if over else suggest(problem, count, designer)
    added = []
    with store.transaction():
        for values in suggestions:
            trial = Trial(state=State.ACTIVE, client_id=client_id, start_time=now())
            write_parameters(trial, values)
            added.append(add_trial(store, study, trial))
        if len(added) < count:
            with store.change(STUDIES, study.name) as changed:
                changed.state = Study.State.COMPLETED
    return added
