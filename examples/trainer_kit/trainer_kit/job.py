"""`python -m trainer.task {train,score} --request=gs://…`: the jobs of a trainer, whatever its framework.

`python -m trainer.task describe` prints what can be asked of it.

Exit codes: 0 done, also where an earlier process had done it; 2 the request or the data is wrong; 143 SIGTERM, the
machine was taken away: started again it begins anew; 1 anything else.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer_kit.data import Array, Encoder, number_of, read_split, text_of
from trainer_kit.errors import RequestError
from trainer_kit.framework import Framework, Trained, TrainingData
from trainer_kit.model import StoredModel
from trainer_kit.shards import Scalar
from trainer_kit.storage import Storage, digest_folder, parse_document, require_digest

STARTED = time.monotonic()
SMOKE_REQUESTS = 5
COMMON_KEYS = {"schema_version", "kind", "model", "run_key", "manifest_uri", "label", "key"}
TRAIN_KEYS = COMMON_KEYS | {"statistics_uri", "features", "training", "seed"}
TRAIN_KEYS |= {"model_uri", "report_uri", "checkpoint_uri", "tensorboard_uri"}
OPTIONAL_KEYS = {"trial_metric", "priors", "auxiliary_labels", "weight", "key_input", "digest_required"}
OPTIONAL_KEYS |= {"crosses", "initial", "initial_skipped"}
TRAIN_KEYS |= OPTIONAL_KEYS
_ROWS_ALONE = "none: this image learns from rows alone"
_NOT_DONE = {
    "auxiliary_labels": ("further labels", "none: this image learns one label"),
    "key_input": ("the key as an input", "none: these models read features alone"),
    "trial_metric": ("a trial of a study", "none: this image takes no trials"),
    "initial": ("a champion's weights", _ROWS_ALONE),
    "initial_skipped": ("a champion's weights are asked for", _ROWS_ALONE),
    "crosses": ("features crossed", "none: trees find what goes together"),
}
DESCRIPTION: dict[str, Any] = {
    "kind": "trainer",
    "schema_version": 1,
    "labels": ["binary", "multiclass", "regression"],
    "losses": ["mse"],
    "transforms": ["none"],
    "features": ["numeric", "categorical"],
    "inputs": ["tfrecord"],
    "feature_options": [],
    "warm_start": False,
    "auxiliary_labels": False,
    "weights": True,
    "trials": False,
    "several_machines": False,
    "request_digest": True,
}
"""What is read before a job is paid for, and `require_trainable` refuses what is left."""
SCORE_KEYS = COMMON_KEYS | {"splits", "models", "digest_required"}


def main(framework: Framework) -> int:
    """Run a command; return its exit code."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(prog="python -m trainer.task", description=__doc__)
    parser.add_argument("command", choices=["train", "score", "describe"])
    parser.add_argument("--request")
    options, rest = parser.parse_known_args()
    if options.command == "describe":
        print(json.dumps(DESCRIPTION | {"hyperparameters": sorted(framework.hyperparameters)}, indent=2))
        return 0
    try:
        if options.request is None:
            raise RequestError("flag --request", "is missing", "the request's address")
        if rest:
            raise RequestError(f"flag {rest[0]!r}", "is not known", "--request", "Search hyperparameters elsewhere")
        {"train": train, "score": score}[options.command](framework, options.request, Storage())
    except RequestError as error:
        say("ERROR", str(error))
        return 2
    except Exception:  # noqa: BLE001 - the edge of the process: whatever it is must stand in the log
        say("ERROR", traceback.format_exc())
        return 1
    return 0


