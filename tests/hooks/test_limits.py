"""Every method of every hook ends by itself, whatever its server does: silent, dripping, or without an end."""

from __future__ import annotations

import ast
import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import requests
from google.auth.credentials import AnonymousCredentials
from google.oauth2.credentials import Credentials

from retraining.core.data.source_files import Load
from retraining.core.data.span_store import StoredObject
from retraining.core.data.sql import Query
from retraining.core.errors import ContractError, SettingsError
from retraining.core.naming.environments import Environment
from retraining.core.promotion.versions import Version
from retraining.core.report.tracking.tracked_run import Status, TrackedRun
from retraining.core.spec.source_files import SourceFiles
from retraining.hooks import airflow_api, cloud, limits, transports, vertex_jobs
from retraining.hooks.access import Access
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.experiments import Experiments
from retraining.hooks.logs import Cursor
from retraining.hooks.objects import Objects
from retraining.hooks.predictions import Unanswered
from retraining.hooks.registry import Upload
from retraining.hooks.session import Session, call, is_transient
from retraining.hooks.tensorboards import TensorBoards
from retraining.hooks.trial_calls import (
    TrialEndpoints,
    TrialJobs,
    TrialModels,
    TrialObjects,
    TrialPools,
    TrialTables,
)
from retraining.hooks.trial_experiments import TrialBoards, TrialExperiments
from retraining.hooks.trial_streams import TrialStreams
from retraining.hooks.vertex_jobs import VertexJobs
from retraining.hooks.warehouse import Warehouse
from tests.support import bad_servers
from tests.support.bad_servers import BadServer, serving

HOOKS_PATH = Path(limits.__file__).parent
NOT_OF_A_SESSION = {"session", "settings", "clock", "environment", "notifiers", "trackers"}
TIMES = ("CALL_S", "SILENCE_S", "LISTING_S", "TRANSFER_S", "ENDPOINT_S", "STATEMENT_S")
WRITTEN = {name: getattr(limits, name) for name in TIMES}
SHORT_S, LONGER_S = 0.5, 10.0
PATIENCE_S = 30  # without a limit it would be forever
NOW = datetime(2013, 11, 20, 3, tzinfo=UTC)
VERSION = Version(model_name="projects/p/locations/r/models/m", version_id="1", aliases=(), labels={}, artifact_uri="")
ENDPOINT = Endpoint(name="projects/p/locations/r/endpoints/1", deployed={}, traffic={})
FILES = SourceFiles.model_validate(
    {"uris": ["gs://bucket/f.csv"], "format": "csv", "columns": [{"name": "n", "type": "INT64"}]}
)
URI = "gs://bucket/folder/object.json"
ASK_NOBODY = ("name_of",)
TRIAL = (
    TrialBoards,
    TrialEndpoints,
    TrialExperiments,
    TrialJobs,
    TrialModels,
    TrialObjects,
    TrialPools,
    TrialStreams,
    TrialTables,
)
ARGUMENTS: dict[str, Any] = {
    "alias": "champion",
    "board": "projects/p/locations/r/tensorboards/1",
    "bucket": "bucket",
    "column": "n",
    "conf": {},
    "content_type": "application/json",
    "dag_id": "retrain__m",
    "curves": {"epoch/loss": (1.0,)},
    "data": b"{}",
    "dataset": "data",
    "deployed_id": "1",
    "display_name": "run",
    "email": "jobs@p.iam.gserviceaccount.com",
    "end": NOW,
    "endpoint": ENDPOINT,
    "endpoint_name": ENDPOINT.name,
    "evaluation": {"display_name": "run"},
    "evaluation_name": f"{VERSION.version_name}/evaluations/1",
    "expected": None,
    "folder_uri": "gs://bucket/folder",
    "generation": 1,
    "instances": [{"n": 1.0}],
    "job": {"display_name": "job", "job_spec": {}},
    "job_id": "job",
    "label": "retraining-run",
    "labels": {"retraining-run": "r"},
    "load": Load(files=FILES, table="p.data.t"),
    "log_table": None,
    "metadata": {"a": 1},
    "metric": "aiplatform.googleapis.com/custom_model_training_cpus",
    "machine": {"machine_type": "n1-standard-2", "min_replicas": 1, "max_replicas": 1},
    "model": "m",
    "name": "projects/p/locations/r/customJobs/1",
    "names": ["storage.googleapis.com"],
    "operation_name": "projects/p/locations/r/endpoints/1/operations/1",
    "package": "trainer",
    "parent": "projects/p/locations/r/tensorboards/1/experiments/e",
    "permissions": ["storage.objects.get"],
    "project": "p",
    "period": timedelta(minutes=1),
    "offset": 0,
    "objects": [StoredObject(uri=f"{URI}{n}", bytes=1, generation=1, created=NOW, content_type="") for n in range(30)],
    "pool_id": "pool",
    "location": "US",
    "query": Query(sql="SELECT 1 AS n"),
    "sql": "SELECT 1",
    "ranges": {f"{URI}{number}": (0, 10) for number in range(30)},
    "reference": "1",
    "repository": "projects/p/locations/r/repositories/retraining",
    "resource": {"display_name": "pool"},
    "service": "aiplatform.googleapis.com",
    "run": TrackedRun(model="m", run_key="r", as_of=NOW, status=Status.FINISHED),
    "run_id": "e-r",
    "run_key": "r",
    "run_name": "projects/p/locations/r/tensorboards/1/experiments/e/runs/r",
    "sampling": 0.5,
    "schema": b"",
    "sizes": {f"{URI}{number}": 100 for number in range(30)},
    "slices": [{}],
    "source_uri": "gs://bucket/folder",
    "start": NOW - timedelta(minutes=5),
    "table": "p.data.t",
    "target_uri": "gs://other/folder",
    "timeout_s": SHORT_S,
    "to": VERSION,
    "traffic": {"1": 100},
    "upload": Upload(display_name="m", description="", artifact_uri="gs://b/m", container_spec={}, labels={}),
    "uri": URI,
    "uris": [f"{URI}{number}" for number in range(30)],
    "when": NOW,
    "version": VERSION,
    "version_name": VERSION.version_name,
    "where": "test",
    "wishes": ["champion"],
}
"""What a method is asked with, by the name of its argument; of lists more than are asked at once."""


