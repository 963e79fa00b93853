"""Serves one SavedModel over HTTP on loopback, in the place of a container. Stand-alone: run as a script.

Comes in: whose place it takes, and that container's arguments and variables. `vertex`, a pre-built container of Vertex
AI: AIP_HTTP_PORT, AIP_HEALTH_ROUTE and AIP_PREDICT_ROUTE, the model is in the folder itself. `tensorflow`, TensorFlow
Serving's image: its flags, the model is in a numbered folder below the base path, of which the newest is served. What
is below AIP_STORAGE_URI is read from LOCALCLOUD_ARTIFACTS, its copy on this machine, which is waited for: it may be on
its way while TensorFlow is imported. With LOCALCLOUD_SERVING_SECRET, a request must bring that. Goes out: TensorFlow
Serving's JSON, by rows ({"instances": […]} -> {"predictions": […]}) and by columns, its errors and statuses.
https://www.tensorflow.org/tfx/serving/api_rest
"""

from __future__ import annotations

import argparse
import base64
import http.server
import importlib.util
import json
import logging
import os
import re
import secrets
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np

# A JSON value.
Json = Any
# TensorFlow's loader, session, operations, configuration.
Runtime = tuple[Any, Any, Any, Any]
SIGNATURE = "serving_default"
SECRET_FIELD = "X-Serving-Secret"  # noqa: S105 - a name
_INTEGERS = (np.integer, np.unsignedinteger)


class BadRequest(Exception):
    """The caller's instances do not fit the model."""


