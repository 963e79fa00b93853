"""A tracking server in memory that answers as MLflow's REST API does, as far as runs are tracked; and a bad one."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PREFIX = "/api/2.0/mlflow/"


class _Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class MlflowServer:
    """A server.

    Attributes:
        port: On 127.0.0.1.
        experiments: Ids by name.
        runs: As they are answered, by id.
        history: Every point of every metric, by run.
        authorization: Header that is asked for; empty: none.
        statuses: Of the next answers, in the place of what is asked; 0: as it should be, and the answer is lost.
        calls: What was asked.
        hangs: Set: no answer comes.
        let_go: Ends what hangs.
    """

    port: int = 0
    experiments: dict[str, str] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    authorization: str = ""
    statuses: list[int] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def of_key(self, key: str) -> list[dict[str, Any]]:
        """The runs of a key that are not deleted."""
        return [run for run in self.alive() if _pairs(run["data"]["tags"]).get("retraining.run_key") == key]

    def alive(self) -> list[dict[str, Any]]:
        """All that are not deleted."""
        return [run for run in self.runs.values() if run["info"]["lifecycle_stage"] == "active"]

    def answer(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        """Answer one call."""
        with self.lock:
            self.calls.append(call)
            method = getattr(self, f"_{call.replace('/', '_').replace('-', '_')}", None)
            if method is None:
                raise _Refused(404, "ENDPOINT_NOT_FOUND")
            found: dict[str, Any] = method(body)
            return found

    def _experiments_get_by_name(self, body: dict[str, Any]) -> dict[str, Any]:
        name = body["experiment_name"]
        if name not in self.experiments:
            raise _Refused(404, "RESOURCE_DOES_NOT_EXIST")
        found = {"experiment_id": self.experiments[name], "name": name, "lifecycle_stage": "active"}
        return {"experiment": found}

    def _experiments_create(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["name"] in self.experiments:
            raise _Refused(400, "RESOURCE_ALREADY_EXISTS")
        self.experiments[body["name"]] = str(len(self.experiments) + 1)
        return {"experiment_id": self.experiments[body["name"]]}

    def _runs_search(self, body: dict[str, Any]) -> dict[str, Any]:
        found = [run for run in self.alive() if run["info"]["experiment_id"] in body["experiment_ids"]]
        if wanted := body["filter"]:
            name, _, value = wanted.removeprefix("tags.").partition(" = ")
            found = [r for r in found if _pairs(r["data"]["tags"]).get(name.strip("`")) == value.strip("'")]
        return {"runs": found} if found else {}

    def _runs_create(self, body: dict[str, Any]) -> dict[str, Any]:
        run_id = f"{len(self.runs) + 1:032x}"
        info = {"run_id": run_id, "experiment_id": body["experiment_id"], "status": "RUNNING"}
        info |= {"start_time": body["start_time"], "run_name": body["run_name"], "lifecycle_stage": "active"}
        self.runs[run_id] = {"info": info, "data": {"tags": list(body["tags"]), "metrics": [], "params": []}}
        self.history[run_id] = []
        return {"run": self.runs[run_id]}

    def _runs_log_batch(self, body: dict[str, Any]) -> dict[str, Any]:
        data = self._active(body["run_id"])["data"]
        for param in body["params"]:
            if _pairs(data["params"]).get(param["key"], param["value"]) != param["value"]:
                raise _Refused(400, "INVALID_PARAMETER_VALUE")
            _put(data["params"], param)
        for tag in body["tags"]:
            _put(data["tags"], tag)
        for point in body["metrics"]:
            if point not in self.history[body["run_id"]]:
                self.history[body["run_id"]].append(point)
            there = next((each for each in data["metrics"] if each["key"] == point["key"]), None)
            order = ("step", "timestamp", "value")
            if there is None or [there[name] for name in order] < [point[name] for name in order]:
                _put(data["metrics"], point)
        return {}

    def _runs_update(self, body: dict[str, Any]) -> dict[str, Any]:
        info = self._active(body["run_id"])["info"]
        info |= {name: value for name, value in body.items() if name in ("status", "end_time")}
        return {"run_info": info}

    def _runs_delete(self, body: dict[str, Any]) -> dict[str, Any]:
        self._active(body["run_id"])["info"]["lifecycle_stage"] = "deleted"
        return {}

    def _active(self, run_id: str) -> dict[str, Any]:
        run = self.runs.get(run_id)
        if run is None:
            raise _Refused(404, "RESOURCE_DOES_NOT_EXIST")
        if run["info"]["lifecycle_stage"] != "active":
            raise _Refused(400, "INVALID_PARAMETER_VALUE")
        return run


@contextlib.contextmanager
def mlflow_server() -> Iterator[MlflowServer]:
    """A server, for as long as it is used."""
    server = MlflowServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            self.handle_call(query)

        def do_POST(self) -> None:
            self.handle_call(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def handle_call(self, body: dict[str, Any]) -> None:
            if server.hangs:
                server.let_go.wait(60)
                return
            status = server.statuses.pop(0) if server.statuses else None
            if status:
                self.reply(status, {"error_code": "INTERNAL_ERROR", "message": "password=hunter2"})
                return
            if server.authorization and self.headers.get("Authorization") != server.authorization:
                self.reply(401, {"message": "who?"})
                return
            try:
                answer = server.answer(urlsplit(self.path).path.removeprefix(PREFIX), body)
            except _Refused as error:
                self.reply(error.status, {"error_code": error.code, "message": "password=hunter2"})
                return
            self.reply(503 if status == 0 else 200, answer)

        def reply(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
    server.port = http.server_address[1]
    try:
        yield server
    finally:
        server.let_go.set()
        http.shutdown()
        http.server_close()


def connection(port: int, login: str = "", password: str = "", **others: Any) -> str:
    """Return an Airflow connection to a server, as the environment has it."""
    found = {"conn_type": "http", "host": "127.0.0.1", "schema": "http", "port": port, **others}
    return json.dumps(found | ({"login": login} if login else {}) | ({"password": password} if password else {}))


def basic(login: str, password: str) -> str:
    """Return the header of a login."""
    return "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()


def _pairs(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["key"]: item["value"] for item in items}


def _put(items: list[dict[str, Any]], item: dict[str, Any]) -> None:
    items[:] = [each for each in items if each["key"] != item["key"]] + [item]