def fresh(name: str) -> Any:
    """What a method changes, made anew for each."""
    return {"cursor": Cursor, "lines": lambda: io.BytesIO(b'{"n": 1}\n')}.get(name, lambda: ARGUMENTS[name])()


@dataclass(frozen=True, kw_only=True)
class NearSession(Session):
    """One whose Vertex AI is another address."""

    address: str

    @property
    def client_options(self) -> dict[str, str]:
        """That address."""
        return {"api_endpoint": self.address}


def session_at(server: BadServer, credentials: Any = None) -> Session:
    """Whoever is asked, this server is."""
    return NearSession(
        project="p",
        region="r",
        environment=Environment(label="e", bucket="bucket"),
        max_bytes_billed=10**9,
        credentials=credentials or AnonymousCredentials(),
        address=server.address,
    )


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a second, in place of minutes."""
    for name in TIMES:
        monkeypatch.setattr(limits, name, SHORT_S)
    monkeypatch.setattr(vertex_jobs, "CREATE_TIMEOUT", timedelta(seconds=SHORT_S))


KINDS = [bad_servers.silent, bad_servers.dripping_header, bad_servers.dripping_body]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[BadServer]:
    """A server that never answers whole, where every client of Google's looks for its service."""
    with serving(request.param()) as bad:
        near(bad, monkeypatch)
        yield bad