def import_session_runtime() -> Runtime:
    """Return what TensorFlow Serving itself runs on.

    `import tensorflow` takes three times as long and half as much memory again, for Keras and the rest that is not
    needed to serve. So its package is entered by an inner module; when that is closed, by its public one.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("serving: TensorFlow is not installed in this environment. Expected one that has it.")
    package = types.ModuleType("tensorflow")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["tensorflow"] = package
    try:
        return _import_parts()
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
            del sys.modules[name]
        importlib.import_module("tensorflow")
        return _import_parts()


def _import_parts() -> Runtime:
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.client import session
    from tensorflow.python.framework import ops
    from tensorflow.python.saved_model import loader_impl

    return loader_impl, session, ops, config_pb2


class Model:
    """A loaded SavedModel."""

    def __init__(self, folder: Path, runtime: Runtime | None = None) -> None:
        loader, session, ops, config = runtime or import_session_runtime()
        graph = ops.Graph()
        options = config.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        self._session = session.Session(graph=graph, config=options)
        logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it calls its own loader deprecated
        with graph.as_default():
            signatures = loader.load(self._session, ["serve"], str(folder)).signature_def
        if SIGNATURE not in signatures:
            raise SystemExit(
                f"serving: the SavedModel has the signatures {sorted(signatures)}. Expected {SIGNATURE!r}."
                f" Export it with that signature."
            )
        signature = signatures[SIGNATURE]
        infos = {"inputs": signature.inputs, "outputs": signature.outputs}
        self._tensors = {side: {name: _described(info) for name, info in of.items()} for side, of in infos.items()}
        self._inputs = {name: graph.get_tensor_by_name(info.name) for name, info in signature.inputs.items()}
        self._outputs = {name: graph.get_tensor_by_name(info.name) for name, info in signature.outputs.items()}

    def metadata(self) -> dict[str, Json]:
        """Return names, types and shapes of the signature, as TensorFlow Serving describes it."""
        method = {"method_name": "tensorflow/serving/predict"}
        return {"signature_def": {SIGNATURE: {**self._tensors, **method}}}

    def answer(self, request: Json) -> dict[str, Json]:
        """Answer a request by row (`instances`) or by column (`inputs`).

        Raises:
            BadRequest: It does not fit the signature.
        """
        if not isinstance(request, dict) or ("instances" in request) == ("inputs" in request):
            raise BadRequest("Missing 'inputs' or 'instances' key. Expected exactly one of them.")
        name = request.get("signature_name", SIGNATURE)
        if name != SIGNATURE:
            raise BadRequest(f'Serving signature name: "{name}" not found in signature def. Expected {SIGNATURE!r}.')
        if "instances" in request:
            rows = request["instances"]
            columns = self._columns(rows)
            outputs = self._run_session({name: self._tensor(name, values) for name, values in columns.items()})
            return {"predictions": self._rows(outputs, len(rows))}
        return {"outputs": self._by_column(request["inputs"])}

    def _columns(self, rows: Json) -> dict[str, list[Json]]:
        if not isinstance(rows, list) or not rows:
            raise BadRequest("Request data is malformed: 'instances' must be a list with at least one element.")
        names = list(self._inputs)
        columns: dict[str, list[Json]] = {name: [] for name in names}
        for index, row in enumerate(rows):
            named = isinstance(row, dict) and set(row) != {"b64"}
            if not named and len(names) > 1:
                raise BadRequest(
                    f"Failed to process element: {index} of 'instances' list. Expected an object with the"
                    f" keys {sorted(names)}."
                )
            values = row if named else {names[0]: row}
            if set(values) != set(names):
                missing, strange = sorted(set(names) - set(values)), sorted(set(values) - set(names))
                raise BadRequest(
                    f"Failed to process element: {index} of 'instances' list. JSON object keys must be"
                    f" equal to: {','.join(sorted(names))};"
                    f" missing: {missing}, unknown: {strange}."
                )
            for name in names:
                columns[name].append(values[name])
        return columns

    def _by_column(self, inputs: Json) -> Json:
        names = list(self._inputs)
        columns = inputs if isinstance(inputs, dict) and set(inputs) == set(names) else {names[0]: inputs}
        if len(names) > 1 and columns is not inputs:
            raise BadRequest(f"'inputs' must be an object with the keys {sorted(names)}.")
        outputs = {
            name: _plain(values)
            for name, values in self._run_session(
                {name: self._tensor(name, values) for name, values in columns.items()}
            ).items()
        }
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def _tensor(self, name: str, values: Json) -> np.ndarray[Any, Any]:
        placeholder = self._inputs[name]
        if placeholder.dtype.name == "string":
            return np.array(_decode(values, name), dtype=object)
        kind = np.dtype(placeholder.dtype.as_numpy_dtype)
        _check_numbers(values, kind, name)
        try:
            array = np.array(values, dtype=np.float64 if not issubclass(kind.type, (*_INTEGERS, np.bool_)) else None)
        except ValueError:
            raise BadRequest(
                f"The values of {name!r} have different shapes. Expected every instance to have the shape"
                f" {placeholder.shape[1:]}."
            ) from None
        if not placeholder.shape.is_compatible_with(array.shape):
            raise BadRequest(
                f"The values of {name!r} have the shape {list(array.shape)}. Expected {placeholder.shape}."
            )
        return array.astype(kind)

    def _run_session(self, feeds: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        try:
            result: dict[str, np.ndarray[Any, Any]] = self._session.run(
                self._outputs, {self._inputs[name]: value for name, value in feeds.items()}
            )
        except Exception as error:  # TensorFlow's error classes share no importable base here
            raise BadRequest(str(error).split("\n", 1)[0]) from error
        return result

    @staticmethod
    def _rows(outputs: dict[str, np.ndarray[Any, Any]], count: int) -> list[Json]:
        for name, values in outputs.items():
            if values.shape[:1] != (count,):
                raise BadRequest(
                    f"The output {name!r} has the shape {list(values.shape)} for {count} instances."
                    f" Expected the batch as first dimension."
                )
        plain = {name: _plain(values) for name, values in outputs.items()}
        if len(plain) == 1:
            return list(next(iter(plain.values())))
        return [{name: values[i] for name, values in plain.items()} for i in range(count)]


def _described(info: Json) -> Json:
    """Return type and shape of a tensor's description in the signature."""
    sizes = [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim]
    shape = {"dim": sizes, "unknown_rank": info.tensor_shape.unknown_rank}
    types = info.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number
    return {"dtype": types[info.dtype].name, "tensor_shape": shape}


