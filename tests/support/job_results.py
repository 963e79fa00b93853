"""What a job leaves for a request: the contracts' examples, made to be of that request.

In: the request's bytes, as they are stored. Out: the result's address, and its JSON.
"""

from __future__ import annotations

import json
from typing import Any

from retraining.core.documents import digest
from tests.support.contracts import EXAMPLES

TAKEN_OVER = ("table", "schema", "schema_hash", "compression", "format", "layout", "images")


def result_of(request: bytes) -> tuple[str, dict[str, Any]]:
    """Return the address and the JSON of what the job of a request leaves."""
    asked: dict[str, Any] = json.loads(request)
    same = {"model": asked["model"], "run_key": asked["run_key"], "request_digest": digest(request)}
    match asked["kind"]:
        case "export_request":
            return asked["manifest_uri"], _manifest(asked) | same
        case "train_request":
            return asked["report_uri"], _example("report__first_attempt") | same | {"model_uri": asked["model_uri"]}
        case "evaluate_request":
            duel = "evaluation__duel" if asked["champion"] else "evaluation__first_model"
            return asked["evaluation_uri"], _example(duel) | same
        case "score_request":
            model = {"model_uri": asked["models"][-1]["model_uri"]}
            return asked["models"][-1]["scores_uri"], _example("scores__skipped") | same | model
        case "multivariate_request":
            table = {"table": asked["table"]}
            return asked["multivariate_uri"], _example("multivariate__drifted") | same | table
    raise ValueError(asked["kind"])


def _manifest(asked: dict[str, Any]) -> dict[str, Any]:
    """The manifest of an export: a file for each part of a day, in the folder that its fingerprint names."""
    example = _example("manifest__three_spans")
    model_file = example["splits"]["test"]["files"][0]
    splits: dict[str, Any] = {name: {"rows": 0, "files": []} for name in ("train", "validation", "test")}
    for span in asked["spans"]:
        folder = f"{asked['spans_uri']}/{span['span']}/{span['fingerprint']}"
        for part in span["parts"]:
            split = splits["test" if span["span"] >= asked["test_start"] else part["part"]]
            place = {"uri": f"{folder}/{part['part']}-00000-of-00001.tfrecord.gz", "span": span["span"]}
            split["rows"] += part["rows"]
            split["files"].append(model_file | place | {"part": part["part"], "rows": part["rows"]})
    spans = [
        {name: span[name] for name in ("span", "fingerprint", "action", "because")}
        | {"rows": sum(part["rows"] for part in span["parts"])}
        for span in asked["spans"]
    ]
    taken_over = {name: asked[name] for name in TAKEN_OVER if name in asked}
    return example | taken_over | {"splits": splits, "spans": spans}


def _example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return found
