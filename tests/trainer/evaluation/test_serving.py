"""The challenger as serving loads it: good models pass, and each kind of bad one is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tf_keras
from tensorflow.core.protobuf import saved_model_pb2

from tests.trainer.conftest import FEATURES, Run
from trainer.contract.documents import Serving
from trainer.errors import DataError
from trainer.evaluation import serving
from trainer.evaluation.job import evaluate
from trainer.input import open_source
from trainer.saved_model.model import SIGNATURE

Raw = Mapping[str, tf.Tensor]


@pytest.fixture
def judged(exported: Run, tmp_path: Path) -> Callable[..., Serving]:
    """Evaluates a model in this process; gives what came of loading it as serving does."""

    def judge_model(model: Path, champion: Path | None = None, **changes: Any) -> Serving:
        changes["evaluation_uri"] = str(tmp_path / "evaluation.json")
        request = exported.evaluate_request(str(model), champion and str(champion), **changes)
        manifest = exported.manifest()
        with open_source(manifest, manifest.splits, exported.storage) as source:
            found = evaluate(request, manifest, source, exported.storage).serving
        assert found is not None
        return found

    return judge_model


def probability(raw: Raw) -> tf.Tensor:
    """Return what is finite whatever is asked. [B]."""
    numbers = tf.stack([raw[name] for name in ("distance", "weight", "express")], axis=1)
    known = tf.where(tf.math.is_nan(numbers) | (numbers < -1e37), 0.0, numbers)
    carrier = tf.cast(tf.strings.length(raw["carrier"]), tf.float32)
    return tf.sigmoid(known[:, 0] / 1500 - known[:, 1] / 10 + known[:, 2] + carrier - 3)


def store(path: Path, score: Callable[[Raw], tf.Tensor] = probability, output: str = "score") -> Path:
    """Store a model of the run's features."""
    types = {"numeric": tf.float32, "categorical": tf.string}
    specs = {item["name"]: tf.TensorSpec([None], types[item["kind"]], name=item["name"]) for item in FEATURES}
    call = tf.function(lambda **raw: {output: score(raw)}, autograph=False).get_concrete_function(**specs)
    module = tf.Module()
    module.parts = score
    tf.saved_model.save(module, str(path), signatures={SIGNATURE: call})
    return path


def resign(path: Path, change: Callable[[Any], None]) -> Path:
    """Change the signature that serving reads; Python's loader has its own."""
    stored = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    change(stored.meta_graphs[0].signature_def[SIGNATURE])
    (path / "saved_model.pb").write_bytes(stored.SerializeToString())
    return path


def test_a_good_model_answers_as_it_was_judged(judged, tmp_path: Path) -> None:
    model = store(tmp_path / "model")
    found = judged(model, champion=model)
    assert (found.problem, found.signature, found.skipped, found.unanswered) == (None, (), None, ())
    for answers, batch in ((found.single, 1), (found.together, 1000)):
        assert (answers.rows, answers.batch, answers.not_finite) == (200, batch, 0)
        assert answers.max_error < 1e-6
        assert answers.key.startswith("parcel-")
    assert found.inputs == (1 + 5) + (1 + 3) + (1 + 2)  # missing, JSON's missing numbers, unknown texts
    assert 0 < found.latency.p50_ms <= found.latency.p99_ms
    assert found.champion_latency.p50_ms > 0


def test_a_renamed_output_of_the_served_signature_is_named(judged, tmp_path: Path) -> None:
    def rename(signature: Any) -> None:
        signature.outputs["probability"].CopyFrom(signature.outputs.pop("score"))

    found = judged(resign(store(tmp_path / "model"), rename))
    assert found.signature == ("no output 'score'", "output 'probability', which the spec does not have")
    assert (found.single, found.together, found.inputs) == (None, None, 0)


def test_an_output_renamed_for_all_ends_the_job_by_name(judged, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="outputs \\['probability'\\]"):
        judged(store(tmp_path / "model", output="probability"))


def test_inputs_that_the_served_signature_mixes_up_give_other_answers(judged, tmp_path: Path) -> None:
    def swap(signature: Any) -> None:
        names = signature.inputs["distance"].name, signature.inputs["weight"].name
        signature.inputs["weight"].name, signature.inputs["distance"].name = names

    found = judged(resign(store(tmp_path / "model"), swap))
    assert found.signature == ()
    assert found.single.max_error > 0.1
    assert found.together.max_error == pytest.approx(found.single.max_error)
    assert found.single.key == found.together.key


def test_an_input_of_another_type_is_named(judged, tmp_path: Path) -> None:
    features = [{**item, "kind": "categorical"} if item["name"] == "zone" else item for item in FEATURES[:-1]]
    found = judged(store(tmp_path / "model"), features=features)
    assert found.signature == ("input 'express', which the spec does not have",)


def test_a_missing_value_without_a_finite_answer_is_named(judged, tmp_path: Path) -> None:
    def score(raw: Raw) -> tf.Tensor:
        return probability(raw) + 0 * raw["express"]  # which no example lacks

    found = judged(store(tmp_path / "model", score))
    assert found.single.max_error < 1e-6
    assert found.unanswered == tuple(
        f"{name}: score is not finite" for name in ("all features missing", "express missing")
    )


def test_an_unknown_category_that_is_refused_is_named(judged, tmp_path: Path) -> None:
    def score(raw: Raw) -> tf.Tensor:
        short = tf.debugging.assert_less(tf.strings.length(raw["zone"]), 3, "too long")
        with tf.control_dependencies([short]):
            return tf.identity(probability(raw))

    found = judged(store(tmp_path / "model", score))
    assert [line.split(": ")[:2] for line in found.unanswered] == [
        ["all features unknown", "InvalidArgumentError"],
        ["zone unknown", "InvalidArgumentError"],
    ]


def test_a_model_whose_answers_depend_on_the_batch_is_seen(judged, tmp_path: Path) -> None:
    """Batch normalisation that was left in its training mode."""
    normalise = tf_keras.layers.BatchNormalization()

    class Trained(tf.Module):
        def __call__(self, raw: Raw) -> tf.Tensor:
            return tf.sigmoid(normalise(probability(raw)[:, tf.newaxis], training=True)[:, 0])

    score = Trained()
    normalise.build([None, 1])
    score.weights = list(normalise.weights)
    found = judged(store(tmp_path / "model", score))
    assert found.single.max_error > 0.1
    assert found.together.max_error > 1e-5


def test_a_model_that_refuses_one_row_is_named(judged, tmp_path: Path) -> None:
    def score(raw: Raw) -> tf.Tensor:
        several = tf.debugging.assert_greater(tf.shape(raw["zone"])[0], 1, "too few rows")
        with tf.control_dependencies([several]):
            return tf.identity(probability(raw))

    assert "too few rows" in judged(store(tmp_path / "model", score)).problem


def test_a_slow_model_is_asked_for_fewer_rows(judged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LONGEST_S", 0.0)
    found = judged(store(tmp_path / "model"))
    assert (found.single.rows, found.inputs) == (1, 1)
