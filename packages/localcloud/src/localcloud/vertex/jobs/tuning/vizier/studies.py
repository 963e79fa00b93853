"""VizierService, studies: created, found, listed, deleted with their trials."""

from __future__ import annotations

from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Study
from google.protobuf import empty_pb2

from localcloud.vertex.jobs.tuning.search.algorithms import needs_designer
from localcloud.vertex.jobs.tuning.search.bayesian import Designer
from localcloud.vertex.jobs.tuning.search.study_spec import check_study_spec
from localcloud.vertex.resources.store import STUDIES, TRIALS, Store, now
from localcloud.vertex.resources.validation import Finding, check_display_name, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import AlreadyExists, NotFound
from localcloud.vertex.wire.listing import list_page


class Studies:
    """Answers what is asked of studies.

    Args:
        designer: Must be there when a study asks for it.
    """

    def __init__(self, store: Store, designer: Designer) -> None:
        self._store = store
        self._designer = designer

    def create_study(self, request: types.CreateStudyRequest) -> Study:
        """Check the study and keep it; its display name is its own in the location."""
        location, store = names.parse_location(request.parent), self._store
        study = Study()
        Study.copy_from(study, request.study)
        refuse(_check(study))
        if needs_designer(study.study_spec):
            self._designer.check_ready()
        study.name = f"{location}/studies/{names.new_id()}"
        study.state, study.create_time = Study.State.ACTIVE, now()
        with store.transaction():
            if (known := _find_study(store, request.parent, study.display_name)) is not None:
                raise AlreadyExists(
                    f"A Study with the display name {study.display_name!r} already exists: {known.name}. Look it up, or"
                    " choose another name."
                )
            store.insert(STUDIES, study.name, request.parent, study)
        return study

    def get_study(self, request: types.GetStudyRequest) -> Study:
        """Return the study as it stands."""
        return self._store.get(STUDIES, names.check_name(request.name, "studies"))

    def lookup_study(self, request: types.LookupStudyRequest) -> Study:
        """Return the study of a display name."""
        names.parse_location(request.parent)
        study = _find_study(self._store, request.parent, request.display_name)
        if study is None:
            raise NotFound(f"There is no Study with the display name {request.display_name!r} in {request.parent}.")
        return study

    def list_studies(self, request: types.ListStudiesRequest) -> types.ListStudiesResponse:
        """Return studies of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(STUDIES, request.parent), request, {})
        return types.ListStudiesResponse(studies=page, next_page_token=token)

    def delete_study(self, request: types.DeleteStudyRequest) -> empty_pb2.Empty:
        """Remove a study and its trials."""
        store = self._store
        with store.transaction():
            store.delete(STUDIES, names.check_name(request.name, "studies"))
            for trial in store.list_under(TRIALS, request.name):
                store.delete(TRIALS, trial.name)
        return empty_pb2.Empty()


def _check(study: Study) -> Iterator[Finding]:
    yield from check_display_name(study.display_name, "study.display_name")
    yield from check_study_spec(study.study_spec, "study.study_spec")


def _find_study(store: Store, parent: str, display_name: str) -> Study | None:
    return next((study for study in store.list_under(STUDIES, parent) if study.display_name == display_name), None)
