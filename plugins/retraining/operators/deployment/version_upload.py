"""A run's model in the registry, once: claimed before it is uploaded, found again whatever died.

The service has no request id for an upload, an upload takes minutes, and its list may lag. So each has a claim on
storage before it (`core.jobs.claims`, with the operation's name in the place of a job's); of two versions of one run
the one with the lower id counts, and the other is deleted.
"""

from __future__ import annotations

import logging
import uuid

from retraining.core.errors import ConflictError, JobError
from retraining.core.jobs.claims import START_WITHIN, Claim
from retraining.core.naming.vertex import RUN_LABEL
from retraining.core.promotion.versions import Version
from retraining.hooks.operations import Operation
from retraining.hooks.ports import CloudPort
from retraining.hooks.registry import Upload
from retraining.hooks.session import may_have_worked
from retraining.operators.jobs.claims import read_claim

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL_S = 2.0
WAIT_S = 900.0


def upload_once(cloud: CloudPort, model: str, upload: Upload, claim_uri: str) -> Version:
    """Register a run's model as a version, or give the one it has already.

    Args:
        cloud: The hooks.
        model: Model id.
        upload: What becomes a version; its label says which run it is of.
        claim_uri: Where it is claimed.

    Raises:
        JobError: The service could not register it.
        ConflictError: It is not known yet what became of an upload.
    """
    until = cloud.clock.monotonic() + WAIT_S
    uploading = _Upload(cloud, model, upload, claim_uri)
    while True:
        if version := drop_duplicates(cloud, model, upload.labels[RUN_LABEL]):
            return version
        uploading.advance_upload()
        if cloud.clock.monotonic() >= until:
            raise ConflictError(
                claim_uri,
                "an upload whose end is not known",
                "its version, or none, within 15 minutes",
                "The next try looks again",
            )
        cloud.clock.sleep(LOOK_INTERVAL_S)


def drop_duplicates(cloud: CloudPort, model: str, run_key: str) -> Version | None:
    """Return the version of a run, if it has one; delete others of the same run which no alias points to."""
    versions = cloud.registry.versions_of_run(model, run_key)
    for other in versions[1:]:
        if other.aliases or not cloud.registry.delete_version(other):
            LOGGER.warning("%s is of the same run as version %s, and in use: it stays", other, versions[0].version_id)
        else:
            LOGGER.warning("%s is deleted: version %s is of the same run", other.version_name, versions[0].version_id)
    return versions[0] if versions else None


class _Upload:
    """One upload and its claim."""

    def __init__(self, cloud: CloudPort, model: str, upload: Upload, claim_uri: str) -> None:
        self._cloud = cloud
        self._model = model
        self._upload = upload
        self._uri = claim_uri

    def advance_upload(self) -> None:
        """Wait for the upload that is under way, or begin one where none can be any more."""
        now = self._cloud.clock.now()  # before the look: what begins after it is expected yet
        claim, generation = read_claim(self._cloud, self._uri)
        operation = self._operation(claim)
        if operation is not None and not operation.done:
            return
        if operation is not None and operation.error:
            self._close_claim(claim, generation)
            where, found = self._upload.artifact_uri, f"the upload failed: {operation.error}"
            raise JobError(where, found, "a version of it in the registry", "Mend what it names and clear register")
        if claim and claim.forbids_another(now, began=operation is not None):
            return  # another worker's, or a list that lags
        if claim and self._cloud.registry.versions_of_run(self._model, self._upload.labels[RUN_LABEL]):
            return  # it was uploaded since the look before: by one whose clock is behind, or while this one stood still
        self._begin_upload(claim, generation)

    def _operation(self, claim: Claim | None) -> Operation | None:
        """Find the upload under way: the last one noted that is known yet, or one that runs on the model."""
        if claim and claim.jobs and not claim.open:
            return self._cloud.registry.operation(claim.jobs[-1])
        return next(iter(self._cloud.registry.running_operations(self._model)), None)

    def _begin_upload(self, claim: Claim | None, generation: int) -> None:
        now, holder = self._cloud.clock.now(), uuid.uuid4().hex
        mine = claim.next(holder, now) if claim else Claim(holder=holder, since=now)
        written = self._cloud.artifacts.write_if(self._uri, mine.to_bytes(), generation)
        if written is None or self._cloud.clock.now() - now > START_WITHIN:
            return  # another worker is about to upload it, or this one was held up for too long
        try:
            operation = self._cloud.registry.start_upload(self._model, self._upload)
        except Exception as error:  # of any class: only whether the service may have begun counts; raised again
            if not may_have_worked(error):
                self._close_claim(mine, written)
            raise
        LOGGER.info("%s: registering %s", operation.name, self._upload.artifact_uri)
        self._cloud.artifacts.write_if(self._uri, mine.with_jobs([operation.name]).to_bytes(), written)

    def _close_claim(self, claim: Claim | None, generation: int) -> None:
        """Write down that the service said no, so that another upload need not wait."""
        if claim is not None:
            closed = Claim(holder=claim.holder, since=claim.since, open=False)
            self._cloud.artifacts.write_if(self._uri, closed.to_bytes(), generation)
