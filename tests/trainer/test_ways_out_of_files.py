"""What is deleted, restored or made anew as the trainer's messages advise: then the same call works.

Of values that are changed: test_ways_out.py.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from trainer.errors import NEW_ATTEMPT, TrainerError
from trainer.evaluation.job import evaluate
from trainer.evaluation.leakage import require_no_leakage
from trainer.evaluation.scoring import load_model
from trainer.input import open_source
from trainer.models.registry import find_architecture, read_hyperparameters
from trainer.models.stored_module import StoredModule
from trainer.saved_model.model import digest_folder
from trainer.storage import Storage, backend
from trainer.training.checkpoints import Checkpoints, TrainingState


def refusal(do: Callable[[], object]) -> str:
    """What is said."""
    with pytest.raises(TrainerError) as refused:
        do()
    return str(refused.value)


def save(folder: Path, column: str = "zone", offset: float = 0) -> Path:
    """A model that scores by one column."""
    module = tf.Module()
    score = tf.function(lambda **raw: {"score": tf.sigmoid(raw[column] - offset)})
    signature = score.get_concrete_function(**{column: tf.TensorSpec([None], tf.float32, name=column)})
    tf.saved_model.save(module, str(folder), signatures={"serving_default": signature})
    return folder


def judge(run: Any, folder: Path, **changes: Any) -> Any:
    """Evaluate a challenger."""
    request = run.evaluate_request(str(folder), None, slices=[], **changes)
    manifest = run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        return evaluate(request, manifest, source, run.storage)


def test_a_challenger_that_does_not_fit_is_trained_again(run) -> None:
    """Gone, it is stored again by its own run; of other columns, a new attempt has one in a folder of its own."""
    run.export()
    assert "Clear the train task of its run" in refusal(lambda: judge(run, run.path / "model"))
    assert NEW_ATTEMPT in refusal(lambda: judge(run, save(run.path / "model", "height")))
    assert judge(run, save(run.path / "attempt")).rows == run.manifest().splits["test"].rows


def test_a_model_that_was_written_again_is_another_attempts(tmp_path: Path) -> None:
    """Whose folder has what its report says."""
    digest = digest_folder(save(tmp_path / "model"))
    save(tmp_path / "model", offset=1)
    assert f"{NEW_ATTEMPT}: it trains in a folder of its own" in refusal(
        lambda: load_model(str(tmp_path / "model"), Storage(), digest)
    )
    new = save(tmp_path / "attempt")
    assert load_model(str(new), Storage(), digest_folder(new))


def test_a_manifest_without_its_golden_split_is_written_again(run) -> None:
    """Deleted first: an export whose manifest is there does nothing."""
    run.export()
    model = save(run.path / "model")
    said = refusal(lambda: judge(run, model, golden=True))
    assert f"Delete {run.path}/manifest.json, then clear the run's export task and what follows it" in said
    (run.path / "manifest.json").unlink()
    run.export(golden=run.golden())
    assert judge(run, model, golden=True).golden.rows == run.rows.num_rows


def prove(run: Any) -> None:
    """Read what the champion was trained on."""
    manifest = run.manifest()
    files = [dataclasses.asdict(manifest.splits["train"].files[0])]
    request = run.evaluate_request("/m", "/c", prove_unseen=files)
    require_no_leakage(request, manifest.splits["test"], run.storage, compared=True)


def test_whose_weights_were_begun_with_is_proven_without_a_champion(run) -> None:
    """What its first weights have seen the challenger has seen."""
    run.export()
    manifest = run.manifest()
    for split, leaks in (("train", False), ("test", True)):
        files = [dataclasses.asdict(file) for file in manifest.splits[split].files]
        initial = {"version_id": "6", "run_key": "20240109t030000z-0a1b2c3d4e5f", "prove_unseen": files}
        request = run.evaluate_request("/m", None, initial=initial)

        def prove_it(request: Any = request) -> None:
            require_no_leakage(request, manifest.splits["test"], run.storage, compared=False)

        if leaks:
            message = refusal(prove_it)
            assert message.startswith("version 6 (run 20240109t030000z-0a1b2c3d4e5f), which the challenger is or began")
            assert "promote a newer one, or remove training.initial" in message
        else:
            prove_it()


def test_a_champions_file_that_is_gone_is_restored(run) -> None:
    """Then its keys are read."""
    run.export()
    path = Path(run.manifest().splits["train"].files[0].uri)
    shutil.move(path, run.path / "away")
    assert "Restore the file, or take the alias champion from that version" in refusal(lambda: prove(run))
    shutil.move(run.path / "away", path)
    prove(run)


def attached(folder: Path, outputs: int = 1) -> Any:
    """Checkpoints of a small model."""
    model = tf_keras.Sequential([tf_keras.Input([1]), tf_keras.layers.Dense(outputs)])
    return Checkpoints(str(folder), Storage()).attach(model)


def test_a_training_whose_checkpoints_cannot_be_read_begins_anew(tmp_path: Path) -> None:
    """Gone, damaged or of another model: deleting one alone would leave a state that names it as the best."""
    state = TrainingState(request_sha256="x", step=1)
    way_out = f"Delete {tmp_path}/kept and start again: the training begins anew"
    kept = attached(tmp_path / "kept")
    kept.save_state(state)
    other = attached(tmp_path / "kept", outputs=2)
    assert way_out in refusal(lambda: other.restore_newest(state))
    assert way_out in refusal(lambda: kept.restore(2))
    weights = next(tmp_path.glob("kept/*/weights.data*"))
    weights.write_bytes(weights.read_bytes()[:-1])
    assert way_out in refusal(lambda: kept.restore(1))
    shutil.rmtree(tmp_path / "kept")
    assert other.restore_newest(state) is None
    other.save_state(state)
    assert other.restore_newest(state) == state


@pytest.mark.long
def test_a_loss_that_is_no_number_becomes_one_at_a_lower_rate(exported, tmp_path: Path) -> None:
    """The same training, but for it."""
    training = {"epochs": 1, "hyperparameters": {"learning_rate": 1000, "hidden_units": [8] * 12}}
    said = refusal(lambda: exported.train(exported.train_request_in(tmp_path / "high", training=training)))
    assert "Lower learning_rate, set clip_norm, or look for infinite values in the features. " in said
    training["hyperparameters"]["learning_rate"] = 0.001
    assert np.isfinite(exported.train(exported.train_request_in(tmp_path / "low", training=training)).history["loss"])


def test_a_module_without_variables_is_never_tuned(tmp_path: Path) -> None:
    """`fine_tune_from: 1`."""
    tf.saved_model.save(tf.Module(), str(tmp_path))
    module = find_architecture("module")

    def build(fine_tune_from: float) -> StoredModule:
        chosen: Any = read_hyperparameters(module, {"fine_tune_from": fine_tune_from})
        return StoredModule(str(tmp_path), "module", fine_tuned=chosen.fine_tune_from < 1)

    assert "Set fine_tune_from to 1: never" in refusal(lambda: build(0))
    assert build(1).variables == []


def test_a_document_that_is_too_large_is_deleted_and_written_again(run, monkeypatch) -> None:
    """By the task that should have written it."""
    run.export()
    path = run.path / "manifest.json"
    limit = path.stat().st_size + 100  # a second manifest has other seconds, and so perhaps more digits
    monkeypatch.setattr(backend, "MAX_DOCUMENT_BYTES", limit)
    path.write_bytes(path.read_bytes() + b" " * 101)
    assert "Look who wrote it, delete it, and clear the task that should have written it" in refusal(
        lambda: run.storage.read_object(str(path))
    )
    path.unlink()
    run.export()
    assert json.loads(run.storage.read_object(str(path)))["kind"] == "manifest"


def test_a_file_in_a_folders_place_is_moved_away(tmp_path: Path) -> None:
    """Then the object is written."""
    (tmp_path / "runs").write_text("")
    write = lambda: Storage().write_once(str(tmp_path / "runs/x"), b"1")  # noqa: E731 - twice the same
    assert "Mend it and start again" in refusal(write)
    (tmp_path / "runs").unlink()
    assert write()
