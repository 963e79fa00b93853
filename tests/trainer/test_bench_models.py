"""The default model by the recipe, trained by the trainer's own code: never near chance, whatever the seed.

5 epochs of batches of 512 were five optimizer steps of 344 penguins: one seed had an accuracy of 0.96, the next 0.04.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bench import warm_start
from bench.models import LINES_PATH, OTHERS, OURS, PREFIX, SINGLE, render, summarise
from bench.models_lines import Lines, digest_code
from bench.models_ours import Examples
from bench.models_scores import measure
from bench.models_sets import HELD_OUT, SETS, Set, plain_name

RARE = Set(package="none", item="rare", label="label", kind="binary")


def test_the_default_knows_penguins_with_every_seed(tmp_path, penguins):
    """Of 344; the most frequent species has 44 %."""
    labels = penguins.test["label"].to_numpy()
    scores = [measure(SETS["penguins"], labels, penguins.train_default(seed).answers) for seed in (1, 2)]
    assert min(accuracy for _, accuracy in scores) > 0.92
    assert max(loss for loss, _ in scores) < 0.25


def test_the_default_finds_what_is_rare(tmp_path):
    """3 % positive: the old default ranked worse than chance (AUC 0.30). The true chances are known here."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(6000, 4))
    chances = 1 / (1 + np.exp(-(2.2 * numbers[:, 0] - numbers[:, 1] + 0.5 * numbers[:, 2] - 5.2)))
    label = (random.random(len(chances)) < chances).astype(float)
    place = np.arange(len(label)) % 10
    part = np.where(place < 7, "train", np.where(place < 8, "validation", "test"))
    table = pa.table({f"x{place}": numbers[:, place] for place in range(4)} | {"label": label, "part": part.tolist()})
    pq.write_table(table, tmp_path / "rare.parquet")
    rare = Examples.write(tmp_path / "rare.parquet", RARE, tmp_path / "rare")
    test = part == "test"
    best, _ = measure(RARE, label[test], chances[test])
    loss, area = measure(RARE, label[test], rare.train_default(1).answers)
    assert loss < 1.2 * best
    assert area > 0.85


def line(model: str, seed: int, loss: float, **more: object) -> dict[str, object]:
    return {
        "name": "wine",
        "model": model,
        "seed": seed,
        "seconds": 2.0,
        "loss": loss,
        "score": 0.9,
        "rows": 128,
        **more,
    }


def test_a_ratio_is_that_of_the_means_to_the_best_of_the_others():
    """A seed's ratio is to what the same rows gave the other."""
    losses = {
        "ours/wide_deep": (0.2, 0.4),
        "ours/linear": (0.26, 0.1),
        "ours/single": (0.5, 0.7),
        "linear": (0.25, 0.25),
        "trees": (0.3, 0.1),
    }
    lines = [line(model, seed, loss) for model, some in losses.items() for seed, loss in enumerate(some, start=1)]
    row = summarise("wine", lines)
    assert (row["best"], round(row["ratio"], 6), round(row["worst_ratio"], 6)) == ("trees", 1.5, 4.0)
    assert {model: round(ratio, 6) for model, ratio in row["ratios"].items()} == {"wide_deep": 1.5, "linear": 0.9}
    assert row["ensemble_ratio"] == pytest.approx(0.5)
    table = render([row], totals=True)
    assert (
        "| wine | classes | 128 | 0.3 | 0.900 | trees | 0.2 | 1.50 | 4.00 | linear | 0.90 | 0.50 | 2 | 2.0 |" in table
    )
    assert "median ratios of 1 sets, all: wide_deep 1.500, highest 1.50; linear 0.900, highest 0.90; the best" in table
    assert "median ratios of 1 sets, classes: wide_deep 1.500" in table
    assert "wide_deep to one of its networks 0.500" in table


