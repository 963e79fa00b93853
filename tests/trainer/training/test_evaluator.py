"""The evaluator beside a training: it scores what is whole, once, and goes when the report is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from tests.support.job_log import collect_messages
from trainer.contract.documents import Report
from trainer.contract.reading import parse_document
from trainer.input import open_source
from trainer.training.checkpoints import Checkpoints
from trainer.training.evaluator import evaluate_checkpoints


def scalars(folder: Path) -> dict[int, float]:
    """Values of `evaluator/val_loss` by step."""
    events = [
        tf.compat.v1.Event.FromString(record.numpy())
        for path in folder.glob("evaluator/*tfevents*")
        for record in tf.data.TFRecordDataset(str(path))
    ]
    found = [(event.step, value) for event in events for value in event.summary.value]
    return {step: float(tf.make_ndarray(value.tensor)) for step, value in found if value.tag == "evaluator/val_loss"}


def test_each_new_checkpoint_is_scored_once_until_the_report_is_there(exported, tmp_path: Path) -> None:
    """What it finds is what the training itself found after that epoch."""
    training = {"epochs": 2, "hyperparameters": {"hidden_units": [8]}}
    request = exported.train_request_in(tmp_path, training=training)
    whole = exported.train(request)
    report = Path(request.report_uri)
    content = report.read_bytes()
    report.unlink()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            report.write_bytes(content)

    manifest, said = exported.manifest(), []
    with collect_messages(said), open_source(manifest, manifest.splits, exported.storage) as source:
        evaluate_checkpoints(exported.job(request), source, sleep)
    assert len(waits) == 2
    assert [line for line in said if line.startswith("evaluator: step ")] == said
    assert len(said) == 1
    assert scalars(tmp_path / "logs") == pytest.approx({whole.steps: whole.history["val_loss"][-1]})
    assert parse_document(Report, report.read_bytes(), "report").steps == whole.steps


def test_a_damaged_checkpoint_is_waited_out(exported, tmp_path: Path) -> None:
    """It may be replaced by a newer one at any moment."""
    request = exported.train_request_in(tmp_path, training={"epochs": 1, "hyperparameters": {"hidden_units": [8]}})
    whole = exported.train(request)
    Path(request.report_uri).unlink()
    for path in Path(Checkpoints(request.checkpoint_uri, exported.storage).folder(whole.steps)).glob("weights.data*"):
        path.write_bytes(b"")

    def sleep(_seconds: float) -> None:
        Path(request.report_uri).write_bytes(b"{}")

    manifest, said = exported.manifest(), []
    with collect_messages(said), open_source(manifest, manifest.splits, exported.storage) as source:
        evaluate_checkpoints(exported.job(request), source, sleep)
    assert said == []
