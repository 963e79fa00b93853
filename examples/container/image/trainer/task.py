"""`python -m trainer.task train --request=gs://…/train_request.json`: a logistic regression in plain TensorFlow.

Everything that a training image must do stands here: read the request, the manifest and its files; store a SavedModel
with the signature `serving_default`; write the report, last. Exit code 2 says that trying again cannot help.
The documents are described by plugins/retraining/package_data/contracts/{train_request,manifest,report}.schema.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.cloud import storage

STARTED = time.monotonic()
SMOKE_REQUESTS = 5
SHUFFLE_BUFFER = 100_000


class Bucket:
    """Objects by their address."""

    def __init__(self) -> None:
        self._client = storage.Client()

    def blob(self, uri: str) -> storage.Blob:
        """Return the object of an address `gs://bucket/name`."""
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        return self._client.bucket(bucket).blob(name)

    def read(self, uri: str) -> bytes:
        """Return an object's content."""
        return bytes(self.blob(uri).download_as_bytes())

    def upload_folder(self, path: Path, uri: str) -> str:
        """Upload a folder; return the digest of its files as the report states it."""
        digest = hashlib.sha256()
        for file in sorted(path.rglob("*"), key=lambda file: file.relative_to(path).as_posix()):
            if file.is_file():
                name = file.relative_to(path).as_posix()
                self.blob(f"{uri}/{name}").upload_from_filename(file)
                digest.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return digest.hexdigest()


class Logistic(tf.Module):
    """A weight per standardised number and per hashed category.

    Args:
        features: `name` and `kind` (numeric, categorical) of each.
        statistics: Of the numeric ones: mean and standard deviation.
        buckets: Hash buckets of each category.
    """

    def __init__(
        self, features: list[dict[str, Any]], statistics: dict[str, tuple[float, float]], buckets: int
    ) -> None:
        super().__init__()
        self.kinds = {feature["name"]: feature["kind"] for feature in features}
        self.statistics, self.buckets = statistics, buckets
        self.bias = tf.Variable(0.0)
        self.weights = {
            name: tf.Variable(tf.zeros([buckets if kind == "categorical" else 1])) for name, kind in self.kinds.items()
        }

    def logits(self, raw: dict[str, tf.Tensor]) -> tf.Tensor:
        """Return the logits [batch] of raw features [batch] each; a missing number counts as the mean."""
        total = tf.identity(self.bias)
        for name, kind in self.kinds.items():
            if kind == "categorical":
                total += tf.gather(self.weights[name], tf.strings.to_hash_bucket_fast(raw[name], self.buckets))
            else:
                mean, deviation = self.statistics[name]
                standard = (raw[name] - mean) / deviation
                total += self.weights[name][0] * tf.where(tf.math.is_nan(standard), 0.0, standard)
        return total

    def save(self, path: Path) -> None:
        """Store it with the signature that evaluation and endpoint ask: raw features in, `score` [batch] out."""

        def score(**raw: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"score": tf.sigmoid(self.logits(raw))}

        specs = {name: tf.TensorSpec([None], dtype_of(kind), name=name) for name, kind in self.kinds.items()}
        signature = tf.function(score).get_concrete_function(**specs)
        tf.saved_model.save(self, str(path), signatures={"serving_default": signature})


def dtype_of(kind: str) -> tf.DType:
    """Return the type of a feature's input."""
    return tf.string if kind == "categorical" else tf.float32


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["train"])
    parser.add_argument("--request", required=True)
    options = parser.parse_args()
    bucket = Bucket()
    content = bucket.read(options.request)
    request = json.loads(content)
    if bucket.blob(request["report_uri"]).exists():  # a job may be started again
        return 0
    if unknown := {feature["kind"] for feature in request["features"]} - {"numeric", "categorical"}:
        print(f"features of kind {sorted(unknown)}: this image reads numeric and categorical ones", file=sys.stderr)
        return 2
    train(request, hashlib.sha256(content).hexdigest(), bucket)
    return 0


