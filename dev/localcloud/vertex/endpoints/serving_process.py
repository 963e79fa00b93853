"""Serves one SavedModel over HTTP on loopback, with TensorFlow Serving's row semantics. Stand-alone: run as a script.

Comes in: a folder with a SavedModel (waited for: it may still be on its way while TensorFlow is imported). Goes out:
`POST /predict` {"instances": […]} -> {"predictions": […]} ({"inputs": …} -> {"outputs": …} by column), `GET /health`,
`GET /metadata`; errors as 400 {"error": …}. The port, and the secret that a request must bring, are
written to a file once the model can answer.
https://www.tensorflow.org/tfx/serving/api_rest
"""

from __future__ import annotations

import argparse
import base64
import http.server
import importlib.util
import json
import logging
import secrets
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np

# A JSON value.
Json = Any
SIGNATURE = "serving_default"
SECRET_FIELD = "X-Serving-Secret"  # noqa: S105 - a name
_INTEGERS = (np.integer, np.unsignedinteger)


class BadRequest(Exception):
    """The caller's instances do not fit the model."""


def import_session_runtime() -> tuple[Json, Any, Any, Any]:
    """Return TensorFlow's (loader, session, ops, config): what TensorFlow Serving itself runs on.

    `import tensorflow` takes three times as long and half as much memory again, for Keras and the rest that is not
    needed to serve. So its package is entered by a side door; when that is closed, by the front.
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


def _import_parts() -> tuple[Json, Any, Any, Any]:
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.client import session
    from tensorflow.python.framework import ops
    from tensorflow.python.saved_model import loader_impl

    return loader_impl, session, ops, config_pb2


class Model:
    """A loaded SavedModel."""

    def __init__(self, folder: Path) -> None:
        loader, session, ops, config = import_session_runtime()
        _wait_for(folder / "saved_model.pb")
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
        self._inputs = {name: graph.get_tensor_by_name(info.name) for name, info in signature.inputs.items()}
        self._outputs = {name: graph.get_tensor_by_name(info.name) for name, info in signature.outputs.items()}

    def metadata(self) -> dict[str, Json]:
        """Return names, types and shapes of the signature."""
        described = {
            side: {name: {"dtype": tensor.dtype.name, "shape": str(tensor.shape)} for name, tensor in tensors.items()}
            for side, tensors in (("inputs", self._inputs), ("outputs", self._outputs))
        }
        return {"signature_name": SIGNATURE, **described}

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


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


class _Door(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    model: Model
    secret: str

    def log_message(self, format: str, *args: object) -> None:
        del format, args  # the prediction service has its own access log

    def do_GET(self) -> None:
        if self._is_foreign():
            return
        if self.path == "/health":
            self._send(200, {"status": "ok"})
        elif self.path == "/metadata":
            self._send(200, self.model.metadata())
        else:
            self._send(404, {"error": f"{self.path} was not found. Expected /health or /metadata."})

    def do_POST(self) -> None:
        if self._is_foreign():
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self._send(200, self.model.answer(json.loads(body)))
        except BadRequest as error:
            self._send(400, {"error": str(error)})
        except ValueError as error:
            self._send(400, {"error": f"JSON Parse error: {error}"})

    def _is_foreign(self) -> bool:
        """Refuse who did not read the port file, which only this process's owner can."""
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
    """Load, listen, say where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the SavedModel")
    parser.add_argument(
        "--port-file", type=Path, required=True, help="port and secret are written here once the model can answer"
    )
    arguments = parser.parse_args()
    _Door.model = Model(arguments.model)
    _Door.secret = secrets.token_urlsafe(24)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Door)
    server.daemon_threads = True
    partial = arguments.port_file.with_suffix(".part")
    partial.touch(mode=0o600)
    partial.write_text(f"{server.server_address[1]} {_Door.secret}")
    partial.replace(arguments.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
