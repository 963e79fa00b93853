"""A model that takes the example's key gives it back untouched, and is trained, judged and served as one without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.trainer.conftest import SCHEMA, Run, make_rows
from trainer.contract.documents import Report
from trainer.evaluation.job import evaluate
from trainer.input import open_source
from trainer.saved_model.model import StoredModel
from trainer.saved_model.served import ServedModel


@pytest.fixture(scope="module", params=["STRING", "INTEGER"])
def keyed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Report]:
    """A run whose key is a text or a whole number, and a training with it."""
    rows, schema = make_rows(), SCHEMA
    if request.param == "INTEGER":
        place = rows.schema.get_field_index("parcel_id")
        rows = rows.set_column(place, "parcel_id", pa.array(range(2**40, 2**40 + rows.num_rows)))
        schema = [{**SCHEMA[0], "type": "INTEGER"}, *SCHEMA[1:]]
    run = Run(tmp_path_factory.mktemp("keyed"), rows)
    run.export(schema=schema)
    run.write_statistics()
    return run, run.train(run.train_request(key_input=True))


def test_the_key_is_one_more_input_and_comes_back(keyed: tuple[Run, Report]) -> None:
    run, report = keyed
    number = run.rows.schema.field("parcel_id").type == pa.int64()
    dtype = "int64" if number else "string"
    assert report.signature.inputs["parcel_id"] == report.signature.outputs["parcel_id"] == dtype
    assert set(report.signature.outputs) == {"score", "parcel_id"}
    sent = [2**53 + 1, -7] if number else [b"\xc3\xbc 1", b""]
    served = tf.saved_model.load(report.model_uri).signatures["serving_default"]
    answered = served(
        carrier=tf.constant(["AA", "DL"]),
        zone=tf.constant(["1", "2"]),
        distance=tf.constant([5.0, 2000.0]),
        weight=tf.constant([1.0, 2.0]),
        express=tf.constant([0.0, 1.0]),
        parcel_id=tf.constant(sent),
    )
    assert answered["parcel_id"].numpy().tolist() == sent
    assert answered["score"].shape == (2,)


def test_smoke_requests_have_keys_that_no_example_has(keyed: tuple[Run, Report]) -> None:
    run, report = keyed
    known = set(map(str, run.rows["parcel_id"].to_pylist()))
    keys = [golden.instance["parcel_id"] for golden in report.golden]
    assert len(set(keys)) == len(keys) == 5
    assert not known & set(map(str, keys))
    assert all(isinstance(golden.prediction, float) for golden in report.golden)


def test_who_asks_for_features_alone_need_not_give_a_key(keyed: tuple[Run, Report]) -> None:
    _, report = keyed
    stored = StoredModel(Path(report.model_uri), report.model_uri)
    raw = {
        name: tf.constant(["x", "y"]) if dtype == "string" else tf.constant([1.0, 2.0])
        for name, dtype in stored.inputs.items()
    }
    assert "parcel_id" not in raw
    assert set(stored.answer(raw)) == {"score"}
    with ServedModel(Path(report.model_uri)) as served:
        columns = {name: tensor.numpy() for name, tensor in raw.items()}
        assert set(served.answer(columns)) == {"score"}
        np.testing.assert_allclose(served.answer(columns)["score"], stored.predict(raw), atol=1e-6)


def test_it_is_judged_beside_a_champion_without(keyed: tuple[Run, Report], tmp_path: Path) -> None:
    run, report = keyed
    plain = run.train(run.train_request_in(tmp_path))
    for challenger, champion, taken in ((report, plain, True), (plain, report, False)):
        request = run.evaluate_request(
            challenger.model_uri,
            champion.model_uri,
            key_input=taken,
            evaluation_uri=str(tmp_path / f"{taken}.json"),
        )
        manifest = run.manifest()
        with open_source(manifest, manifest.splits, run.storage) as source:
            found = evaluate(request, manifest, source, run.storage)
        assert found.champion is not None
        assert found.challenger.metrics.log_loss == pytest.approx(found.champion.metrics.log_loss)
        assert (found.serving.problem, found.serving.signature) == (None, ())
        assert found.serving.single.max_error < 1e-6


def test_a_model_without_the_key_that_was_asked_for_is_named(keyed: tuple[Run, Report], tmp_path: Path) -> None:
    run, _ = keyed
    plain = run.train(run.train_request_in(tmp_path))
    request = run.evaluate_request(plain.model_uri, None, key_input=True, evaluation_uri=str(tmp_path / "e.json"))
    manifest = run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        found = evaluate(request, manifest, source, run.storage)
    assert found.serving.signature == ("no input 'parcel_id'", "no output 'parcel_id'")
