"""The examples with the largest losses: which they are, in what order, and what both models say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.support.trainer_documents import make_label
from trainer.contract.documents import Label
from trainer.evaluation.scoring import Scored
from trainer.evaluation.worst import find_worst
from trainer.objective.metrics import Floats

BINARY = make_label(name="late", kind="binary")


def scored(keys: Sequence[str], labels: Sequence[float], **scores: Floats | Sequence[float]) -> Scored:
    return Scored(
        keys=np.array([key.encode() for key in keys], object),
        labels=np.array(labels, np.float64),
        scores={name: np.array(values, np.float64) for name, values in scores.items()},
        slices={},
        numbers={},
        auxiliary={},
        requests={},
    )


def keys_of(examples: Scored, label: Label = BINARY) -> list[str]:
    return [example.key for example in find_worst(label, examples, "ours", "theirs")]


def test_the_largest_loss_comes_first_with_both_answers() -> None:
    worst = find_worst(BINARY, scored("abc", [1, 0, 1], ours=[0.9, 0.8, 0.1], theirs=[0.5, 0.1, 0.3]), "ours", "theirs")
    assert [example.key for example in worst] == ["c", "b", "a"]
    first = worst[0]
    assert (first.label, first.answer, first.champion_answer, first.values) == (1, 0.1, 0.3, {})
    assert first.loss == pytest.approx(-np.log(0.1))
    assert first.champion_loss == pytest.approx(-np.log(0.3))


def test_without_another_model_there_is_nothing_of_it() -> None:
    (only,) = find_worst(BINARY, scored("a", [1], ours=[0.9]), "ours", "theirs")
    assert (only.champion_loss, only.champion_answer) == (None, None)


@pytest.mark.parametrize(
    ("label", "labels", "ours", "loss", "answer"),
    [
        pytest.param({"kind": "multiclass", "classes": 3}, [2.0], [[0.2, 0.7, 0.1]], -np.log(0.1), 1, id="classes"),
        pytest.param({"kind": "regression"}, [12.0], [9.5], 2.5, 9.5, id="number"),
        pytest.param(
            {"kind": "regression", "loss": "quantile", "quantiles": (0.1, 0.5, 0.9)}, [2.0], [[1, 5, 9]], 3, 5,
            id="quantiles",
        ),
    ],
)  # fmt: skip
def test_loss_and_answer_are_of_the_labels_kind(
    label: Mapping[str, object], labels: list[float], ours: list[list[float]], loss: float, answer: float
) -> None:
    (only,) = find_worst(make_label(name="y", **label), scored("a", labels, ours=ours), "ours", "theirs")
    assert only.loss == pytest.approx(loss)
    assert only.answer == answer


@pytest.mark.parametrize("seed", range(3))
def test_of_equal_losses_the_first_keys_count_in_any_order_of_rows(seed: int) -> None:
    """Twenty of them: the sure errors, then the first keys of the many that are alike."""
    keys = [f"{place:03d}" for place in range(100)]
    ours = [0.9 if key in ("070", "090") else 0.5 for key in keys]
    order = np.random.default_rng(seed).permutation(100)
    examples = scored([keys[place] for place in order], [0] * 100, ours=[ours[place] for place in order])
    assert keys_of(examples) == ["070", "090", *keys[:18]]