def _decode(values: Json, name: str) -> Json:
    if isinstance(values, list):
        return [_decode(value, name) for value in values]
    if isinstance(values, dict) and set(values) == {"b64"}:
        return _from_base64(values["b64"], name)
    if isinstance(values, str):
        return values.encode()
    raise BadRequest(f"JSON Value: {json.dumps(values)} of {name!r} is not of expected type: string.")


def _from_base64(text: Json, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise BadRequest(
            f'Unable to base64 decode the value of {name!r}: {error}. Expected {{"b64": "…"}} with the usual alphabet.'
        ) from None


def _check_numbers(values: Json, kind: np.dtype[Any], name: str) -> None:
    if isinstance(values, list):
        for value in values:
            _check_numbers(value, kind, name)
        return
    good = (
        isinstance(values, bool)
        if kind == np.bool_
        else isinstance(values, int | float) and not isinstance(values, bool)
    )
    if good and issubclass(kind.type, _INTEGERS):
        good = float(values).is_integer()
    if not good:
        raise BadRequest(f"JSON Value: {json.dumps(values)} of {name!r} is not of expected type: {kind.name}.")


def _plain(values: np.ndarray[Any, Any]) -> Json:
    if values.dtype == object:
        return np.vectorize(
            lambda value: value.decode(errors="replace") if isinstance(value, bytes) else value, otypes=[object]
        )(values).tolist()
    return values.tolist()


Answer = tuple[int, dict[str, Json]]


class PrebuiltContainer:
    """A pre-built container of Vertex AI: the routes that the service gives it.

    Args:
        runtime: TensorFlow.
        arguments: Of its command line: none.
    """

    def __init__(self, runtime: Runtime, arguments: list[str]) -> None:
        argparse.ArgumentParser(prog="vertex").parse_args(arguments)
        self.port = int(os.environ["AIP_HTTP_PORT"])
        self._health, self._predict = os.environ["AIP_HEALTH_ROUTE"], os.environ["AIP_PREDICT_ROUTE"]
        self._model = Model(_local_copy(os.environ["AIP_STORAGE_URI"]), runtime)

    def get(self, path: str) -> Answer:
        """Answer GET."""
        return (200, {}) if path == self._health else (404, {"error": f"Not found: {path}"})

    def post(self, path: str, request: Json) -> Answer:
        """Answer POST; the signature may be named among the parameters."""
        if path != self._predict:
            return 404, {"error": f"Not found: {path}"}
        parameters = request.get("parameters") if isinstance(request, dict) else None
        if isinstance(parameters, dict) and "signature_name" in parameters:
            request = {**request, "signature_name": parameters["signature_name"]}
        return 200, self._model.answer(request)


class TensorFlowServing:
    """TensorFlow Serving: its flags, its routes.

    Args:
        runtime: TensorFlow.
        arguments: Its command line; of the flags that are without effect here, only names are looked at.
    """

    def __init__(self, runtime: Runtime, arguments: list[str]) -> None:
        parser = argparse.ArgumentParser(prog="tensorflow_model_server", allow_abbrev=False)
        parser.add_argument("--rest_api_port", type=int, default=int(os.environ.get("PORT", "8501")))
        parser.add_argument("--model_name", default=os.environ.get("MODEL_NAME", "model"))
        parser.add_argument("--model_base_path", default="")
        parser.add_argument("--file_system_poll_wait_seconds", type=int)  # a copy does not change
        flags, others = parser.parse_known_args(arguments)
        if others:
            print(f"tensorflow_model_server: without effect here: {' '.join(others)}")
        self.port, self._name = flags.rest_api_port, flags.model_name
        base = flags.model_base_path or f"{os.environ.get('MODEL_BASE_PATH', '/models')}/{self._name}"
        folder = _local_copy(base)
        versions = [each for each in folder.iterdir() if each.name.isdecimal()] if folder.is_dir() else []
        if not versions:
            raise SystemExit(
                f"No versions of servable {self._name} found under base path {base}. Did you forget to name your leaf"
                " directory as a number (eg. '/1/')?"
            )
        newest = max(versions, key=lambda each: int(each.name))
        self._version = str(int(newest.name))
        self._model = Model(newest, runtime)

    def get(self, path: str) -> Answer:
        """Answer GET: state, or metadata."""
        asked = re.fullmatch(r"/v1/models/(?P<name>[^/:]+)(/versions/(?P<version>\d+))?(?P<part>/metadata)?", path)
        if asked is None:
            return 400, {"error": f"Malformed request: GET {path}"}
        if asked["name"] != self._name:
            return 404, {"error": f"Could not find any versions of model {asked['name']}"}
        if asked["version"] not in (None, self._version):
            return 404, {"error": f"Could not find version {asked['version']} of model {self._name}"}
        if asked["part"]:
            spec = {"name": self._name, "signature_name": "", "version": self._version}
            return 200, {"model_spec": spec, "metadata": {"signature_def": self._model.metadata()}}
        state = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
        return 200, {"model_version_status": [{"version": self._version, **state}]}

    def post(self, path: str, request: Json) -> Answer:
        """Answer POST: predictions."""
        asked = re.fullmatch(r"/v1/models/(?P<name>[^/:]+)(/versions/(?P<version>\d+))?:predict", path)
        if asked is None:
            return 400, {"error": f"Malformed request: POST {path}"}
        name, version = asked["name"], asked["version"]
        if name != self._name or version not in (None, self._version):
            wanted = f"Specific({name}, {version})" if version else f"Latest({name})"
            return 404, {"error": f"Servable not found for request: {wanted}"}
        return 200, self._model.answer(request)


def _local_copy(uri: str) -> Path:
    """Return where an address below AIP_STORAGE_URI is on this machine, once it is there; other paths as they are."""
    storage, copy = os.environ.get("AIP_STORAGE_URI", "").rstrip("/"), os.environ.get("LOCALCLOUD_ARTIFACTS")
    if not (copy and storage and f"{uri}/".startswith(f"{storage}/")):
        return Path(uri)
    while not Path(copy).exists():
        time.sleep(0.01)
    return Path(copy, uri.removeprefix(storage).strip("/"))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    container: PrebuiltContainer | TensorFlowServing
    secret = os.environ.get("LOCALCLOUD_SERVING_SECRET", "")

    def log_message(self, format: str, *args: object) -> None:
        del format, args  # the prediction service has its own access log

    def do_GET(self) -> None:
        if not self._is_foreign():
            self._send(*self.container.get(self.path))

    def do_POST(self) -> None:
        if self._is_foreign():
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self._send(*self.container.post(self.path, json.loads(body)))
        except BadRequest as error:
            self._send(400, {"error": str(error)})
        except ValueError as error:
            self._send(400, {"error": f"JSON Parse error: {error}"})

    def _is_foreign(self) -> bool:
        """Refuse who does not know the secret, which only this process's owner can read."""
        foreign = not secrets.compare_digest(self.headers.get(SECRET_FIELD, ""), self.secret)
        if foreign:
            self.close_connection = True
            self._send(401, {"error": "This server is for the prediction service alone."})
        return foreign

    def _send(self, status: int, answer: dict[str, Json]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Load, then listen."""
    place, *arguments = sys.argv[1:]
    containers: dict[str, type[PrebuiltContainer | TensorFlowServing]]
    containers = {"vertex": PrebuiltContainer, "tensorflow": TensorFlowServing}
    _Handler.container = container = containers[place](import_session_runtime(), arguments)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", container.port), _Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
