"""A run's record: its folder of documents, each written once and read by every later task."""

from __future__ import annotations

from typing import TypeVar

from retraining.core.documents import Document, digest
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.hooks.ports import ArtifactsPort

# Not `plan.output`: an XComArg would draw an edge from `plan` to every task and hide the order of the run.
RUN_URI = "{{ ti.xcom_pull(task_ids='plan')['run_uri'] }}"
# Of what is also rendered after a `plan` that failed, and so left no folder.
MAYBE_RUN_URI = "{{ (ti.xcom_pull(task_ids='plan') or {}).get('run_uri', '') }}"

_D = TypeVar("_D", bound=Document)


class Record:
    """Documents in one folder.

    Args:
        artifacts: Cloud Storage.
        folder_uri: `run_uri` of a plan, or the folder of a monitor's run. One that another task named goes through
            `ownership.py`.
    """

    def __init__(self, artifacts: ArtifactsPort, folder_uri: str) -> None:
        self._artifacts = artifacts
        self._read: dict[type[Document], Document] = {}
        self.folder_uri = folder_uri

    def uri(self, kind: type[Document]) -> str:
        """Return the address of the document of a kind."""
        return storage.document_uri(self.folder_uri, kind.kind_name())

    def taken_from(self) -> Record:
        """Return what this run keeps of the run of another stage whose version it took over."""
        return Record(self._artifacts, storage.taken_folder_uri(self.folder_uri))

    def find_document(self, kind: type[_D]) -> _D | None:
        """Return the document of a kind; None while there is none.

        Raises:
            ContractError: What is there does not obey the contract.
        """
        if kind not in self._read:  # what is there never changes
            data = self._artifacts.read_object(self.uri(kind))
            if data is None:
                return None
            self._read[kind] = kind.parse(data, self.uri(kind))
        document = self._read[kind]
        assert isinstance(document, kind)  # noqa: S101 - kept under its own type
        return document

    def read_document(self, kind: type[_D]) -> _D:
        """Return the document of a kind, which an earlier task wrote.

        Raises:
            ContractError: It is missing, or does not obey the contract.
        """
        document = self.find_document(kind)
        if document is None:
            raise ContractError(self.uri(kind), "no such document", "an earlier task's", "Clear the run from plan on")
        return document

    def document_digest(self, kind: type[Document]) -> str:
        """Return the SHA-256 of the stored bytes of the document of a kind, whoever wrote them.

        Raises:
            ContractError: It is missing.
        """
        data = self._artifacts.read_object(self.uri(kind))
        if data is None:
            raise ContractError(self.uri(kind), "no such document", "an earlier task's", "Clear the run from plan on")
        return digest(data)

    def write_once(self, document: _D) -> _D:
        """Store a document; where its address is taken, return the one that is stored, which is what counts."""
        uri = self.uri(type(document))
        return type(document).parse(self._artifacts.write_once(uri, document.to_bytes()), uri)
