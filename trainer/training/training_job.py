"""What one replica's training is made from, as one value: `trainer.task` builds it, everything else reads it.

No TensorFlow: it is built before that is imported.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from trainer.cluster.replica import Replica, training_share, uses_servers
from trainer.contract.documents import Manifest, Statistics, TrainRequest
from trainer.contract.reading import read_document
from trainer.input import open_source, require_input
from trainer.input.source import WHOLE, Share, Source
from trainer.storage import Storage
from trainer.telemetry.usage import Clock


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A training, as one of its replicas has it.

    Attributes:
        request: With the command line's changes.
        manifest: Of the run.
        statistics: Of the run.
        storage: Where everything is read from and written to.
        replica: This process's place.
        clock: Runs since the process's start.
        share: The part of each split that this process reads.
        request_digest: SHA-256 of the stored request's bytes; None: the command line asks for another training.
    """

    request: TrainRequest
    manifest: Manifest
    statistics: Statistics
    storage: Storage
    replica: Replica
    clock: Clock
    share: Share = WHOLE
    request_digest: str | None = None

    @classmethod
    def from_request(
        cls,
        request: TrainRequest,
        storage: Storage,
        replica: Replica,
        clock: Clock,
        request_digest: str | None = None,
    ) -> TrainingJob:
        """Read the documents that a request names.

        Raises:
            RequestError: A document is missing or wrong, or the examples lie elsewhere than the request says.
        """
        manifest = read_document(Manifest, request.manifest_uri, storage)
        statistics = read_document(Statistics, request.statistics_uri, storage)
        require_input(request.training.input, manifest)
        return cls(
            request=request,
            manifest=manifest,
            statistics=statistics,
            storage=storage,
            replica=replica,
            clock=clock,
            share=training_share(request.training, manifest.splits["train"].rows, replica),
            request_digest=request_digest,
        )

    def open_source(self) -> AbstractContextManager[Source]:
        """Begin to fetch the splits that this replica reads."""
        names = ("validation",) if self.replica.is_evaluator else ("train", "validation")
        splits = {name: self.manifest.splits[name] for name in names}
        in_place = {"train"} if uses_servers(self.replica, self.request.training.strategy) else ()
        reader = self.request.training.reader
        return open_source(self.manifest, splits, self.storage, self.share, in_place=in_place, reader=reader)
