"""Vertex AI Experiments: contexts of ML Metadata, under ids that the caller makes, so that nothing is there twice.

In: `TrackedRun` values. Out: contexts as `google.cloud.aiplatform` reads them. Its own classes keep the experiment in a
global, and log parameters and metrics in two calls: here a run is there whole, or not.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from retraining.core.errors import ConflictError, TrackingError
from retraining.core.naming.vertex import location_name
from retraining.core.report.tracking import vertex as forms
from retraining.core.report.tracking.tracked_run import TrackedRun
from retraining.core.untyped import ProtoJson
from retraining.hooks import limits
from retraining.hooks.session import Session, call
from retraining.hooks.tensorboards import TensorBoards

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import Context, MetadataServiceClient

TRIES = 5
"""Of a change that others were faster with."""


class Experiments:
    """The experiments of one region.

    Args:
        session: Where and as whom.
        board: Full name of the TensorBoard that has the epochs of runs; None: they are nowhere.
    """

    def __init__(self, session: Session, board: str | None = None) -> None:
        self._session = session
        self._board = board or ""
        self._boards = TensorBoards(session)
        self._location = location_name(session.project, session.region)
        self._store = f"{self._location}/metadataStores/{forms.STORE}"

    def track(self, run: TrackedRun) -> str:
        """Bring a run to what it is, unless all of it is there; return its id.

        Raises:
            TrackingError: The experiment is another environment's.
            ConflictError: Others were faster each time.
        """
        experiment = self._ensure_experiment(forms.experiment_id(self._session.environment.label, run.model))
        run_id = forms.run_id(experiment, run.run_key)
        metadata = forms.run_metadata(run, self._board)
        for _ in range(TRIES):
            there = self._find(run_id) or self._create(run_id, run.run_key, forms.RUN_SCHEMA, metadata)
            shows = there is not None and self._shows(there, run)
            if shows and _is_child(there, experiment):
                return run_id
            self._draw(experiment, run_id, run)
            if there is None or shows or self._update(there, metadata):
                self._adopt(experiment, run_id, there)
                return run_id
        found = f"others wrote it {TRIES} times meanwhile"
        raise ConflictError(run_id, found, "that one of the writes counts", "The DAG maintain shows it later")

    def digests(self, model: str) -> dict[str, str]:
        """Return what was last said of each run of a model's experiment, by run key."""
        from google.api_core.exceptions import NotFound

        if self._board:
            self._boards.require(self._board)
        experiment = forms.experiment_id(self._session.environment.label, model)
        parent = f'parent_contexts:"{self._name(experiment)}"'
        request = {"parent": self._store, "filter": f'schema_title="{forms.RUN_SCHEMA}" AND {parent}', "page_size": 100}
        try:
            found = call(
                lambda: list(self._client.list_contexts(request=request, retry=None)), timeout_s=limits.LISTING_S
            )
        except NotFound:  # there is no store yet
            return {}
        return {each.display_name: self._told(each) for each in found}

    def _ensure_experiment(self, experiment: str) -> str:
        """Return the id of an experiment of this environment, which is there then."""
        found = self._find(experiment)
        if found is None:
            self._ensure_store()
            self._create(experiment, experiment, forms.EXPERIMENT_SCHEMA, forms.EXPERIMENT_METADATA)
        elif not self._session.environment.owns(found.labels, "") or found.schema_title != forms.EXPERIMENT_SCHEMA:
            raise TrackingError(
                self._name(experiment),
                f"a context of {found.schema_title} with the labels {dict(found.labels)}",
                f"this environment's experiment, {self._session.environment.labels}",
                "Give this environment another name (RETRAINING_ENVIRONMENT), or delete what is there",
            )
        return experiment

    def _ensure_store(self) -> None:
        """Make the region's store of metadata, unless it is there."""
        from google.api_core.exceptions import AlreadyExists, NotFound
        from google.cloud import aiplatform_v1

        try:
            call(lambda: self._client.get_metadata_store(name=self._store, retry=None))
        except NotFound:
            store = aiplatform_v1.MetadataStore(**self._session.placement.encryption)
            request = {"parent": self._location, "metadata_store": store, "metadata_store_id": forms.STORE}
            try:
                operation = call(lambda: self._client.create_metadata_store(request=request, retry=None))
                call(lambda: operation.result(timeout=limits.CALL_S))
            except AlreadyExists:
                return

    def _find(self, context_id: str) -> Context | None:
        from google.api_core.exceptions import NotFound

        try:
            return call(lambda: self._client.get_context(name=self._name(context_id), retry=None))
        except NotFound:
            return None

    def _create(self, context_id: str, display_name: str, schema: str, metadata: ProtoJson) -> Context | None:
        """Make a context; return it where another one of its id was faster, or an answer got lost: None otherwise."""
        from google.api_core.exceptions import AlreadyExists
        from google.cloud import aiplatform_v1

        context = aiplatform_v1.Context(
            display_name=display_name,
            schema_title=schema,
            schema_version=forms.SCHEMA_VERSION,
            metadata=metadata,
            labels=self._session.labels({}),
        )
        request = {"parent": self._store, "context": context, "context_id": context_id}
        try:
            call(lambda: self._client.create_context(request=request, retry=None))
        except AlreadyExists:
            return self._find(context_id)
        return None

    def _shows(self, there: Context, run: TrackedRun) -> bool:
        return self._told(there) == run.digest

    def _told(self, there: Context) -> str:
        """Return what a run was last told; empty: its epochs are in another TensorBoard, or in none."""
        metadata = _metadata(there)
        return str(metadata.get(forms.DIGEST_KEY, "")) if metadata.get(forms.BOARD_KEY, "") == self._board else ""

    def _draw(self, experiment: str, run_id: str, run: TrackedRun) -> None:
        """Bring a run's epochs into the TensorBoard, and let the run's context refer to them."""
        from google.api_core.exceptions import AlreadyExists
        from google.cloud import aiplatform_v1

        if not self._board or not run.curves:
            return
        drawn = self._boards.draw(f"{self._board}/experiments/{experiment}", run.run_key, run.curves, run.as_of)
        name = f"{self._store}/artifacts/{forms.artifact_id(run_id)}"
        fields = {"uri": f"https://{self._client.api_endpoint}/v1/{drawn}", "metadata": forms.artifact_metadata(drawn)}
        live = aiplatform_v1.Artifact.State.LIVE
        artifact = aiplatform_v1.Artifact(
            schema_title=forms.ARTIFACT_SCHEMA, schema_version=forms.SCHEMA_VERSION, state=live, **fields
        )
        request = {"parent": self._store, "artifact": artifact, "artifact_id": forms.artifact_id(run_id)}
        try:
            call(lambda: self._client.create_artifact(request=request, retry=None))
        except AlreadyExists:  # maybe of another TensorBoard
            change = {"artifact": {"name": name, **fields}, "update_mask": {"paths": ["uri", "metadata"]}}
            call(lambda: self._client.update_artifact(request=change, retry=None))
        link = {"context": self._name(run_id), "artifacts": [name]}
        call(lambda: self._client.add_context_artifacts_and_executions(request=link, retry=None))

    def _update(self, there: Context, metadata: ProtoJson) -> bool:
        """Change a context if it is as it was read; return whether it was.

        Without a mask, as the SDK does it: the context is sent whole.
        """
        from google.api_core.exceptions import Aborted, FailedPrecondition

        there.metadata = metadata
        try:
            call(lambda: self._client.update_context(request={"context": there}, retry=None))
        except (Aborted, FailedPrecondition):
            return False
        return True

    def _adopt(self, experiment: str, run_id: str, there: Context | None) -> None:
        """Make a run a child of its experiment, unless it is: whoever was killed before did not come to it."""
        if there is not None and _is_child(there, experiment):
            return
        request = {"context": self._name(experiment), "child_contexts": [self._name(run_id)]}
        call(lambda: self._client.add_context_children(request=request, retry=None))

    def _name(self, context_id: str) -> str:
        return f"{self._store}/contexts/{context_id}"

    @cached_property
    def _client(self) -> MetadataServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: MetadataServiceClient = grpc_client(
            aiplatform_v1.MetadataServiceClient, session, client_options=session.client_options
        )
        return client


def _is_child(context: Context, experiment: str) -> bool:
    return any(each.endswith(f"/contexts/{experiment}") for each in context.parent_contexts)


def _metadata(context: Context) -> ProtoJson:
    """Return a context's metadata; empty of one that has none."""
    return dict(context.metadata) if context.metadata else {}
