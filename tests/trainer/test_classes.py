"""Several classes, and images: exported, trained on, stored and judged."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
import tf_keras
from PIL import Image as Pillow

from tests.support.refusals import refuses
from tests.support.trainer_documents import make_label
from trainer.contract.documents import Evaluation, Report
from trainer.contract.reading import parse_document
from trainer.errors import DataError, RequestError
from trainer.evaluation.job import evaluate
from trainer.input import open_source
from trainer.objective.labels import labels_of
from trainer.saved_model.model import likeliest_class
from trainer.training.job import train

SIDE, CLASSES = 8, 3
LABEL = {"name": "stripe", "kind": "multiclass", "classes": CLASSES}
IMAGE = {"name": "image", "height": SIDE, "width": SIDE, "channels": 1, "encoding": "raw"}
FEATURES = [{"kind": "image", **IMAGE}]
SHADE = {"name": "shade", "kind": "numeric", "normalize": True, "missing": "mean"}
LIT = {"features": [*FEATURES, SHADE], "label": {"name": "lit", "kind": "binary"}}
SCHEMA = [
    {"name": "image_id", "type": "STRING", "mode": "REQUIRED"},
    {"name": "image", "type": "BYTES", "mode": "NULLABLE"},
    {"name": "shade", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "stripe", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "lit", "type": "INTEGER", "mode": "NULLABLE"},
]


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Pillow.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def make_rows(days: int = 6, rows_per_day: int = 60) -> pa.Table:
    """Images with one bright stripe, left, middle or right; the label says which."""
    random = np.random.default_rng(1)
    count = days * rows_per_day
    stripe = random.integers(0, CLASSES, count)
    pixels = random.integers(0, 120, (count, SIDE, SIDE), dtype=np.uint8)
    for index, where in enumerate(stripe):
        pixels[index, :, 1 + 2 * where] += 110
    first = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "image_id": [f"image-{index}" for index in range(count)],
            "image": pa.array([png(image) for image in pixels], pa.binary()),
            "shade": pixels.mean(axis=(1, 2)).astype(np.float64),
            "stripe": stripe.astype(np.int64),
            "lit": (stripe > 0).astype(np.int64),
            "span": [first + datetime.timedelta(days=index // rows_per_day) for index in range(count)],
            "part": np.where(random.random(count) < 0.2, "validation", "train").tolist(),
            "shard": (np.arange(count) % 2).astype(np.int64),
            "row_hash": random.permutation(count).astype(np.int64) * 7919,
        }
    )


@pytest.fixture(scope="module")
def stripes(exported, tmp_path_factory: pytest.TempPathFactory):
    """An exported run of images."""
    run = type(exported)(path=tmp_path_factory.mktemp("stripes"), rows=make_rows())
    run.export(schema=SCHEMA, images=[IMAGE], model="stripes")
    statistics = {
        "shade": {"kind": "numeric", "nulls": 0, "min": 0, "max": 255, "mean": 70, "stddev": 3, "quantiles": []},
        "image": {"kind": "image", "nulls": 0, "min_bytes": 80, "max_bytes": 150, "mean_bytes": 120},
    }
    label = {"mean": None, "nulls": 0, "counts": [], "outside": None}
    split = {"rows": 1, "first_event": None, "last_event": None, "features": statistics, "label": label}
    document = {
        "schema_version": 1,
        "kind": "statistics",
        "model": "stripes",
        "run_key": run.export_json()["run_key"],
        "table": "project.dataset.stripes",
        "keys": {"distinct": 1, "nulls": 0, "in_two_parts": 0, "also_tested": 0},
        "window": {"start": "2024-01-01", "end": "2024-01-07", "test_start": "2024-01-05"},
        "splits": dict.fromkeys(("train", "validation", "test"), split),
        "days": [],
        "quarantined": [],
    }
    (run.path / "statistics.json").write_text(json.dumps(document))
    return run


def start(run, out: Path, **changes) -> Report:
    """Train in this process."""
    training = {
        "model": "cnn",
        "epochs": 8,
        "batch_size": 16,
        "hyperparameters": {"learning_rate": 0.01, "filters": [8], "hidden_units": [16]},
        **changes.pop("training", {}),
    }
    wanted = {"model": "stripes", "label": LABEL, "features": FEATURES, "key": "image_id", **changes}
    uris = {name: str(out / name) for name in ("model_uri", "report_uri", "checkpoint_uri", "tensorboard_uri")}
    request = run.train_request(training=training, **wanted, **uris)
    return run.train(request)


def judge(run, out: Path, challenger: str, champion: str | None = None, manifest=None, **changes) -> Evaluation:
    """Evaluate in this process."""
    request = run.evaluate_request(
        challenger,
        champion,
        **{
            "model": "stripes",
            "label": LABEL,
            "features": FEATURES,
            "key": "image_id",
            "slices": [],
            "metric": "accuracy",
            "evaluation_uri": str(out / "evaluation.json"),
            **changes,
        },
    )
    manifest = manifest or run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        return evaluate(request, manifest, source, run.storage)


@pytest.fixture(scope="module")
def trained(stripes, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return start(stripes, tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="module")
def weak(stripes, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A champion that learned next to nothing."""
    hyperparameters = {"learning_rate": 1e-5, "filters": [2]}
    return start(stripes, tmp_path_factory.mktemp("weak"), training={"epochs": 1, "hyperparameters": hyperparameters})


