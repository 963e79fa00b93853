"""Where jobs run: in the location that they name, or that of the datasets they read and write.

In: requests for jobs, and the locations that datasets were made with. Out: the job's location in its document; 404 for
a dataset that is elsewhere, and for a job that is asked for elsewhere. A dataset that was made without a location is
everywhere, and so is a job that names none and reads no dataset with one: bqemulator has all of them in US. Source:
cloud.google.com/bigquery/docs/locations.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from urllib.parse import parse_qs

from localcloud.bigquery.middleware.bodies import read_body, replay_body
from localcloud.bigquery.middleware.known_fields import read_document
from localcloud.bigquery.patches.kept_fields import KeptFields
from localcloud.bigquery.patches.query_bytes import tables_named
from localcloud.untyped import Untyped

NOWHERE = "US"
"""What a job's document says where nothing says its location."""
_REMEMBERED = 10_000
_NEW = re.compile(r"(/upload)?/bigquery/v2/projects/(?P<project>[^/]+)/(?P<kind>jobs|queries)")
_OLD = re.compile(r"/bigquery/v2/projects/(?P<project>[^/]+)/(?:jobs|queries)/(?P<job>[^/]+)(?:/cancel|/delete)?")
_PLACES = ("defaultDataset", "destinationTable", "sourceTable")


class JobLocations:
    """The locations of jobs, in memory: after a restart a job is everywhere.

    Args:
        context: Has the catalog.
        kept: Has the locations that datasets were made with.
    """

    def __init__(self, context: Untyped, kept: KeptFields) -> None:
        self._context = context
        self._kept = kept
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._current: ContextVar[str | None] = ContextVar("location", default=None)

    def of_job(self, project: str, job: str) -> str | None:
        """Return where a job is; None: everywhere."""
        return self._known.get((project, job))

    def of_dataset(self, project: str, dataset: str) -> str | None:
        """Return where a dataset was made; None: everywhere, or there is none."""
        meta = self._context.catalog.get_dataset(project, dataset)
        if meta is None:
            return None
        made = int(meta.creation_time.timestamp() * 1000)
        location = self._kept.of(f"{project}.{dataset}", made).get("location")
        return str(location) if location else None

    def place(self, project: str, document: Mapping[str, Untyped]) -> str | None:
        """Remember where a new job runs.

        Args:
            document: Of `jobs.insert` or `jobs.query`.

        Returns:
            What is wrong: a dataset that is not in the job's location; None for nothing.
        """
        given = document.get("jobReference")
        reference = given if isinstance(given, dict) else {}
        location = document.get("location") or reference.get("location")
        for owner, dataset in datasets_of(project, document):
            found = self.of_dataset(owner, dataset)
            if found is None:
                continue
            if location and str(location).lower() != found.lower():
                return f"Not found: Dataset {owner}:{dataset} was not found in location {location}"
            location = location or found
        self._current.set(str(location) if location else None)
        job = str(reference.get("jobId") or "")
        if job and self._context.catalog.get_job(project, job) is None:
            self._known.pop((project, job), None)  # of a request that made no job
            self.remember(project, job)
        return None

    def remember(self, project: str, job: str) -> None:
        """Note where a job is: where that runs which is asked for now."""
        location = self._current.get()
        if location and (project, job) not in self._known:
            self._known[project, job] = location
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


class PlacedJobs:
    """Refuses jobs whose datasets are elsewhere, and questions for jobs that are elsewhere (ASGI)."""

    def __init__(self, app: Untyped, locations: JobLocations) -> None:
        self._app = app
        self._locations = locations

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        path = scope.get("path", "")
        problem = None
        if scope.get("method") == "POST" and (new := _NEW.fullmatch(path)):
            body = await read_body(receive)
            receive = replay_body(body, receive)
            problem = self._locations.place(new["project"], read_document(body))
        elif old := _OLD.fullmatch(path):
            asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("location", [""])[0]
            found = self._locations.of_job(old["project"], old["job"])
            if asked and found and asked.lower() != found.lower():
                problem = f"Not found: Job {old['project']}:{asked}.{old['job']}"
        if problem is None:
            await self._app(scope, receive, send)
            return
        from starlette.responses import JSONResponse

        errors = [{"reason": "notFound", "message": problem, "domain": "global"}]
        error = {"code": HTTPStatus.NOT_FOUND, "message": problem, "errors": errors, "status": "NOT_FOUND"}
        await JSONResponse({"error": error}, status_code=HTTPStatus.NOT_FOUND)(scope, receive, send)


def install(app: Untyped, context: Untyped, kept: KeptFields) -> None:
    """Give jobs their locations."""
    from bqemulator.api.routes import jobs, upload

    locations = JobLocations(context, kept)
    app.add_middleware(PlacedJobs, locations=locations)
    store = context.catalog.upsert_job

    def upsert(job: Untyped) -> Untyped:
        locations.remember(job.project_id, job.job_id)
        return store(job)

    context.catalog.upsert_job = upsert
    context.catalog.localcloud_location_of = locations.of_job  # for the view of jobs
    for module in (jobs, upload):
        module._build_job_response = _placed(module._build_job_response, locations)
    list_jobs = jobs.list_jobs

    def list_placed(project_id: str, *args: Untyped, **kwargs: Untyped) -> dict[str, Untyped]:
        listed: dict[str, Untyped] = list_jobs(project_id, *args, **kwargs)
        for job in listed["jobs"]:
            reference = job["jobReference"]
            reference["location"] = locations.of_job(project_id, reference["jobId"]) or NOWHERE
        return listed

    jobs.list_jobs = list_placed


def _placed(build: Untyped, locations: JobLocations) -> Untyped:
    def build_placed(project_id: str, job_id: str, *args: Untyped, **kwargs: Untyped) -> dict[str, Untyped]:
        document: dict[str, Untyped] = build(project_id, job_id, *args, **kwargs)
        document["jobReference"]["location"] = locations.of_job(project_id, job_id) or NOWHERE
        return document

    return build_placed


def datasets_of(project: str, document: Mapping[str, Untyped]) -> Iterator[tuple[str, str]]:
    """Yield project and id of each dataset that a job reads or writes, as far as its document says them."""
    configuration = document.get("configuration")
    kinds = configuration if isinstance(configuration, dict) else {"query": document}
    for part in (each for each in kinds.values() if isinstance(each, dict)):
        sources = part.get("sourceTables")
        places = [part.get(name) for name in _PLACES] + (sources if isinstance(sources, list) else [])
        for place in places:
            if isinstance(place, dict) and place.get("datasetId"):
                yield str(place.get("projectId") or project), str(place["datasetId"])
        if isinstance(part.get("query"), str):
            yield from sorted({(owner, dataset) for owner, dataset, _ in tables_named(part["query"], project)})
