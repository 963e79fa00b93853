"""Which features the models of a comparison rely on, by test rows that take values of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.trainer_documents import make_label
from tests.trainer.conftest import Run
from trainer.contract.documents import Evaluation, Importance, ImportanceRequest
from trainer.contract.reading import parse_document, serialise
from trainer.evaluation.drawing import Drawing
from trainer.evaluation.importance import draw_rows, measure_importance
from trainer.evaluation.job import evaluate
from trainer.evaluation.scoring import Scored
from trainer.evaluation.splits import chosen_splits
from trainer.input import open_source
from trainer.objective.bootstrap import Resampling

ASKED = {"rows": 2000, "repeats": 3, "seconds": 600, "ends_after": 100_000, "seed": 5}
BINARY = make_label(name="y", kind="binary")
NUMBER = make_label(name="y", kind="regression")
Columns = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A model that is a function of columns."""

    inputs: Mapping[str, str]
    reply: Callable[[Columns], np.ndarray]
    output: str = "score"

    def answer(self, raw: Mapping[str, tf.Tensor]) -> dict[str, np.ndarray]:
        """Return the answers."""
        return {self.output: np.asarray(self.reply({name: raw[name].numpy() for name in self.inputs}), np.float64)}

    def answers_label(self, _label: object) -> bool:
        """Return that it answers no other label."""
        return False


def toy(reply: Callable[..., np.ndarray], *features: str) -> Toy:
    """A model of some columns, which the function takes in their order."""
    return Toy(inputs=dict.fromkeys(features, "float32"), reply=lambda raw: reply(*(raw[name] for name in features)))


