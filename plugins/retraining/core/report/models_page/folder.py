"""What the page of a folder of documents shows: those that are there, of those that Airflow shows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from retraining.core.naming import pages, storage


@dataclass(frozen=True, kw_only=True)
class FolderPage:
    """A folder of a model: of a run, a monitor run, a scoring, a rollback; its template reads nothing else.

    Attributes:
        model: Whose.
        folder: The folder that it lies in, as in `pages.KINDS`.
        key: Its name.
        uri: Its address in the bucket.
        there: Addresses of objects that are there.
    """

    model: str
    folder: str
    key: str
    uri: str
    there: Collection[str] = ()

    @property
    def candidates(self) -> dict[str, str]:
        """Addresses of what is shown of such a folder, by name."""
        found = {f"{kind}.json": storage.document_uri(self.uri, kind) for kind in pages.KINDS[self.folder]}
        has_page = self.folder in pages.WITH_PAGE
        return {pages.RUN_PAGE: storage.report_page_uri(self.uri), **found} if has_page else found

    @property
    def links(self) -> list[tuple[str, str]]:
        """Names of what is there, and their addresses beside this page's."""
        names = [name for name, uri in self.candidates.items() if uri in self.there]
        return [(name, f"{self.key}/{name}") for name in (*names, *self._failures)]

    @property
    def _failures(self) -> list[str]:
        start = f"{storage.failures_uri(self.uri)}/"
        names = [uri.removeprefix(start) for uri in self.there if uri.startswith(start)]
        return [f"{pages.FAILURES}/{name}" for name in names if pages.is_shown_failure(self.folder, self.key, name)]

    @property
    def model_page(self) -> str:
        """Address of the model's page."""
        return f"../../{self.model}"

    @property
    def models(self) -> str:
        """Address of the page of all models."""
        return "../../../models"