def test_a_line_holds_while_its_code_is_the_same(tmp_path):
    """And the newest of a training is the one that counts; comments and docstrings are no code."""
    path, code = tmp_path / "models.jsonl", tmp_path / "code"
    code.mkdir()
    (code / "a.py").write_text('"""Says."""\n\nX = 1  # one\n"""Of X."""\n')
    first = digest_code(tmp_path, ["code"], {})
    lines = Lines(path)
    lines.add(line("trees", 1, 0.5, code=first))
    assert Lines(path).has("wine", "trees", 1, first)
    assert not lines.has("wine", "trees", 2, first)
    (code / "a.py").write_text("X = 1\n")
    assert digest_code(tmp_path, ["code/a.py"], {}) == digest_code(tmp_path, ["code"], {}) == first
    assert digest_code(tmp_path, ["code"], {"lightgbm": "4"}) != first
    (code / "a.py").write_text("X = 2\n")
    second = digest_code(tmp_path, ["code"], {})
    assert not Lines(path).has("wine", "trees", 1, second)
    lines.add(line("trees", 1, 0.4, code=second))
    lines.add(line("linear", 2, 0.6, code=second))
    assert [(one["model"], one["loss"]) for one in Lines(path)] == [("linear", 0.6), ("trees", 0.4)]
    with pytest.raises(FileNotFoundError):
        digest_code(tmp_path, ["gone.py"], {})


def test_the_lines_that_are_kept_are_of_known_models_and_each_once():
    """What docs/models.md shows comes from them."""
    text = LINES_PATH.read_text()
    kept = list(Lines(LINES_PATH))
    assert len(kept) == len(text.splitlines())
    known = {*(PREFIX + model for model in (*OURS, SINGLE)), *OTHERS}
    assert {(one["name"] in SETS, one["model"] in known, 1 <= one["seed"] <= 5) for one in kept} == {(True, True, True)}


def test_answers_are_scored_as_the_field_does():
    """By hand: log loss, and the share of pairs that are in the right order."""
    loss, area = measure(RARE, np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.4, 0.4, 0.8]))
    assert loss == pytest.approx(-np.log([0.9, 0.6, 0.4, 0.8]).mean())
    assert area == pytest.approx(3.5 / 4)
    error, fit = measure(SETS["boston"], np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    assert error == pytest.approx(np.sqrt(0.5))
    assert fit == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("column", "plain"),
    [
        ("od280/od315_of_diluted_wines", "od280_od315_of_diluted_wines"),
        ("mean radius", "mean_radius"),
        ("1st", "_1st"),
        ("from", "from_column"),
        ("Sale.Price", "Sale_Price"),
    ],
)
def test_a_column_gets_a_name_that_the_trainer_takes(column, plain):
    """The wine's had a slash, the mails' a column `from`, and the whole benchmark ended there."""
    assert plain_name(column) == plain


def test_every_family_that_is_asked_for_has_sets():
    families = [set_.family for set_ in SETS.values()]
    assert set(families) == {"binary", "rare", "classes", "numbers", "counts", "series"}
    assert min(families.count(family) for family in families) >= 3


def test_sets_that_are_kept_apart_are_sets():
    assert set(HELD_OUT) < set(SETS)
    assert len(HELD_OUT) == 5


@pytest.fixture
def penguins(tmp_path):
    """Penguins of the Palmer archipelago (CC0; Gorman, Williams, Fraser, 2014), split by their place."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    table = pyarrow.csv.read_csv(Path(__file__).with_name("penguins.csv"), convert_options=options)
    place = np.arange(len(table))
    part = np.where(place % 5 == 0, "test", np.where(place % 10 == 1, "validation", "train"))
    pq.write_table(table.append_column("part", pa.array(part.tolist())), tmp_path / "penguins.parquet")
    return Examples.write(tmp_path / "penguins.parquet", SETS["penguins"], tmp_path / "penguins")


def test_a_warm_start_is_held_against_the_same_night_trained_anew():
    """Of a night that only one way has, nothing is counted."""
    lines = [
        {"night": night, "way": way, "steps": steps, "best_steps": best, "seconds": 2.0, "loss": loss, "score": 0.6}
        for night, way, steps, best, loss in (
            ("2013-11-11", "anew", 900, 700, 0.5),
            ("2013-11-12", "anew", 1000, 800, 0.40),
            ("2013-11-12", "warm", 400, 80, 0.41),
        )
    ]
    table = warm_start.render(lines)
    assert "| 2013-11-12 | 1,000 | 400 | 800 | 80 | 0.4000 | 0.4100 | 0.6000 | 0.6000 |" in table
    assert "steps: 1,000 anew, 400 warm: 60% less" in table
    assert "best_steps: 800 anew, 80 warm: 90% less" in table
    assert "loss, warm less anew: mean +0.0100" in table
    assert "2013-11-11" not in table