def logistic(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def examples(rows: int = 400, seed: int = 0) -> tuple[Columns, np.ndarray]:
    """A strong feature, a weak one, one that says nothing; and a label."""
    random = np.random.default_rng(seed)
    columns = {name: random.normal(size=rows).astype(np.float32) for name in ("strong", "weak", "idle")}
    chances = logistic(2 * columns["strong"] + 0.5 * columns["weak"])
    return columns, (random.random(rows) < chances).astype(np.float64)


OURS = toy(lambda strong, weak, idle: logistic(2 * strong + 0.5 * weak + 0 * idle), "strong", "weak", "idle")
THEIRS = toy(lambda weak, strong: logistic(0.5 * weak + strong), "weak", "strong")


def measure(
    columns: Columns,
    labels: np.ndarray,
    models: Mapping[str, Toy],
    *,
    label: Any = BINARY,
    weights: np.ndarray | None = None,
    resampling: Mapping[str, Any] = {},
    sequence: np.ndarray | None = None,
    batch: int = 128,
    clock: Callable[[], float] = lambda: 0.0,
    **asked: int,
) -> Importance | None:
    """Draw from rows that are read in batches, and measure."""
    request = SimpleNamespace(importance=ImportanceRequest(**{**ASKED, **asked}), label=label)
    order = np.arange(len(labels)) if sequence is None else sequence
    keys = np.array([f"key-{place}".encode() for place in order], object)
    columns = {name: values[order] for name, values in columns.items()}
    drawing = draw_rows(request, models)
    for start in range(0, len(labels), batch) if drawing else ():
        part = slice(start, start + batch)
        raw = {name: tf.constant(values[part]) for name, values in columns.items()}
        drawing.take(tf.constant(keys[part]), labels[order][part], raw)
    scored = Scored(
        keys=keys,
        labels=labels[order],
        scores={name: model.reply(columns) for name, model in models.items()},
        slices={},
        numbers={},
        auxiliary={},
        requests={},
        weights=None if weights is None else weights[order],
        drawn=drawing.drawn() if drawing else None,
    )
    drawn_by = Resampling(**{"samples": 100, "seed": 1, "confidence": 0.95, **resampling})
    at_once = SimpleNamespace(rows_at_once=lambda _names: 100)
    return measure_importance(request, scored, models, drawn_by, at_once, clock)


def by_feature(found: Importance | None) -> dict[str, Any]:
    return {item.feature: item for item in found.features}


def losses(labels: np.ndarray, chances: np.ndarray) -> np.ndarray:
    return -(labels * np.log(chances) + (1 - labels) * np.log1p(-chances))


def test_the_rise_is_that_of_all_pairs_of_rows_by_plain_arithmetic() -> None:
    """With 20 repeats, to a tenth of the interval: each row's loss with each other row's value."""
    columns, labels = examples()
    found = by_feature(measure(columns, labels, {"challenger": OURS}, repeats=20))
    strong, weak = columns["strong"].astype(float), columns["weak"].astype(float)
    before = losses(labels, logistic(2 * strong + 0.5 * weak))
    for name, chances in {
        "strong": logistic(2 * strong[None, :] + 0.5 * weak[:, None]),
        "weak": logistic(2 * strong[:, None] + 0.5 * weak[None, :]),
    }.items():
        rises = losses(labels[:, None], chances) - before[:, None]
        expected = rises[~np.eye(len(labels), dtype=bool)].mean()
        rise = found[name].challenger
        assert abs(rise.mean - expected) < 0.1 * (rise.high - rise.low)
        assert rise.low < expected < rise.high


def test_what_the_label_is_made_of_stands_first_and_what_is_ignored_has_nothing() -> None:
    found = measure(*examples(), {"challenger": OURS})
    assert [item.feature for item in found.features] == ["strong", "weak", "idle"]
    strong, _, idle = found.features
    assert strong.challenger.low > 0.2
    assert (idle.challenger.low, idle.challenger.mean, idle.challenger.high) == (0, 0, 0)
    assert (found.rows, found.repeats, found.loss, found.drawn_by) == (400, 3, "log_loss", "rows")
    assert found.not_judged is None
    assert found.evidence.needed == 20


def test_both_models_take_the_same_values_and_the_change_is_their_difference() -> None:
    found = by_feature(measure(*examples(), {"challenger": OURS, "champion": THEIRS}))
    strong, weak = found["strong"], found["weak"]
    assert strong.change.mean == pytest.approx(strong.challenger.mean - strong.champion.mean)
    assert strong.change.low > 0
    same = by_feature(measure(*examples(), {"challenger": OURS, "champion": OURS}))
    assert same["weak"].change.low == same["weak"].change.high == 0
    paired, apart = weak.change.high - weak.change.low, weak.challenger.high - weak.challenger.low
    assert paired < apart


def test_a_feature_of_one_model_alone_has_no_other_side() -> None:
    champion = toy(lambda strong, old: logistic(strong + old), "strong", "old")
    columns, labels = examples()
    columns["old"] = columns["idle"]
    found = measure(columns, labels, {"challenger": OURS, "champion": champion})
    assert found.features[-1].feature == "old"
    assert found.features[-1].challenger is found.features[-1].change is None
    assert found.features[-1].champion.mean != 0
    idle = by_feature(found)["idle"]
    assert idle.champion is idle.change is None


def test_the_same_rows_give_the_same_numbers_in_whatever_sequence_they_are_read() -> None:
    columns, labels = examples(3000)
    models = {"challenger": OURS, "champion": THEIRS}
    first = measure(columns, labels, models, rows=300)
    again = measure(columns, labels, models, rows=300, batch=77, sequence=np.random.default_rng(1).permutation(3000))
    other = measure(columns, labels, models, rows=300, seed=6)
    for item, twin in zip(first.features, again.features, strict=True):
        assert item.feature == twin.feature
        assert item.challenger.mean == pytest.approx(twin.challenger.mean, rel=1e-9)
        assert item.challenger.low == pytest.approx(twin.challenger.low, rel=1e-9)
    assert first.features[0].challenger.mean != other.features[0].challenger.mean


def test_missing_values_travel_with_the_others() -> None:
    """A model that asks only whether a value is there relies on that."""
    columns, _ = examples()
    columns["idle"][::2] = np.nan
    labels = np.isnan(columns["idle"]).astype(np.float64)
    labels[::20] = 1 - labels[::20]
    model = toy(lambda idle, weak: np.where(np.isnan(idle), 0.9, 0.1) + 0 * weak, "idle", "weak")
    found = by_feature(measure(columns, labels, {"challenger": model}))
    assert found["idle"].challenger.low > 0.5
    assert found["weak"].challenger.mean == 0


def test_lists_and_texts_are_exchanged_as_a_whole() -> None:
    """So are images, which a request brings as the text of a file."""
    random = np.random.default_rng(2)
    lists = random.normal(size=(300, 4)).astype(np.float32)
    texts = np.array([b"red", b"blue", b"\x89PNG"], object)[random.integers(0, 3, 300)]
    labels = (random.random(300) < logistic(lists.sum(axis=1) + 2.0 * (texts == b"\x89PNG"))).astype(np.float64)
    model = Toy(
        inputs={"list": "float32", "text": "string"},
        reply=lambda raw: logistic(raw["list"].sum(axis=1) + 2.0 * (raw["text"] == b"\x89PNG")),
    )
    found = measure({"list": lists, "text": texts}, labels, {"challenger": model})
    assert [item.challenger.low > 0 for item in found.features] == [True, True]


@pytest.mark.parametrize(
    ("label", "labels", "reply", "loss"),
    [
        pytest.param(NUMBER, lambda x: 3 * x, lambda x: 3 * x, "mae", id="number"),
        pytest.param(
            make_label(name="y", kind="regression", loss="quantile", quantiles=(0.1, 0.5, 0.9)),
            lambda x: 3 * x, lambda x: np.stack([x - 99, 3 * x, x + 99], axis=1), "mae", id="median of quantiles",
        ),
        pytest.param(
            make_label(name="y", kind="multiclass", classes=3),
            lambda x: np.digitize(x, [-0.5, 0.5]).astype(float),
            lambda x: 0.05 + 0.85 * np.eye(3)[np.digitize(x, [-0.5, 0.5])], "log_loss", id="classes",
        ),
    ],
)  # fmt: skip
def test_the_loss_is_of_the_labels_kind(label, labels, reply, loss) -> None:
    x = np.random.default_rng(3).normal(size=200).astype(np.float32)
    found = measure({"x": x}, labels(x.astype(float)), {"challenger": toy(reply, "x")}, label=label, repeats=20)
    assert found.loss == loss
    rise = found.features[0].challenger
    if loss == "mae":
        expected = 3 * np.abs(x[:, None] - x[None, :]).sum() / (200 * 199)
    else:
        classes = np.digitize(x, [-0.5, 0.5])
        expected = (classes[:, None] != classes[None, :]).sum() / (200 * 199) * np.log(0.9 / 0.05)
    assert rise.mean == pytest.approx(expected, rel=0.05)


def test_weights_count_rows() -> None:
    """Those that weigh nothing say nothing, though they may give their values."""
    columns, labels = examples(800)
    flipped = np.where(np.arange(800) % 2, 1 - labels, labels)
    weights = (np.arange(800) % 2 == 0).astype(np.float64)
    weighed = by_feature(measure(columns, flipped, {"challenger": OURS}, weights=weights))
    right = by_feature(measure(columns, labels, {"challenger": OURS}))
    assert weighed["strong"].challenger.low > 0
    assert weighed["strong"].challenger.mean == pytest.approx(right["strong"].challenger.mean, rel=0.25)


def test_groups_are_independent_and_not_their_rows() -> None:
    random, groups = np.random.default_rng(4), np.arange(600) // 30
    columns, _ = examples(600)
    columns["strong"] = random.normal(size=20).astype(np.float32)[groups]
    labels = (random.random(600) < logistic(2 * columns["strong"])).astype(np.float64)
    rows, by_group = (
        measure(columns, labels, {"challenger": OURS}, resampling=changes) for changes in ({}, {"groups": groups})
    )
    assert (rows.drawn_by, by_group.drawn_by) == ("rows", "groups")
    alone, together = (by_feature(found)["strong"].challenger for found in (rows, by_group))
    assert together.mean == pytest.approx(alone.mean, rel=0.15)
    assert together.high - together.low > 2 * (alone.high - alone.low)
    days = measure(columns, labels, {"challenger": OURS}, resampling={"groups": groups, "unit": "days"})
    assert days.drawn_by == "days"


@pytest.mark.parametrize(
    ("positives", "changes", "units"),
    [
        pytest.param(12, {}, "positives", id="rare class"),
        pytest.param(200, {"resampling": {"groups": np.arange(400) % 3}}, "groups with", id="few groups"),
    ],
)
def test_too_little_evidence_is_not_judged_and_says_what_is_missing(positives, changes, units) -> None:
    columns, _ = examples()
    labels = (np.arange(400) < positives).astype(np.float64)
    found = measure(columns, labels, {"challenger": OURS}, **changes)
    assert (found.features, found.rows, found.repeats) == ((), 0, 0)
    assert found.evidence.effective < found.evidence.needed
    assert found.evidence.units.startswith(units)


def test_a_model_that_another_image_scores_is_not_judged() -> None:
    found = measure(*examples(), {"champion": THEIRS})
    assert found.features == ()
    assert found.not_judged == "the challenger is scored by its own image, from this run's rows alone"


def test_a_model_without_a_feature_is_not_judged() -> None:
    """As one that reads the key alone."""
    model = Toy(inputs={}, reply=lambda _raw: np.full(400, 0.5))
    found = measure(*examples(), {"challenger": model})
    assert found.not_judged == "there is no other row to take values from, or no feature to exchange"


def test_answers_that_are_not_finite_are_of_that_feature_alone() -> None:
    def reply(strong: np.ndarray, weak: np.ndarray) -> np.ndarray:
        return np.where((strong > 0) == (weak > 0), 0.6, np.nan)

    columns, labels = examples()
    columns["weak"] = np.abs(columns["weak"]) * np.sign(columns["strong"])
    model = toy(lambda strong, weak, idle: reply(strong, weak) + 0.1 * (idle > 0), "strong", "weak", "idle")
    found = by_feature(measure(columns, labels, {"challenger": model}))
    assert found["strong"].challenger is None
    assert found["strong"].not_judged == "the challenger gave answers that are not finite to values of other rows"
    assert found["idle"].challenger is not None


def ticking(step: float) -> Callable[[], float]:
    ticks = iter(np.arange(0.0, 1e6, step).tolist())
    return lambda: next(ticks)


@pytest.mark.parametrize(
    ("seconds", "features", "repeats", "left_out"),
    [
        (1000, 3, 3, None),
        (35, 3, 2, "35 seconds were over (evaluation.importance.max_seconds) after 2 of 3 repeats"),
        (14, 2, 1, "14 seconds were over (evaluation.importance.max_seconds) after 2 of 3 features"),
        (2, 0, 0, "2 seconds were over (evaluation.importance.max_seconds) after 0 of 3 features"),
    ],
)
def test_it_ends_when_its_time_is_over_and_says_what_is_left_out(seconds, features, repeats, left_out) -> None:
    """Each look at the clock takes a second: four for each of the ten times that 400 rows are answered."""
    found = measure(*examples(), {"challenger": OURS}, seconds=seconds, clock=ticking(1.0))
    assert (len(found.features), found.repeats, found.not_judged) == (features, repeats, left_out)
    whole = by_feature(measure(*examples(), {"challenger": OURS}, repeats=max(repeats, 1)))
    assert all(whole[item.feature] == item for item in found.features)


def test_near_the_jobs_time_limit_nothing_more_is_measured() -> None:
    found = measure(*examples(), {"challenger": OURS}, ends_after=20, clock=ticking(1.0))
    assert found.not_judged == "the job had run for 20 seconds, near its time limit after 1 of 3 repeats"


def drawn(labels: np.ndarray, rows: int, seed: int = 0, *, by_label: bool = True, batch: int = 500) -> Any:
    drawing = Drawing(rows=rows, seed=seed, inputs=("x",), by_label=by_label)
    most = 0
    for start in range(0, len(labels), batch):
        there = np.arange(start, min(start + batch, len(labels)))
        keys = tf.strings.as_string(tf.constant(there))
        drawing.take(keys, labels[there], {"x": tf.constant(there)})
        most = max(most, sum(len(part.rows) for part in drawing._parts))
    assert most <= 3 * rows + batch
    return drawing.drawn()


def test_a_rare_class_has_a_quarter_and_counts_as_what_it_stands_for() -> None:
    labels = (np.arange(20_000) % 50 == 7).astype(np.float64)
    found = drawn(labels, 1000)
    rows = found.rows[found.judged]
    assert len(set(rows.tolist())) == len(rows) == len(found.donors) == 1000
    assert found.columns["x"].numpy().tolist() == found.rows.tolist()
    assert labels[rows].sum() == 250
    assert np.average(labels[rows], weights=found.factors) == pytest.approx(0.02)
    assert labels[found.rows[found.donors]].mean() < 0.05


def test_every_row_is_drawn_as_often_as_any_other() -> None:
    labels = (np.arange(200) % 10 == 0).astype(np.float64)
    counts = np.zeros((2, 200))
    for seed in range(400):
        found = drawn(labels, 40, seed, batch=100)
        counts[0, found.rows[found.judged]] += 1
        counts[1, found.rows[found.donors]] += 1
    rare = labels == 1
    assert counts[0, rare].mean() == 200  # 10 of 20
    assert counts[0, ~rare].mean() == pytest.approx(400 * 30 / 180)
    assert np.abs(counts[0, ~rare] - 400 / 6).max() < 5 * (400 * 1 / 6 * 5 / 6) ** 0.5
    assert np.abs(counts[1] - 80).max() < 5 * (400 * 0.2 * 0.8) ** 0.5


@pytest.mark.parametrize("by_label", [True, False])
def test_a_small_split_is_drawn_whole(by_label) -> None:
    found = drawn((np.arange(90) < 7).astype(np.float64), 1000, by_label=by_label, batch=20)
    assert sorted(found.rows[found.judged].tolist()) == list(range(90))
    assert sorted(found.donors.tolist()) == sorted(found.judged.tolist())
    assert found.factors.tolist() == [1.0] * 90


def test_without_a_row_there_is_none() -> None:
    assert Drawing(rows=20, seed=1, inputs=("x",), by_label=True).drawn() is None


@pytest.fixture(scope="module")
def model_uri(exported: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that has learnt something."""
    request = exported.train_request_in(tmp_path_factory.mktemp("model"), training={"epochs": 8})
    return exported.train(request).model_uri


@pytest.fixture
def judge(exported: Run, model_uri: str, tmp_path: Path) -> Callable[..., Evaluation]:
    def evaluate_model(champion: str | None = None, **changes: Any) -> Evaluation:
        uri = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        wanted = {"evaluation_uri": str(uri), "importance": ASKED, **changes}
        request, manifest = exported.evaluate_request(model_uri, champion, **wanted), exported.manifest()
        with open_source(manifest, chosen_splits(request, manifest), exported.storage) as source:
            return evaluate(request, manifest, source, exported.storage)

    return evaluate_model


def test_a_trained_model_relies_on_what_made_the_label(judge, model_uri) -> None:
    evaluation = judge(model_uri)
    found = evaluation.importance
    assert found.features[0].feature == "distance"
    assert found.features[0].challenger.low > 0
    assert {item.feature for item in found.features} == {"carrier", "zone", "distance", "weight", "express"}
    assert all(item.change.low == item.change.high == 0 for item in found.features)
    assert found.confidence == 0.9
    written = parse_document(Evaluation, serialise(evaluation), "evaluation")
    assert written.importance == found


def test_it_changes_nothing_else_of_an_evaluation_and_is_the_same_again(judge) -> None:
    first, again, without = judge(), judge(), judge(importance=None)
    assert first.importance == again.importance
    assert without.importance is None
    first, without = (
        replace(each, importance=None, serving=None) for each in (first, without)
    )  # a latency is measured
    assert first == without


def test_a_request_and_an_evaluation_of_an_earlier_release_are_readable(exported, judge, model_uri) -> None:
    request = exported.evaluate_request(model_uri, None)
    assert request.importance is None
    stored = json.loads(serialise(judge(importance=None)))
    stored.pop("importance", None)
    assert parse_document(Evaluation, json.dumps(stored).encode(), "evaluation").importance is None
