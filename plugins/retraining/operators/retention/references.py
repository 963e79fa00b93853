"""Which spans of a model are still referred to: its runs' documents, the registry, the endpoint, the jobs that run.

In: the hooks. Out: `References` of core, which can be asked again later whether anything new has come.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from retraining.core.data.span_store import StoredObject
from retraining.core.documents import Document, EvaluateRequest, ExportRequest, Manifest, Plan, Snapshot
from retraining.core.documents.retention import KeptRun
from retraining.core.jobs.job import Job
from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.run_keys import is_run_key
from retraining.core.retention.spans import (
    Claims,
    Limits,
    PointedVersion,
    References,
    RunFolder,
    claims_of,
    kept_runs,
    run_folder_of,
)
from retraining.hooks.ports import CloudPort

LOGGER = logging.getLogger(__name__)
READERS = 8
KINDS: tuple[type[Document], ...] = (Plan, Snapshot, ExportRequest, Manifest, EvaluateRequest)

_D = TypeVar("_D", bound=Document)


class ModelRuns:
    """The runs of one model, and what they refer to.

    Args:
        cloud: The hooks.
        model: Its name.
        limits: Time and age limit of the cleaning.
    """

    def __init__(self, cloud: CloudPort, model: str, limits: Limits) -> None:
        self._cloud = cloud
        self._limits = limits
        self._bucket = cloud.settings.bucket
        self._known: set[str] = set()
        self._leases: dict[str, StoredObject] = {}
        self.model = model
        self.references = References(self._bucket, cloud.settings.results_bucket, model)
        self.kept: tuple[KeptRun, ...] = ()
        self._unended: frozenset[str] = frozenset()

    @property
    def at_work(self) -> frozenset[str]:
        """Return the keys of the kept runs that are not at their end: a job runs, or there is no outcome yet."""
        return frozenset(run.run_key for run in self.kept if run.reason == "running" or run.run_key in self._unended)

    @property
    def count(self) -> int:
        """Return how many runs there are."""
        return len(self._known)

    def read_runs(self, active: Iterable[Job]) -> None:
        """Find the kept runs and read their documents.

        Args:
            active: Jobs that run, of all models.

        Raises:
            ContractError: A kept run does not say which spans it uses.
        """
        self._leases = self._read_leases()  # first: one that is renewed from now on is seen by the next look
        keys = self._run_keys()
        claims = self._claims(active)
        with ThreadPoolExecutor(READERS) as pool:
            runs = list(pool.map(self._look_at, keys))
        self._known = set(keys)
        self.kept = kept_runs(runs, claims, self._limits)
        self._unended = frozenset(run.run_key for run in runs if not run.ended)
        for run in self.kept:
            self._add(run)

    def look_again(self) -> None:
        """Add what came since: runs that are new or renewed their lease, and older ones that something points to.

        An alias, the endpoint or a job may have begun to.

        Raises:
            ContractError: One of them does not say which spans it uses.
        """
        leases = self._read_leases()
        renewed = {key for key, lease in leases.items() if self._leases.get(key) != lease}
        self._leases = leases
        claims = self._claims(self._cloud.jobs.find_active(vertex.KEY_LABEL))
        keys = set(self._run_keys())
        new = [self._look_at(key) for key in sorted(keys - self._known | renewed)]
        kept = {run.run_key for run in self.kept} - renewed
        came = [run for run in kept_runs(new, claims, self._limits) if run.run_key not in kept]
        for run in came:
            LOGGER.info("run %s came meanwhile: %s", run.run_key, run.message)
            self._add(run)
        self._known |= keys
        self.kept = (*self.kept, *came)

    def _run_keys(self) -> list[str]:
        folders = [
            folder
            for root in (storage.runs_uri, storage.walk_forwards_uri)
            for folder in self._cloud.artifacts.list_folders(root(self._bucket, self.model))
        ]
        names = (ObjectAddress.parse(folder).name for folder in folders)
        return [key for key in dict.fromkeys(names) if is_run_key(key)]

    def _folders(self, run_key: str) -> list[str]:
        """Return where documents of such a run may be: a walk-forward's version may have the key of a backfill."""
        return [
            folder_of(self._bucket, self.model, run_key) for folder_of in (storage.run_uri, storage.walk_forward_uri)
        ]

    def _read_leases(self) -> dict[str, StoredObject]:
        """Read the leases by run key, each with its generation."""
        objects = self._cloud.objects.directly_in(storage.leases_uri(self._bucket, self.model))
        leases = {ObjectAddress.parse(item.uri).stem: item for item in objects}
        return {key: lease for key, lease in leases.items() if is_run_key(key)}

    def _look_at(self, run_key: str) -> RunFolder:
        documents = [item for folder in self._folders(run_key) for item in self._cloud.objects.directly_in(folder)]
        return run_folder_of(run_key, documents, self._leases.get(run_key))

    def _claims(self, active: Iterable[Job]) -> Claims:
        ours = self._cloud.environment
        listed = self._cloud.registry.list_versions(self.model)
        versions = [version for version in listed if ours.owns(version.labels, version.artifact_uri)]
        endpoint = self._cloud.endpoints.get(self.model)
        deployed = set(endpoint.deployed.values()) if endpoint else set()
        running = {
            job.labels.get(vertex.RUN_LABEL, ""): job.job_id
            for job in active
            if job.labels.get(vertex.MODEL_LABEL) == self.model
        }
        pointed = (
            PointedVersion(
                run_key=version.run_key,
                version_id=version.version_id,
                aliases=version.aliases,
                deployed=version.version_name in deployed,
            )
            for version in versions
        )
        return claims_of(pointed, running)

    def _add(self, run: KeptRun) -> None:
        names = [kind.kind_name() for kind in KINDS]
        folders = self._folders(run.run_key)
        stored = self._cloud.artifacts.read_some(
            [storage.document_uri(folder, name) for folder in folders for name in names]
        )
        there = [folder for folder in folders if any(storage.document_uri(folder, name) in stored for name in names)]
        for folder in there or folders[:1]:
            self.references.add(
                run,
                (
                    _parsed(Plan, folder, stored),
                    _parsed(Snapshot, folder, stored),
                    _parsed(ExportRequest, folder, stored),
                    _parsed(Manifest, folder, stored),
                    _parsed(EvaluateRequest, folder, stored),
                ),
            )


def _parsed(kind: type[_D], folder: str, stored: Mapping[str, bytes]) -> _D | None:
    uri = storage.document_uri(folder, kind.kind_name())
    return kind.parse(stored[uri], uri) if uri in stored else None