def end_on_sigterm() -> None:
    """End with 143 at SIGTERM, also in the middle of compiled code, and where this is process 1 of a container.

    The kernel drops a signal of process 1 that any thread would take by default, so one must be caught: a blocked one
    goes to the threads that libraries started at their import. A handler of Python waits for the compiled code, the
    file descriptor of `set_wakeup_fd` does not.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def wait() -> None:
        while signal.SIGTERM not in os.read(reader, 1):
            pass
        say("ERROR", "SIGTERM: the machine is taken away; started again, the job begins anew")
        os._exit(143)

    threading.Thread(target=wait, daemon=True).start()
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGTERM, lambda *_: None)


def say(severity: str, message: str) -> None:
    """Print a line as Cloud Logging reads it."""
    stream = sys.stderr if severity == "ERROR" else sys.stdout
    print(json.dumps({"severity": severity, "message": message}), file=stream, flush=True)


def read_request(storage: Storage, uri: str, kind: str, keys: Collection[str]) -> tuple[dict[str, Any], str]:
    """Return a request, and the SHA-256 of its bytes: its result carries it, so that it is taken for no other one's.

    Raises:
        RequestError: It asks for something that this trainer does not know of: what came of it would be another thing.
    """
    content = storage.read_document(uri, kind)
    request = parse_document(content, uri, kind)
    if unknown := sorted(set(request).difference(keys)):
        raise RequestError(uri, f"unknown key {unknown[0]!r}", ", ".join(sorted(keys)), "Build a newer image")
    if missing := sorted(set(keys).difference(request) - OPTIONAL_KEYS):
        raise RequestError(uri, f"no key {missing[0]!r}", f"a document of kind {kind!r}")
    return request, hashlib.sha256(content).hexdigest()


def is_done(storage: Storage, uri: str, kind: str, request: Mapping[str, Any], digest: str) -> bool:
    """Return whether an earlier process came to the end; then the log says so.

    Raises:
        RequestError: What is there was made for another request; one of an earlier release asks for no proof.
    """
    if not storage.exists(uri):
        return False
    found = storage.read_json(uri, kind).get("request_digest")
    if request.get("digest_required") and found != digest:
        left = f"the result of another request: its request_digest is {str(found)[:80]}"
        raise RequestError(uri, left, f"{digest}, of this job's request, or no result", "Delete it, start again")
    say("INFO", f"{uri} is there already")
    return True


def train(framework: Framework, request_uri: str, storage: Storage) -> None:
    """Train, store the model, write the report last."""
    request, request_digest = read_request(storage, request_uri, "train_request", TRAIN_KEYS)
    if is_done(storage, request["report_uri"], "report", request, request_digest):
        return
    require_trainable(framework, request)
    manifest = storage.read_json(request["manifest_uri"], "manifest")
    names, weight = [feature["name"] for feature in request["features"]], request.get("weight")
    splits = {
        split: read_split(manifest, split, [*names, request["label"]["name"], *([weight] if weight else [])], storage)
        for split in ("train", "validation")
    }
    labels = {split: labels_of(request["label"], columns) for split, columns in splits.items()}
    encoder = Encoder.fit(request["features"], splits["train"])
    data = TrainingData(
        train=(encoder.encode(splits["train"]), labels["train"]),
        validation=(encoder.encode(splits["validation"]), labels["validation"]),
        encoder=encoder,
        label=request["label"],
        training=request["training"],
        seed=request["seed"],
        weights={split: weights_of(weight, columns) for split, columns in splits.items()} if weight else {},
    )
    read_s = time.monotonic() - STARTED
    trained = framework.train(data)
    trained_s = time.monotonic() - STARTED
    stored = StoredModel(framework=framework, model=trained.model, encoder=encoder, label=request["label"])
    with tempfile.TemporaryDirectory() as folder:
        stored.save(Path(folder))
        storage.upload_folder(Path(folder), request["model_uri"])
        digest = digest_folder(Path(folder))
        smoke_requests = ask(StoredModel.load(framework, Path(folder)), splits["validation"])
    seconds = {"startup": 0.0, "read": read_s, "train": trained_s - read_s}
    total = time.monotonic() - STARTED
    report = {
        **report_of(request, framework, trained, data),
        "request_digest": request_digest,
        "seconds": {**seconds, "save": total - trained_s, "total": total},
        "model_digest": digest,
        "golden": smoke_requests,
    }
    # Written last, and only once: whoever sees it may rely on the model.
    storage.write_once(request["report_uri"], json.dumps(report, indent=2, sort_keys=True).encode())
    say("INFO", f"train: round {trained.best} of {len(trained.history['loss'])}: {report['metrics']}")


def require_trainable(framework: Framework, request: Mapping[str, Any]) -> None:
    """Refuse what this trainer does not do.

    Raises:
        RequestError: It is asked for.
    """
    label, training = request["label"], request["training"]
    for key, (found, expected) in _NOT_DONE.items():
        if request.get(key):
            raise RequestError(f"train_request, {key}", found, expected)
    for option in ("transform", "max_vocabulary", "hash_buckets"):
        if asked := [feature["name"] for feature in request["features"] if feature.get(option)]:
            raise RequestError(f"feature {asked[0]!r}", option, "none: this image reads features as they stand")
    if unknown := sorted(set(training["hyperparameters"]).difference(framework.hyperparameters)):
        known = ", ".join(sorted(framework.hyperparameters))
        raise RequestError(f"hyperparameter {unknown[0]!r}", "is not known", known)
    require_label(label)


def require_label(label: Mapping[str, Any]) -> None:
    """Refuse a label that this trainer does not learn.

    Raises:
        RequestError: It is one.
    """
    where = f"label {label['name']!r}"
    if not isinstance(label.get("classes") or 2, int):
        expected = "their number: the answers of this image's models have no names"
        raise RequestError(where, "texts as classes", expected)
    for what, default, known in (("loss", "mse", "losses"), ("transform", "none", "transforms")):
        if label["kind"] == "regression" and label.get(what, default) not in DESCRIPTION[known]:
            expected = f"{', '.join(DESCRIPTION[known])}, which this image learns"
            raise RequestError(where, f"{what} {label[what]}", expected)


def labels_of(label: Mapping[str, Any], columns: Mapping[str, Sequence[Scalar]]) -> Array:
    """Return the labels of examples.

    Raises:
        RequestError: One is missing, or none of the label's kind.
    """
    labels = np.array([number_of(value) for value in columns[label["name"]]], np.float64)
    right = np.isfinite(labels)
    if label["kind"] != "regression":
        right &= (labels == np.floor(labels)) & (labels >= 0) & (labels < label.get("classes", 2))
    if not right.all():
        raise RequestError(f"label {label['name']!r}", f"{int((~right).sum())} are missing or wrong", label["kind"])
    return labels


def weights_of(column: str, columns: Mapping[str, Sequence[Scalar]]) -> Array:
    """Return how much examples count.

    Raises:
        RequestError: One is missing, negative or infinite.
    """
    weights = np.array([number_of(value) for value in columns[column]], np.float64)
    if wrong := int((~(np.isfinite(weights) & (weights >= 0))).sum()):
        raise RequestError(f"weight {column!r}", f"{wrong} are missing or wrong", "finite numbers from 0 on")
    return weights


def report_of(request: Mapping[str, Any], framework: Framework, trained: Trained, data: TrainingData) -> dict[str, Any]:
    """Return what can be said without the stored model."""
    output = {"binary": "score", "multiclass": "scores"}.get(request["label"]["kind"], "prediction")
    rounds, (_, labels) = len(trained.history["loss"]), data.train
    types = {True: "string", False: "float32"}
    return {
        "kind": "report",
        "schema_version": 1,
        "model": request["model"],
        "run_key": request["run_key"],
        "framework": {
            "python": platform.python_version(),
            "trainer": "trainer_kit 1",
            "packages": dict(framework.packages),
        },
        "strategy": "one_device",
        "hyperparameters": {**framework.hyperparameters, **request["training"]["hyperparameters"]},
        "history": {name: list(values) for name, values in trained.history.items()},
        "best_epoch": trained.best,
        "epochs_run": rounds,
        "resumed_from_epoch": None,
        "metrics": {name: values[trained.best - 1] for name, values in trained.history.items() if "val_" in name},
        "train_rows": len(labels),
        "validation_rows": len(data.validation[1]),
        "steps": rounds,
        "examples_per_second": len(labels) * rounds / max(time.monotonic() - STARTED, 1e-9),
        "parameters": trained.parameters,
        "model_uri": request["model_uri"].rstrip("/"),
        "signature": {
            "inputs": {
                name: types[text] for name, text in zip(data.encoder.names, data.encoder.is_category, strict=True)
            },
            "outputs": {output: "float32"},
        },
    }


def ask(model: StoredModel, columns: Mapping[str, Sequence[Scalar]]) -> list[dict[str, Any]]:
    """Return examples without missing values, and what the stored model answers: the endpoint is asked the same."""
    names, texts = model.encoder.names, model.encoder.is_category
    rows = len(columns[names[0]])
    whole = [row for row in range(rows) if all(columns[name][row] not in (None, b"") for name in names)]
    chosen = whole[:SMOKE_REQUESTS]
    if not chosen:
        return []
    answers = model.answer({name: [columns[name][row] for row in chosen] for name in names})
    return [
        {
            "instance": {
                name: text_of(columns[name][row]) if is_text else number_of(columns[name][row])
                for name, is_text in zip(names, texts, strict=True)
            },
            "prediction": np.asarray(answer, np.float64).tolist(),
        }
        for row, answer in zip(chosen, answers, strict=True)
    ]


def score(framework: Framework, request_uri: str, storage: Storage) -> None:
    """Write what each model answers to each example; the documents last, in the request's order."""
    request, request_digest = read_request(storage, request_uri, "score_request", SCORE_KEYS)
    if is_done(storage, request["models"][-1]["scores_uri"], "scores", request, request_digest):
        return
    manifest = storage.read_json(request["manifest_uri"], "manifest")
    for asked in request["models"]:
        with tempfile.TemporaryDirectory() as folder:
            storage.download_folder(asked["model_uri"], Path(folder))
            digest = require_digest(asked["model_uri"], Path(folder), asked.get("model_digest"))
            model = StoredModel.load(framework, Path(folder))
        skipped = mismatch(model, request["label"], manifest)
        folder_uri = asked["scores_uri"].rpartition("/")[0]
        splits = {
            name: score_split(model, name, f"{folder_uri}/{name}.parquet", request, manifest, storage)
            for name in (() if skipped else request["splits"])
        }
        document = {
            "kind": "scores",
            "schema_version": 1,
            "model": request["model"],
            "run_key": request["run_key"],
            "request_digest": request_digest,
            "model_uri": asked["model_uri"],
            "model_digest": digest,
            "framework": dict(framework.packages),
            "splits": splits,
            "skipped": skipped,
        }
        storage.write(asked["scores_uri"], json.dumps(document, indent=2, sort_keys=True).encode())
        say("INFO", f"score: {asked['model_uri']}: {skipped or 'wrote ' + asked['scores_uri']}")


