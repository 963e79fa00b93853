"""Calls of experiments and TensorBoards that no run makes: what is refused, and what takes away what a trial made.

In: names of a trial's own things. Out: what the services have, or how they refused. Used by `retraining trial` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from retraining.core.naming.vertex import last_id, location_name
from retraining.core.report.tracking import vertex as forms
from retraining.core.untyped import ProtoJson
from retraining.hooks import limits
from retraining.hooks.experiments import Experiments
from retraining.hooks.session import Session, call
from retraining.hooks.tensorboards import TensorBoards
from retraining.hooks.trial_answers import delete, refusal

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import Context

SDK_WITHIN = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True)
class ReadRun:
    """A run as Google's SDK reads it.

    Attributes:
        parameters: By name.
        metrics: By name.
        state: As the SDK spells it.
        curves: Steps and values by name.
    """

    parameters: Mapping[str, float | int | str]
    metrics: Mapping[str, float]
    state: str
    curves: Mapping[str, Mapping[int, float]]


class TrialExperiments(Experiments):
    """Contexts as no run changes them."""

    def create_again(self, run_id: str) -> str | None:
        """Create a context whose id is taken; return the class of the refusal, or None: there was none."""
        from google.cloud import aiplatform_v1

        context = aiplatform_v1.Context(schema_title=forms.RUN_SCHEMA, schema_version=forms.SCHEMA_VERSION)
        request = {"parent": self._store, "context": context, "context_id": run_id}
        return refusal(lambda: self._client.create_context(request=request, retry=None))

    def metadata_of(self, run_id: str) -> ProtoJson | None:
        """Return a context's metadata; None: there is no such context."""
        found = self._find(run_id)
        return None if found is None else dict(found.metadata or {})

    def replace_metadata(self, run_id: str, metadata: ProtoJson) -> str | None:
        """Change a context twice by one state of it; return the class of the second one's refusal."""
        first = self._require(run_id)
        etag = first.etag
        first.metadata = metadata
        call(lambda: self._client.update_context(request={"context": first}, retry=None))
        second = self._require(run_id)
        second.etag = etag
        return refusal(lambda: self._client.update_context(request={"context": second}, retry=None))

    def adopt_again(self, model: str, run_id: str) -> int:
        """Make a run the child of its experiment once more; return how often it is listed there."""
        experiment = forms.experiment_id(self._session.environment.label, model)
        request = {"context": self._name(experiment), "child_contexts": [self._name(run_id)]}
        call(lambda: self._client.add_context_children(request=request, retry=None))
        return len([each for each in self._children(experiment) if each.name == self._name(run_id)])

    def delete_experiment(self, model: str) -> int:
        """Delete a model's experiment with its runs; return how many runs it had. What is gone stays gone."""
        experiment = forms.experiment_id(self._session.environment.label, model)
        runs = self._children(experiment) if self._find(experiment) else []
        for run in runs:
            self._delete(last_id(run.name))
        delete(lambda: self._client.delete_context(name=self._name(experiment), retry=None))
        return len(runs)

    def _delete(self, run_id: str) -> None:
        artifact = f"{self._store}/artifacts/{forms.artifact_id(run_id)}"
        delete(lambda: self._client.delete_artifact(name=artifact, retry=None))
        delete(lambda: self._client.delete_context(name=self._name(run_id), retry=None))

    def _children(self, experiment: str) -> list[Context]:
        request = {"parent": self._store, "filter": f'parent_contexts:"{self._name(experiment)}"', "page_size": 100}
        return call(lambda: list(self._client.list_contexts(request=request, retry=None)), timeout_s=limits.LISTING_S)

    def _require(self, run_id: str) -> Context:
        found = self._find(run_id)
        if found is None:
            raise LookupError(f"the context {run_id} is not there")
        return found


class TrialBoards(TensorBoards):
    """TensorBoards that come and go."""

    def create_board(self, display_name: str) -> str:
        """Make a TensorBoard; return its name. Waits until it is there."""
        from google.cloud import aiplatform_v1

        session = self._session
        board = aiplatform_v1.Tensorboard(
            display_name=display_name, labels=session.labels({}), **session.placement.encryption
        )
        request = {"parent": self._location, "tensorboard": board}
        operation = call(lambda: self._client.create_tensorboard(request=request, retry=None))
        made = call(lambda: operation.result(timeout=limits.ENDPOINT_S), timeout_s=limits.ENDPOINT_S)
        return str(made.name)

    def delete_boards(self, display_name: str) -> int:
        """Delete this environment's TensorBoards of a name, with what they have; return how many there were."""
        request = {"parent": self._location, "filter": f'display_name="{display_name}"'}
        found = call(
            lambda: list(self._client.list_tensorboards(request=request, retry=None)), timeout_s=limits.LISTING_S
        )
        boards = [board for board in found if self._session.environment.owns(board.labels, "")]
        for board in boards:
            self._delete_board(str(board.name))
        return len(boards)

    def _delete_board(self, name: str) -> None:
        delete(lambda: self._client.delete_tensorboard(name=name, retry=None))

    def create_again(self, run_name: str, display_name: str) -> str | None:
        """Create a series of a name that is taken; return the class of the refusal, or None: there was none."""
        from google.cloud import aiplatform_v1

        scalar = aiplatform_v1.TensorboardTimeSeries.ValueType.SCALAR
        series = aiplatform_v1.TensorboardTimeSeries(display_name=display_name, value_type=scalar)
        request = {"parent": run_name, "tensorboard_time_series": series}
        return refusal(lambda: self._client.create_tensorboard_time_series(request=request, retry=None))

    def last_steps(self, run_name: str) -> dict[str, int]:
        """Return the last step of each series of a run, as its list says it."""
        there = call(
            lambda: list(self._client.list_tensorboard_time_series(parent=run_name, retry=None)),
            timeout_s=limits.LISTING_S,
        )
        return {each.display_name: int(each.metadata.max_step) for each in there}

    @property
    def _location(self) -> str:
        return location_name(self._session.project, self._session.region)


def read_by_sdk(session: Session, experiment: str, run_key: str) -> ReadRun:
    """Return a run as Google's SDK reads it, by classes that nothing else uses here.

    Args:
        session: Where and as whom: the SDK keeps it for this process.
        experiment: Id of the experiment.
        run_key: The run's.

    Raises:
        OutOfTimeError: It did not come to an end.
    """

    def read() -> ReadRun:
        from google.cloud import aiplatform

        aiplatform.init(project=session.project, location=session.region, credentials=session.credentials)
        run = aiplatform.ExperimentRun(run_key, experiment=experiment)
        frame = run.get_time_series_data_frame()
        names = [name for name in frame.columns if name not in ("step", "wall_time")]
        curves = {name: dict(frame[["step", name]].dropna().values.tolist()) for name in names}
        return ReadRun(
            parameters=run.get_params(), metrics=run.get_metrics(), state=str(run.get_state()), curves=curves
        )

    with limits.limited(SDK_WITHIN.total_seconds()):
        return limits.call_in_thread(read)