def train(request: dict[str, Any], request_digest: str, bucket: Bucket) -> None:
    """Train, store the model, write the report, which counts for the request of this digest alone."""
    tf.keras.utils.set_random_seed(request["seed"])
    training, manifest = request["training"], json.loads(bucket.read(request["manifest_uri"]))
    with tempfile.TemporaryDirectory() as folder:
        splits = {
            split: read_examples(request, manifest["splits"][split]["files"], manifest, bucket, Path(folder))
            for split in ("train", "validation")
        }
        read_s = time.monotonic() - STARTED
        features, labels = splits["train"]
        model = Logistic(
            request["features"],
            {name: moments(values) for name, values in features.items() if values.dtype == np.float32},
            int(training["hyperparameters"].get("buckets", 64)),
        )
        history = fit(model, splits, training)
        trained_s = time.monotonic() - STARTED
        model_path = Path(folder, "model")
        model.save(model_path)
        model_uri = request["model_uri"].rstrip("/")
        digest = bucket.upload_folder(model_path, model_uri)
        requests = smoke_requests(model_path, splits["validation"][0])
    best = int(np.argmin(history["val_loss"]))
    steps = -(-len(labels) // training["batch_size"]) * training["epochs"]
    now = time.monotonic() - STARTED
    report = {
        "kind": "report",
        "schema_version": 1,
        "model": request["model"],
        "run_key": request["run_key"],
        "request_digest": request_digest,
        "framework": {
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "tf_keras": "none",
            "trainer": "plain 1",
        },
        "strategy": "one_device",
        "hyperparameters": training["hyperparameters"],
        "history": history,
        "best_epoch": best + 1,
        "epochs_run": training["epochs"],
        "resumed_from_epoch": None,
        "metrics": {name: values[best] for name, values in history.items() if name.startswith("val_")},
        "train_rows": len(labels),
        "validation_rows": len(splits["validation"][1]),
        "steps": steps,
        "examples_per_second": len(labels) * training["epochs"] / (trained_s - read_s),
        "seconds": {"startup": 0, "read": read_s, "train": trained_s - read_s, "save": now - trained_s, "total": now},
        "parameters": 1 + sum(int(weight.shape[0]) for weight in model.weights.values()),
        "model_uri": model_uri,
        "model_digest": digest,
        "signature": {
            "inputs": {name: dtype_of(kind).name for name, kind in model.kinds.items()},
            "outputs": {"score": "float32"},
        },
        "golden": requests,
    }
    # Written last, and only once: whoever sees it may rely on the model.
    bucket.blob(request["report_uri"]).upload_from_string(json.dumps(report), if_generation_match=0)


def read_examples(
    request: dict[str, Any], files: list[dict[str, Any]], manifest: dict[str, Any], bucket: Bucket, folder: Path
) -> tuple[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Return features by name and labels, [rows] each. A value that is absent is NaN or ""."""
    columns = {
        feature["name"]: tf.io.FixedLenFeature(
            [], dtype_of(feature["kind"]), "" if feature["kind"] == "categorical" else float("nan")
        )
        for feature in request["features"]
    }
    integers = {column["name"] for column in manifest["schema"] if column["type"] in ("INTEGER", "BOOLEAN")}
    stored = {name: tf.io.VarLenFeature(tf.int64) if name in integers else spec for name, spec in columns.items()}
    stored[request["label"]["name"]] = tf.io.FixedLenFeature([], tf.int64)

    def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(records, stored)
        for name in integers & set(columns):  # a whole number without a value leaves no value that could stand for it
            dense = tf.sparse.to_dense(tf.cast(parsed[name], tf.float32), float("nan"))
            parsed[name] = tf.pad(dense, [[0, 0], [0, 1]], constant_values=float("nan"))[:, 0]
        return parsed

    paths = list(download(files, bucket, folder))
    batches = tf.data.TFRecordDataset(paths, compression_type=manifest["compression"]).batch(4096).map(parse)
    arrays = list(batches.as_numpy_iterator())
    table = {name: np.concatenate([batch[name] for batch in arrays]) for name in stored}
    labels = table.pop(request["label"]["name"]).astype(np.float32)
    return table, labels


def download(files: list[dict[str, Any]], bucket: Bucket, folder: Path) -> Iterator[str]:
    """Fetch files; yield their paths."""
    for number, file in enumerate(files):
        path = folder / f"{file['sha256']}-{number}"
        bucket.blob(file["uri"]).download_to_filename(path, checksum="crc32c")
        yield str(path)


def moments(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return mean and standard deviation of what is there, 0 and 1 where nothing is."""
    there = values[~np.isnan(values)]
    return (float(there.mean()), float(there.std()) or 1.0) if there.size else (0.0, 1.0)


def fit(model: Logistic, splits: dict[str, Any], training: dict[str, Any]) -> dict[str, list[float]]:
    """Take the steps; return log loss and AUC of both splits after each epoch."""
    optimizer = tf.keras.optimizers.Adam(float(training["hyperparameters"].get("learning_rate", 0.01)))
    variables = model.trainable_variables
    optimizer.build(variables)

    @tf.function
    def step(raw: dict[str, tf.Tensor], labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, model.logits(raw))
            loss = tf.reduce_mean(losses)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    batches = tf.data.Dataset.from_tensor_slices(splits["train"]).shuffle(SHUFFLE_BUFFER).batch(training["batch_size"])
    history: dict[str, list[float]] = {"loss": [], "auc": [], "val_loss": [], "val_auc": []}
    for epoch in range(training["epochs"]):
        for raw, labels in batches:
            step(raw, labels)
        for prefix, (raw, labels) in (("", splits["train"]), ("val_", splits["validation"])):
            logits = model.logits({name: tf.constant(values) for name, values in raw.items()})
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            auc = tf.keras.metrics.AUC(from_logits=True)
            auc.update_state(labels, logits)
            history[f"{prefix}loss"].append(float(tf.reduce_mean(losses)))
            history[f"{prefix}auc"].append(float(auc.result()))
        print(f"epoch {epoch + 1}: " + ", ".join(f"{name} {values[-1]:.4f}" for name, values in history.items()))
    return history


def smoke_requests(model_path: Path, features: dict[str, np.ndarray[Any, Any]]) -> list[dict[str, Any]]:
    """Return examples without missing values, and what the stored model answers: the endpoint is asked the same."""
    missing = [values == b"" if values.dtype == object else np.isnan(values) for values in features.values()]
    rows = np.flatnonzero(~np.any(missing, axis=0))[:SMOKE_REQUESTS]
    asked = {name: tf.constant(values[rows]) for name, values in features.items()}
    scores = tf.saved_model.load(str(model_path)).signatures["serving_default"](**asked)["score"].numpy()
    return [
        {
            "instance": {
                name: values[row].decode() if values.dtype == object else float(values[row])
                for name, values in features.items()
            },
            "prediction": float(score),
        }
        for row, score in zip(rows, scores, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