def mismatch(model: StoredModel, label: Mapping[str, Any], manifest: Mapping[str, Any]) -> str | None:
    """Say why a model cannot answer these examples; None: it can."""
    columns = {column["name"] for column in manifest["schema"] if column["mode"] != "REPEATED"}
    for name in model.encoder.names:
        if name not in columns:
            return f"reads {name!r}, which these examples do not have"
    theirs, ours = ((each["kind"], each.get("classes")) for each in (model.label, label))
    return None if theirs == ours else f"answers a label of kind {model.label['kind']}"


def score_split(
    model: StoredModel, name: str, uri: str, request: Mapping[str, Any], manifest: Mapping[str, Any], storage: Storage
) -> dict[str, Any]:
    """Write a split's answers; return what the document says of them."""
    key, label = request["key"], request["label"]
    columns = read_split(manifest, name, sorted({*model.encoder.names, key, label["name"]}), storage)
    scores = np.asarray(model.answer(columns), np.float64)
    table = {
        "key": [text_of(value) for value in columns[key]],
        "label": labels_of(label, columns),
        "score": scores if scores.ndim == 1 else list(scores),
    }
    file = io.BytesIO()
    pq.write_table(pa.table(table), file)
    storage.write(uri, file.getvalue())
    shards = [{name: shard[name] for name in ("uri", "sha256", "rows")} for shard in manifest["splits"][name]["files"]]
    sha256 = hashlib.sha256(file.getvalue()).hexdigest()
    return {"uri": uri, "sha256": sha256, "rows": len(scores), "shards": shards}