@pytest.fixture(scope="module")
def lit(stripes, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The other label kind, and another feature kind beside the image."""
    return start(stripes, tmp_path_factory.mktemp("lit"), **LIT, training={"epochs": 2})


@pytest.fixture(scope="module")
def imageless(stripes, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Classes without images."""
    training = {"model": "wide_deep", "epochs": 1, "hyperparameters": {}}
    return start(stripes, tmp_path_factory.mktemp("imageless"), features=[SHADE], training=training)


def served(report: Report):
    return tf.saved_model.load(report.model_uri).signatures["serving_default"]


def test_it_learns_and_says_how_well(trained: Report) -> None:
    assert set(trained.history) == {"loss", "val_loss", "val_accuracy", "val_auc"}
    assert trained.metrics["val_accuracy"] > 0.9
    assert trained.signature.inputs == {"image": "string"}
    assert trained.signature.outputs == {"scores": "float32"}


def test_the_stored_model_takes_the_original_file_and_says_what_training_saw(trained: Report, stripes) -> None:
    """The golden answers come from pixels of the store; the file as in the table gives the same but for rounding."""
    originals = {Pillow.open(io.BytesIO(content)).tobytes(): content for content in stripes.rows["image"].to_pylist()}
    model = served(trained)
    assert len(trained.golden) == 5
    for golden in trained.golden:
        sent = base64.b64decode(golden.instance["image"].b64)
        original = originals[Pillow.open(io.BytesIO(sent)).tobytes()]
        answer = model(image=tf.constant([original]))["scores"].numpy()[0]
        assert answer.tolist() == pytest.approx(golden.prediction, rel=1e-5)
        assert sum(golden.prediction) == pytest.approx(1)


def test_any_size_kind_and_a_missing_image_get_an_answer(trained: Report, stripes) -> None:
    """An image of twice the size is seen nearly as the original."""
    original = stripes.rows["image"][0].as_py()
    twice = Pillow.open(io.BytesIO(original)).resize((SIDE * 2, SIDE * 2), Pillow.Resampling.NEAREST)
    large, jpeg = io.BytesIO(), io.BytesIO()
    twice.convert("RGB").save(large, "PNG")
    twice.save(jpeg, "JPEG", quality=95)
    answers = served(trained)(image=tf.constant([original, large.getvalue(), jpeg.getvalue(), b""]))["scores"].numpy()
    assert answers.shape == (4, CLASSES)
    np.testing.assert_allclose(answers[1], answers[0], atol=0.02)
    np.testing.assert_allclose(answers[2], answers[0], atol=0.1)
    assert answers[3].sum() == pytest.approx(1)


def test_both_models_are_judged_class_by_class(trained: Report, weak: Report, stripes, tmp_path: Path) -> None:
    found = judge(stripes, tmp_path, trained.model_uri, weak.model_uri)
    assert found.rows == sum(found.label_counts) == 120
    assert found.label_rate is None
    assert [sum(row) for row in found.challenger.confusion] == list(found.label_counts)
    right = sum(found.challenger.confusion[index][index] for index in range(CLASSES))
    assert found.challenger.metrics.accuracy == pytest.approx(right / 120)
    assert found.challenger.metrics.accuracy > 0.9 > found.champion.metrics.accuracy
    assert found.challenger.metrics.auc > 0.95
    assert found.challenger.metrics.log_loss < found.baseline.log_loss
    assert found.baseline.accuracy == pytest.approx(max(found.label_counts) / 120)
    assert found.challenger.curves.roc is None
    assert sum(part.rows for part in found.champion.curves.calibration) == 120
    assert found.difference.metric == "accuracy"
    assert 0 < found.difference.low <= found.difference.mean
    assert parse_document(Evaluation, (tmp_path / "evaluation.json").read_bytes(), "evaluation").rows == 120


@pytest.mark.parametrize("metric", ["auc", "log_loss", "brier"])
def test_every_metric_has_an_interval(metric: str, trained: Report, weak: Report, stripes, tmp_path: Path) -> None:
    found = judge(stripes, tmp_path, trained.model_uri, weak.model_uri, metric=metric)
    gain = found.difference.mean if metric == "auc" else -found.difference.mean
    assert gain > 0


def test_binary_images_and_numbers_beside_them(lit: Report, stripes, tmp_path: Path) -> None:
    assert lit.signature.outputs == {"score": "float32"}
    assert isinstance(lit.golden[0].prediction, float)
    assert set(lit.golden[0].instance) == {"image", "shade"}
    found = judge(stripes, tmp_path, lit.model_uri, **LIT, show_rows=True)
    assert (found.label_counts, found.challenger.confusion) == (None, None)
    assert {example.values["image"] for example in found.worst} == {"8 x 8 x 1"}


def test_classes_without_images(imageless: Report) -> None:
    assert len(imageless.golden[0].prediction) == CLASSES


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"training": {"model": "dense", "hyperparameters": {}}}, "does not read images", id="dense"),
        pytest.param({"label": {**LABEL, "classes": 2}}, "whole number from 0 to 1", id="out-of-range"),
        pytest.param({"features": [{**FEATURES[0], "name": "shade"}]}, "column of type FLOAT", id="not-bytes"),
        pytest.param({"label": {**LABEL, "name": "image"}}, "column of type BYTES", id="label-type"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(stripes, tmp_path: Path, changes: dict, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        start(stripes, tmp_path, **changes)


def test_an_image_that_the_export_did_not_store_is_named(stripes, tmp_path: Path) -> None:
    request = stripes.train_request(label=LABEL, features=FEATURES, training={"model": "cnn", "hyperparameters": {}})
    job = dataclasses.replace(stripes.job(request), manifest=dataclasses.replace(stripes.manifest(), images=()))
    with job.open_source() as source, refuses(RequestError, where="'image'", found="no image"):
        train(job, source)


def test_labels_are_read_as_whole_numbers() -> None:
    kind = labels_of(make_label(name="x", kind="multiclass", classes=3))
    assert kind.targets(tf.constant([0, 2, 3], tf.int64)).numpy().tolist() == [0, 2, 3]
    assert kind.wrong(np.array([-1, 0, 2, 3, np.iinfo(np.int64).min])).tolist() == [True, False, False, True, True]


# --- champions that cannot be scored, and those that have seen the test days ----------------------------------------


def test_a_champion_of_other_classes_is_left_out_with_words(
    trained: Report, lit: Report, stripes, tmp_path: Path
) -> None:
    found = judge(stripes, tmp_path, trained.model_uri, lit.model_uri)
    assert found.champion is None
    assert found.difference is None
    assert found.champion_skipped.endswith("answers with 2 classes")


def test_a_champion_that_reads_a_vanished_column_is_left_out_with_words(
    trained: Report, imageless: Report, stripes, tmp_path: Path
) -> None:
    manifest = stripes.manifest()
    changed_manifest = dataclasses.replace(manifest, columns=tuple(c for c in manifest.columns if c.name != "shade"))
    found = judge(stripes, tmp_path, trained.model_uri, imageless.model_uri, changed_manifest)
    assert "reads 'shade'," in found.champion_skipped
    with pytest.raises(DataError, match="challenger model: reads 'shade'"):
        judge(stripes, tmp_path, imageless.model_uri, None, changed_manifest)


def test_a_column_of_another_type_is_named(trained: Report, imageless: Report, stripes, tmp_path: Path) -> None:
    manifest = stripes.manifest()
    changed = tuple(
        dataclasses.replace(column, type="STRING") if column.name == "shade" else column for column in manifest.columns
    )
    changed_manifest = dataclasses.replace(manifest, columns=changed)
    found = judge(stripes, tmp_path, trained.model_uri, imageless.model_uri, changed_manifest)
    assert "'shade' as float32" in found.champion_skipped
    assert "STRING" in found.champion_skipped


def test_the_frozen_set_is_scored_too(stripes, trained: Report, weak: Report, tmp_path: Path) -> None:
    manifest = stripes.manifest()
    splits = {**manifest.splits, "golden": manifest.splits["validation"]}
    with_golden = dataclasses.replace(manifest, splits=splits)
    found = judge(stripes, tmp_path, trained.model_uri, weak.model_uri, with_golden, golden=True)
    assert found.golden.rows == manifest.splits["validation"].rows
    assert found.golden.challenger.accuracy > found.golden.champion.accuracy
    assert {shard.sha256 for shard in found.golden.shards} == {f.sha256 for f in manifest.splits["validation"].files}
    with pytest.raises(DataError, match="no split golden"):
        judge(stripes, tmp_path, trained.model_uri, golden=True)


def as_json(files) -> list[dict]:
    return [dataclasses.asdict(file) for file in files]


def test_a_champion_that_has_seen_a_test_example_is_found_by_its_keys(stripes, trained, weak, tmp_path: Path) -> None:
    splits = stripes.manifest().splits
    for name in ("train", "validation"):
        proved = judge(stripes, tmp_path, trained.model_uri, weak.model_uri, prove_unseen=as_json(splits[name].files))
        assert proved.champion is not None
    seen = as_json([*splits["train"].files, splits["test"].files[0]])
    rows = splits["test"].files[0].rows
    with pytest.raises(DataError) as caught:
        judge(stripes, tmp_path / "seen", trained.model_uri, weak.model_uri, prove_unseen=seen)
    words = str(caught.value)
    assert words.startswith("champion version 1 (run 20240110t030000z-0a1b2c3d4e5f)")
    assert f"{rows} of this run's" in words
    assert "'image-" in words
    assert splits["test"].files[0].uri in words
    assert caught.value.exit_code == 2


def test_a_training_file_that_is_gone_is_named_with_the_way_out(stripes, trained, weak, tmp_path: Path) -> None:
    gone = as_json(stripes.manifest().splits["train"].files[:1])
    gone[0]["uri"] += ".gone.gz"
    with refuses(DataError, found=(".gone.gz", "missing"), way_out="alias champion"):
        judge(stripes, tmp_path, trained.model_uri, weak.model_uri, prove_unseen=gone)


CHANGES = {"zoom": 0.1, "brightness": 0.2, "noise": 0.05, "rotate": 0.02}


def test_images_are_changed_in_training_alone(stripes, tmp_path: Path) -> None:
    """Both loops see the same pictures; what the stored model answers is of the images as they are."""
    reports = []
    for loop in ("fit", "custom"):
        wanted = {"loop": loop, "epochs": 2, "augmentation": CHANGES}
        reports.append(start(stripes, tmp_path / loop, training=wanted))
        with Pillow.open(tmp_path / loop / "augmentation.png") as sheet:
            assert sheet.size == (5 * 66, 8 * 66)
    assert reports[0].history == reports[1].history
    plain = start(stripes, tmp_path / "plain", training={"epochs": 2})
    assert plain.history["loss"] != reports[0].history["loss"]
    judged = judge(stripes, tmp_path, reports[0].model_uri)
    assert judged.challenger.metrics.accuracy > 0.5


def test_the_strength_is_a_hyperparameter_and_the_contact_sheet_can_be_left_out(stripes, tmp_path: Path) -> None:
    hyperparameters = {"learning_rate": 0.01, "filters": [8], "hidden_units": [16], "augmentation_strength": 0}
    wanted = {"epochs": 1, "augmentation": CHANGES, "hyperparameters": hyperparameters}
    none = start(stripes, tmp_path / "none", training=wanted)
    plain = start(stripes, tmp_path / "plain", training={"epochs": 1})
    assert none.history == plain.history
    hidden = {"epochs": 1, "augmentation": {**CHANGES, "contact_sheet": False}}
    start(stripes, tmp_path / "hidden", training=hidden)
    assert not list(tmp_path.rglob("augmentation.png"))


@pytest.mark.long
@pytest.mark.parametrize("model", ["transfer", "module"])
def test_what_was_trained_elsewhere_is_tuned_whole(model: str, stripes, tmp_path: Path, monkeypatch) -> None:
    """Frozen for the first half of the steps, stored, and judged; DenseNet with a layer per block."""

    def shallow(**wanted) -> tf_keras.Model:
        return tf_keras.src.applications.densenet.DenseNet(blocks=[1, 1, 1, 1], **wanted)

    monkeypatch.setattr(tf_keras.applications, "DenseNet121", shallow)
    flat = tf.Module()
    flat.call = tf.function(
        lambda images: tf.reduce_mean(images, axis=[1, 3]), [tf.TensorSpec([None, None, None, 3], tf.float32)]
    )
    tf.saved_model.save(flat, str(tmp_path / "flat"), signatures={"default": flat.call})
    weights = tmp_path / "weights.h5"
    shallow(include_top=False, weights=None, input_shape=(None, None, 3)).save_weights(str(weights))
    own = {"transfer": {"weights": str(weights), "fine_tune_from": 0.5}, "module": {"module": str(tmp_path / "flat")}}[
        model
    ]
    hyperparameters = {"learning_rate": 0.01, "hidden_units": [16], **own}
    report = start(stripes, tmp_path, training={"model": model, "hyperparameters": hyperparameters})
    assert report.metrics["val_accuracy"] > (0.4 if model == "transfer" else 0.9)
    judged = judge(stripes, tmp_path, report.model_uri)
    assert judged.challenger.metrics.accuracy > (0.4 if model == "transfer" else 0.9)


# --- classes with names -------------------------------------------------------------------------------------------

NAMES = ["left", 'O\'Brien "m"\n☃', "right"]
NAMED = {**LABEL, "classes": NAMES}


@pytest.fixture(scope="module")
def named(stripes, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The same classes, by their names, and a TF Lite model beside."""
    return start(stripes, tmp_path_factory.mktemp("named"), label=NAMED, training={"export_lite": ["float16"]})


def test_an_answer_names_its_class(named: Report, trained: Report, stripes) -> None:
    """The likeliest; the scores are those of the model without names."""
    assert named.signature.outputs == {"scores": "float32", "class": "string"}
    images = tf.constant(stripes.rows["image"].to_pylist()[:20])
    answered, unnamed = served(named)(image=images), served(trained)(image=images)["scores"].numpy()
    np.testing.assert_allclose(answered["scores"].numpy(), unnamed, atol=1e-6)
    assert [name.decode() for name in answered["class"].numpy()] == [NAMES[place] for place in unnamed.argmax(axis=1)]
    assert len(named.golden[0].prediction) == CLASSES


def test_of_two_classes_the_second_is_named_from_a_half_on(stripes, tmp_path: Path) -> None:
    label = {**LIT["label"], "classes": ["dark", "lit"]}
    report = start(stripes, tmp_path, **{**LIT, "label": label}, training={"epochs": 2})
    rows = stripes.rows.slice(0, 30)
    shade = tf.constant(rows["shade"].to_pylist(), tf.float32)
    answered = served(report)(image=tf.constant(rows["image"].to_pylist()), shade=shade)
    expected = np.where(answered["score"].numpy() >= 0.5, "lit", "dark").tolist()
    assert [name.decode() for name in answered["class"].numpy()] == expected
    assert likeliest_class(tf.constant([0.5, 0.4999]), ["dark", "lit"]).numpy().tolist() == [b"lit", b"dark"]


def test_named_classes_are_judged_as_they_are_served(named: Report, stripes, tmp_path: Path) -> None:
    """Against a champion with the same names in the same order; what a session loads has the output too."""
    found = judge(stripes, tmp_path, named.model_uri, named.model_uri, label=NAMED)
    assert found.champion_skipped is None
    assert found.champion.metrics.accuracy == found.challenger.metrics.accuracy > 0.9
    assert (found.serving.signature, found.serving.problem, found.serving.unanswered) == ((), None, ())
    assert found.serving.together.max_error < 1e-5


@pytest.mark.parametrize(
    "champion", [pytest.param(NAMES[::-1], id="other-order"), pytest.param(None, id="without-names")]
)
def test_a_champion_whose_numbers_mean_other_classes_is_left_out(
    named: Report, trained: Report, stripes, champion, tmp_path: Path
) -> None:
    """Class 0 of one is class 2 of the other: no metric can compare them."""
    label = {**LABEL, "classes": champion or CLASSES}
    other = start(stripes, tmp_path / "other", label=label, training={"epochs": 1}) if champion else trained
    found = judge(stripes, tmp_path, named.model_uri, other.model_uri, label=NAMED)
    assert found.champion is None
    order = f"3 classes in the order {', '.join(map(repr, champion))}" if champion else "3 classes"
    assert found.champion_skipped.endswith(f"answers with {order}")


def test_a_challenger_of_other_names_is_refused(named: Report, stripes, tmp_path: Path) -> None:
    with refuses(DataError, found="in the order 'left'", expected="in the order 'right'"):
        judge(stripes, tmp_path, named.model_uri, label={**LABEL, "classes": NAMES[::-1]})
