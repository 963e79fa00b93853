"""Requests and training examples are told apart by what differs, and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.traffic import boosting, separation
from trainer.traffic.columns import MAX_CODES, Encoder, group_rows
from trainer.traffic.separation import separate

ROWS = 1500
KINDS = {"a": "numeric", "b": "numeric", "c": "categorical"}


def draw(seed, *, correlation=0.0, moved=0.0, letters="abcd"):
    """Two normal numbers, related or not, and a letter."""
    random = np.random.default_rng(seed)
    a = random.normal(moved, 1, ROWS)
    b = correlation * (a - moved) + np.sqrt(1 - correlation**2) * random.normal(size=ROWS)
    return {"a": a, "b": b, "c": np.array(list(letters), dtype=object)[random.integers(0, len(letters), ROWS)]}


def told_apart(requests, examples, folds=3):
    columns = {name: np.concatenate([requests[name], examples[name]]) for name in KINDS}
    asked = np.arange(2 * ROWS) < ROWS
    return separate(columns, KINDS, asked, folds=folds, seed=0)


def test_what_is_alike_cannot_be_told_apart():
    """Over several draws the AUC lies around one half."""
    found = [told_apart(draw(seed), draw(100 + seed)) for seed in range(3)]
    assert np.mean([each.auc for each in found]) == pytest.approx(0.5, abs=0.02)
    assert all(each.low < each.auc < each.high for each in found)
    assert max(abs(loss) for each in found for loss in each.losses.values()) < 0.04


def test_a_relation_that_no_single_column_shows_is_found():
    """Each column by itself is as it was: no univariate distance sees this."""
    found = told_apart(draw(1, correlation=0.8), draw(2))
    assert found.low > 0.65
    assert min(found.losses["a"], found.losses["b"]) > 10 * abs(found.losses["c"])


def test_a_number_that_moved_is_named():
    found = told_apart(draw(1, moved=0.5), draw(2))
    assert 0.58 < found.auc < 0.68
    assert max(found.losses, key=found.losses.get) == "a"


def test_categories_that_the_training_data_does_not_have_are_named():
    found = told_apart(draw(1, letters="abcdXYZ"), draw(2))
    assert found.auc > 0.65
    assert max(found.losses, key=found.losses.get) == "c"


def test_missing_values_are_told_from_the_others():
    requests = draw(1)
    requests["a"][: ROWS // 2] = np.nan
    requests["c"][ROWS // 2 :] = None
    found = told_apart(requests, draw(2))
    assert found.auc > 0.85
    assert found.losses["a"] > 0.1 < found.losses["c"]


def test_repeated_requests_are_in_one_fold():
    """A request sent a thousand times would else be known from the training: all look the same to an honest judge."""
    requests, examples = draw(1), draw(2)
    again = {name: np.concatenate([values[:50]] * 30) for name, values in requests.items()}
    honest = told_apart(again, examples)
    assert honest.auc < 0.75
    columns = [np.concatenate([again[name], examples[name]]) for name in KINDS]
    groups = group_rows(columns)
    assert len(np.unique(groups[:ROWS])) == 50
    assert len(np.unique(groups)) == 50 + ROWS


def test_the_same_rows_give_the_same_answer():
    assert told_apart(draw(1), draw(2)) == told_apart(draw(1), draw(2))


def test_a_fold_of_one_side_alone_says_nothing():
    columns = {"a": np.array([1.0, 1.0, 2.0, 2.0])}
    found = separate(columns, {"a": "numeric"}, np.array([True, True, False, False]), folds=2, seed=0)
    assert (found.auc, found.low, found.high, found.folds) == (0.5, 0.0, 1.0, ())


def test_codes_come_from_the_trained_rows_alone():
    """A category of the judged rows alone is as a missing one, and no edge lies beyond the trained values."""
    columns = {"a": np.array([0.0, 1.0, 2.0, 99.0]), "c": np.array(["x", "y", "x", "new"], dtype=object)}
    asked = np.array([True, False, True, False])
    encoder = Encoder(columns, {"a": "numeric", "c": "categorical"}, asked, np.arange(3))
    codes = encoder.encode(columns)
    assert codes[3, 1] == 0
    assert codes[3, 0] == codes[2, 0]
    assert codes.max() < MAX_CODES


def test_the_interval_is_that_of_hanley_and_mcneil():
    """AUC 0.8, 50 against 50: worked out by hand from their formula."""
    q1, q2 = 0.8 / 1.2, 2 * 0.64 / 1.8
    expected = (0.16 + 49 * (q1 - 0.64) + 49 * (q2 - 0.64)) / 2500
    assert separation.variance(0.8, 50, 50) == pytest.approx(expected)


def test_a_tree_splits_where_the_slopes_change():
    codes = np.repeat(np.arange(8, dtype=np.uint8), 100)[:, None]
    model = boosting.boost(codes, codes[:, 0] >= 4)
    scores = model.scores(np.arange(8, dtype=np.uint8)[:, None])
    assert scores[3] < -1 < 1 < scores[4]
    assert scores[:4].max() < scores[4:].min()