def near(bad: BadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lead Google's clients to a server."""
    for name in ("STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST", "grpc_proxy"):
        monkeypatch.setenv(name, f"http://{bad.address}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.delenv("no_grpc_proxy", raising=False)


def hooks() -> dict[str, type]:
    """The hooks' classes, by the name that the cloud has for them, and those of `doctor` and `trial`."""
    trial = {f"trial {each.__name__}": each for each in TRIAL}
    found: dict[str, type] = {"access": Access, "experiments": Experiments, "tensorboards": TensorBoards, **trial}
    for name, member in vars(cloud.Cloud).items():
        if isinstance(member, property | cached_property) and name not in NOT_OF_A_SESSION:
            getter = member.fget if isinstance(member, property) else member.func
            found[name] = getattr(cloud, inspect.get_annotations(getter)["return"])
    return found


def methods_of(kind: type) -> list[str]:
    """The names of its public methods that ask a server."""
    public = [name for name, member in vars(kind).items() if inspect.isfunction(member) and not name.startswith("_")]
    return [name for name in public if name not in ASK_NOBODY]


def ask(hook: Any, name: str) -> Any:
    """Ask a method, with whatever it needs; read all of what it yields."""
    method = getattr(hook, name)
    needed = [key for key, value in inspect.signature(method).parameters.items() if value.default is value.empty]
    answer = method(**{key: fresh(key) for key in needed})
    return list(answer) if inspect.isgenerator(answer) else answer


def outcomes(questions: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each question came to, all asked at once: its error, or its answer; a failure when it comes to nothing."""
    pool = ThreadPoolExecutor(len(questions) or 1)
    asked = {name: pool.submit(question) for name, question in questions.items()}
    pool.shutdown(wait=False)
    found = {name: one.exception(PATIENCE_S) for name, one in asked.items()}  # TimeoutError: it still waits
    return {name: asked[name].result() if error is None else error for name, error in found.items()}


def outcome(question: Callable[[], Any]) -> Any:
    """What one question came to."""
    return outcomes({"it": question})["it"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("service", sorted(hooks()))
def test_each_method_ends_with_an_error_that_passes(service: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that Airflow's retry asks again; each did ask its server, if need be with more time on a busy machine."""
    names = methods_of(hooks()[service])
    for seconds in (SHORT_S, LONGER_S):
        with ExitStack() as stack:
            servers = {name: stack.enter_context(serving(kind())) for name in names}
            questions = {name: prepared(service, name, servers[name], monkeypatch) for name in names}
            for name in TIMES:
                monkeypatch.setattr(limits, name, seconds)
            for name, error in outcomes(questions).items():
                if isinstance(error, Unanswered):  # of a request whose failure is what is asked for
                    continue
                assert isinstance(error, Exception), name
                assert is_transient(error), f"{name}: {error!r}"
            names = [name for name in names if not servers[name].asked]
    assert names == []


def prepared(service: str, name: str, server: BadServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A question to a server of its own; its client is made already."""
    near(server, monkeypatch)
    hook: Any = hooks()[service](session_at(server))
    client = hook._client
    assert client
    if isinstance(client, requests.Session):  # it would read its proxy from the environment at each request
        client.trust_env, client.proxies = False, {"https": f"http://{server.address}"}
    return lambda: ask(hook, name)


def test_a_run_ordered_by_hand_ends_too(server: BadServer) -> None:
    """Of Airflow's own API: with a message."""
    environ = {airflow_api.URL: f"http://{server.address}", airflow_api.TOKEN: "token"}
    error = outcome(lambda: airflow_api.AirflowApi(environ).trigger("retrain__m", {}))
    assert isinstance(error, SettingsError)
    assert "no answer" in str(error)


@pytest.mark.parametrize("kind", [Objects, Warehouse, VertexJobs])
def test_a_token_that_does_not_come_holds_nothing_up(server: BadServer, kind: Any) -> None:
    """Credentials are refreshed on the way."""
    waiting = Credentials(
        None, refresh_token="r", token_uri=f"http://{server.address}/token", client_id="i", client_secret="s"
    )
    hook = kind(session_at(server, waiting))
    name = {Objects: "find_object", Warehouse: "table_schema", VertexJobs: "get"}[kind]
    error = outcome(lambda: ask(hook, name))
    assert isinstance(error, Exception)
    assert is_transient(error), repr(error)


@pytest.mark.parametrize("kind", [bad_servers.endless, bad_servers.bomb], ids=["endless", "bomb"])
@pytest.mark.parametrize("service", ["warehouse.table_schema", "objects.find_object", "artifacts.list_uris"])
def test_no_answer_fills_the_memory(monkeypatch: pytest.MonkeyPatch, kind: Any, service: str) -> None:
    """It is refused by name, and not asked for again."""
    monkeypatch.setattr(limits, "MAX_BYTES", 5_000_000)
    for name in TIMES:
        monkeypatch.setattr(limits, name, PATIENCE_S)
    hook, _, method = service.partition(".")
    with serving(kind()) as bad:
        near(bad, monkeypatch)
        error = outcome(lambda: ask(hooks()[hook](session_at(bad)), method))
    assert isinstance(error, ContractError)
    assert "more than 5000000 bytes" in str(error)


def test_a_call_without_a_limit_is_not_sent(server: BadServer) -> None:
    """Neither by HTTP nor by gRPC."""
    session = session_at(server)
    jobs: Any = VertexJobs(session)
    with pytest.raises(RuntimeError, match=r"without a limit of time: ask it within retraining\.hooks\.session\.call"):
        transports.storage_client(session).bucket("b").blob("o").exists(retry=None)
    with pytest.raises(RuntimeError, match="JobService/GetCustomJob is asked without a limit of time"):
        jobs._client.get_custom_job(name="projects/p/locations/r/customJobs/1")
    assert not server.asked


def test_nobody_makes_a_client_of_another_kind() -> None:
    """Each goes over the transports that heed a limit; messages to people are sent by Airflow's notifiers."""
    found = []
    for path in sorted(HOOKS_PATH.glob("*.py")):
        if path.name == "transports.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            made = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if made.endswith("Client") or made.startswith(("requests.", "urllib", "httpx.", "socket.")):
                found.append(f"{path.name} {made}")
    # All within limit_requests, in the same line.
    named = ("airflow_api", "mlflow", "notifiers")
    assert found == [f"{name}.py requests.Session" for name in named]


def test_the_documented_times_are_these() -> None:
    """The table of docs/operations.md."""
    text = (HOOKS_PATH.parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    table = text.partition("## Time limits")[2].partition("\n## ")[0]
    said = [row.split(" | ")[1] for row in table.splitlines() if row.startswith("| ")][1:7]
    units = {"seconds": 1, "minutes": 60, "hours": 3600}
    assert [float(row.split()[0]) * units[row.split()[1]] for row in said] == list(WRITTEN.values())


def test_the_limit_around_a_call_holds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many objects the whole has its end, not only each."""
    monkeypatch.setattr(limits, "CALL_S", PATIENCE_S)
    with limits.limited(SHORT_S), limits.limited(PATIENCE_S) as inner:
        assert inner.left("test") <= SHORT_S

    def never() -> None:
        raise ConnectionError("not there")

    error = outcome(lambda: limits.ask_all(lambda _: call(never), range(30), 2, SHORT_S))
    assert isinstance(error, ConnectionError)
