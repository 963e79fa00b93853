"""Serves a model by the routes that Vertex AI asks of a container; Python's own server, a thread per connection.

https://cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements: `AIP_HTTP_PORT`, `AIP_HEALTH_ROUTE`
and `AIP_PREDICT_ROUTE` say where, `AIP_STORAGE_URI` is the model's folder, `MODEL_DIGEST` the SHA-256 that
its files had when they were registered: others are not loaded. Requests are
`{"instances": [{feature: value}]}`, answers `{"predictions": […]}`: a number per instance, of several classes a list.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from trainer_kit.framework import Framework
from trainer_kit.job import end_on_sigterm, say
from trainer_kit.json_text import read_json
from trainer_kit.model import StoredModel
from trainer_kit.shards import Scalar
from trainer_kit.storage import Storage, require_digest

MODEL_DIGEST = "MODEL_DIGEST"
"""Set by the registry with the version, where no job can write."""


def serve(framework: Framework, environ: Mapping[str, str] = os.environ) -> None:
    """Fetch the model and answer until the process is ended."""
    end_on_sigterm()
    model = fetch_model(framework, environ)
    address = ("0.0.0.0", int(environ.get("AIP_HTTP_PORT", "8080")))  # noqa: S104 - a container's only port
    routes = environ.get("AIP_HEALTH_ROUTE", "/health"), environ.get("AIP_PREDICT_ROUTE", "/predict")
    server = ThreadingHTTPServer(address, handler(model, *routes))
    say("INFO", f"serving {environ['AIP_STORAGE_URI']} on port {address[1]}")
    server.serve_forever()


def fetch_model(framework: Framework, environ: Mapping[str, str]) -> StoredModel:
    """Return the version's model, proven by its digest before anything of it is loaded.

    Raises:
        RequestError: Its files are not those that were registered.
    """
    with tempfile.TemporaryDirectory() as folder:
        Storage().download_folder(environ["AIP_STORAGE_URI"], Path(folder))
        if not environ.get(MODEL_DIGEST):  # a version of an earlier release
            say("WARNING", f"{MODEL_DIGEST} is not set: nothing proves that these are the files that were registered")
        require_digest(environ["AIP_STORAGE_URI"], Path(folder), environ.get(MODEL_DIGEST))
        return StoredModel.load(framework, Path(folder))


def handler(model: StoredModel, health: str, predict: str) -> type[BaseHTTPRequestHandler]:
    """Return what answers one connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Say that the model is there."""
            self._send(200 if self.path == health else 404, {})

        def do_POST(self) -> None:
            """Answer instances."""
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path != predict:
                self._send(404, {"error": f"no route {self.path}"})
                return
            try:
                self._send(200, {"predictions": answer(model, content)})
            except (ValueError, TypeError, KeyError) as error:
                self._send(400, {"error": f"{type(error).__name__}: {error}"})

        def log_message(self, format: str, *arguments: object) -> None:
            """Leave requests to the service's own log."""

        def _send(self, status: int, body: Mapping[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def answer(model: StoredModel, content: bytes) -> list[Any]:
    """Return the answers to a request.

    Raises:
        ValueError: It is not of the form above; or a value is none of its feature.
    """
    body = read_json(content)
    instances = body.get("instances") if isinstance(body, dict) else None
    if not isinstance(instances, list) or not all(isinstance(each, dict) for each in instances) or not instances:
        raise ValueError('expected {"instances": [{feature: value, …}, …]}')
    columns: dict[str, list[Scalar]] = {}
    for name, is_text in zip(model.encoder.names, model.encoder.is_category, strict=True):
        columns[name] = [_value(name, each, is_text) for each in instances]
    answers: list[Any] = np.asarray(model.answer(columns), np.float64).tolist()
    return answers


def _value(name: str, instance: Mapping[str, Any], is_text: bool) -> Scalar:
    if name not in instance:
        raise ValueError(f"instance without {name!r}")
    value = instance[name]
    if value is None:
        return None
    if is_text:
        return str(value).encode()
    if isinstance(value, bool | int | float):
        return float(value)
    raise ValueError(f"{name!r} is {value!r}: expected a number")
