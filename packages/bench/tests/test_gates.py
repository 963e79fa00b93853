"""The simulation of comparisons: what it says is known is true, and its document is drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import gates, gates_cells, gates_days, gates_flights, validation_days
from bench.checkout import PACKAGE_DATA, REPOSITORY_PATH
from bench.gates_plots import write_plots
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_slices
from trainer.objective.metrics import area


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "SAMPLES", 100)


@pytest.mark.parametrize("gain", [-0.01, 0.0, 0.02])
def test_a_shift_gives_the_gain_that_was_asked_for(gain: float) -> None:
    flights = gates.population()
    noise = gates.NOISE * np.random.default_rng(0).normal(size=len(flights.logits))
    before, after = (
        area(flights.labels, flights.logits + noise + shift * flights.labels) for shift in (0.0, gates.shift_for(gain))
    )
    assert after - before == pytest.approx(gain, abs=1e-4)


def test_a_comparison_is_decided_by_its_seed() -> None:
    first, again, another = (gates.compare(seed, 0.0, slices=True) for seed in (1, 1, 2))
    assert first == again
    assert first["gain"] != another["gain"]
    assert first["deviation"] == pytest.approx(0.0025, rel=0.3)


def test_a_much_better_model_is_promoted_and_a_much_worse_one_is_not() -> None:
    much = gates.shift_for(0.03)
    assert gates.compare(1, much)["promoted"]
    assert not gates.compare(1, 0.0, much)["promoted"]
    assert gates.compare(1, 0.0, 4 * much, slices=True)["blocked"]


def test_a_promoted_challenger_is_young(monkeypatch: pytest.MonkeyPatch) -> None:
    """One night in three; the champion's age starts anew each time."""
    monkeypatch.setattr(gates, "NIGHTS", 7)
    monkeypatch.setattr(gates, "compare", lambda seed, *_: {"promoted": seed % 3 == 2})
    assert gates.simulate_year(0, [0.0] * 8) == {"promotions": [2, 5], "ages": [1, 2, 3, 1, 2, 3, 1]}


def test_the_pictures_are_those_of_the_stored_document(tmp_path: Path) -> None:
    known = json.loads(gates.RESULT_PATH.read_text(encoding="utf-8"))
    write_plots(known, tmp_path)
    for name in ("power.svg", "slow-decay.svg"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.startswith("<svg ")
        assert text == (gates.IMAGES_PATH / name).read_text(encoding="utf-8")


def test_the_page_has_the_documents_figures() -> None:
    known = json.loads(gates.RESULT_PATH.read_text(encoding="utf-8"))
    page = (REPOSITORY_PATH / "docs" / "evaluation.md").read_text(encoding="utf-8")
    equal, gains = known["equal"], known["gains"]
    assert f"| equal models | {known['comparisons']:,} | {100 * equal['promoted']:.1f} % |" in page
    for gain, found in gains.items():
        assert f"| {float(gain):g} better | {known['per_gain']:,} | {100 * found['promoted']:.1f} % |" in page
    for what in ("blocked", "blocked_at_no_loss", "blocked_by_points"):
        assert f" | {100 * equal[what]:.1f} % |" in page
    for year in (known["equal_nights"], known["slow_decay"]):
        assert f" | {year['promotions']:g} | {year['regret']:.4f} |" in page


def test_the_gates_err_no_more_often_than_they_say() -> None:
    """By what was measured: one side of the interval, and Holm's level over the slices."""
    equal = json.loads(gates.RESULT_PATH.read_text(encoding="utf-8"))["equal"]
    assert equal["promoted"] <= 1 - gates.CONFIDENCE
    assert equal["blocked"] <= equal["blocked_at_no_loss"] <= 1 - gates.CONFIDENCE


@pytest.mark.parametrize(
    ("rate", "groups"), [(0.001, "none"), (0.01, "none"), (0.5, 3), (0.5, 7), (0.1, gates_cells.UNEVEN)]
)
def test_equal_models_are_promoted_as_rarely_as_is_promised(rate: float, groups: int | str) -> None:
    """Some cells of the table, with few comparisons: 5 %, and three standard errors of the simulation."""
    found = [gates_cells.promotes(seed, rate, groups) for seed in range(100)]
    assert gates_cells.summarise(str(groups), rate, found).erred <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5


@pytest.mark.parametrize(("rate", "slices"), [(0.001, 20), (0.005, 5), (0.02, 20), (0.1, 200)])
def test_equal_models_are_stopped_as_rarely_as_is_promised(rate: float, slices: int) -> None:
    """At no tolerated loss, which stops most: it was 88 % at a label rate of 0.5 %."""
    found = [gates_cells.stops(seed, rate, slices) for seed in range(100)]
    assert gates_cells.summarise(str(slices), rate, found).erred <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5


def test_the_standard_error_of_simulated_slices_is_the_judges() -> None:
    """Of 2,000 samples, within 10 %; the difference is the same."""
    random = np.random.default_rng(1)
    labels = (random.random((3, 300)) < 0.2).astype(np.float64)
    sides = gates_cells.equal_scores(labels, random)
    means, deviations, units = gates_cells.compare_slices(labels, *sides)
    pair = Pair(labels=labels.ravel(), challenger=sides[0].ravel(), champion=sides[1].ravel())
    drawn = Resampling(samples=2000, seed=1, confidence=0.95)
    slices = np.split(np.arange(900), 3)
    for place, (found, evidence) in enumerate(bootstrap_slices(pair, "auc", slices, drawn)):
        assert found.mean == pytest.approx(means[place])
        assert found.deviation == pytest.approx(deviations[place], rel=0.1)
        assert evidence.effective == pytest.approx(units[place])


def test_every_cell_keeps_its_promise() -> None:
    """By what was measured: no cell errs more often than is promised, beyond what the simulation's chance explains."""
    cells = json.loads(gates.RESULT_PATH.read_text(encoding="utf-8"))["cells"]
    promise = cells["promise"]
    for name, count in (("promotions", 60), ("stops", 18)):
        most = promise + 3 * (promise * (1 - promise) / cells["comparisons"][name]) ** 0.5
        assert len(cells[name]) == count
        assert [cell for cell in cells[name] if cell["erred"] > most] == []


def test_the_page_has_every_cell() -> None:
    cells = json.loads(gates.RESULT_PATH.read_text(encoding="utf-8"))["cells"]
    page = (REPOSITORY_PATH / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for table in ("promotions", "stops"):
        for line in gates_cells.table_lines(cells[table]):
            assert line in page


@pytest.mark.parametrize(("by_day", "errs"), [(False, (0.1, 0.25)), (True, (0, 0.05))])
def test_days_with_effects_are_no_independent_rows(by_day: bool, errs: tuple[float, float]) -> None:
    """Where they double the true error, rows promote equal models in 16 to 18 %; days keep the promise."""
    found = [gates_days.promotes_by_days(seed, 14, 3**0.5, by_day=by_day) for seed in range(200)]
    assert errs[0] <= gates_cells.summarise("14", 0, found).erred <= errs[1]


def test_the_page_has_every_cell_of_the_days() -> None:
    """By days no cell errs more often than is promised."""
    days = json.loads(gates.RESULT_PATH.read_text(encoding="utf-8"))["days"]
    page = (REPOSITORY_PATH / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for line in [gates_days.days_head(), *gates_cells.table_lines(days["promotions"])]:
        assert line in page
    most = days["promise"] + 3 * (days["promise"] * (1 - days["promise"]) / days["comparisons"]) ** 0.5
    assert [cell for cell in days["promotions"] if cell["row"].endswith("by days") and cell["erred"] > most] == []


@pytest.mark.parametrize(("effect", "expected"), [(0.0, 1.0), (3**0.5, 2.0), (5.5, 5.6)])
def test_how_alike_days_are_is_found(effect: float, expected: float) -> None:
    """As `gates_days` makes them: 400 days of 100 rows."""
    random, of_row = np.random.default_rng(5), np.repeat(np.arange(400), 100)
    differences = random.normal(size=len(of_row)) + effect / 10 * random.normal(size=400)[of_row]
    within = (1 + (effect / 10) ** 2) ** 0.5  # the days are in the rows' own deviation too
    assert gates_flights.ratio_of_errors(differences, of_row) == pytest.approx(expected / within, rel=0.1)


def test_the_days_of_the_flights_are_in_the_docs() -> None:
    found = json.loads(gates_flights.RESULT_PATH.read_text(encoding="utf-8"))
    assert gates_flights.table(found) in (REPOSITORY_PATH / "docs" / "evaluation.md").read_text(encoding="utf-8")
    assert found["ratios"].keys() == gates_flights.PAIRS.keys()


def test_the_table_of_validation_by_days_is_the_measured_one() -> None:
    """And the days are those that the run table takes: on each weekday, about a tenth of them."""
    found = json.loads(validation_days.RESULT_PATH.read_text(encoding="utf-8"))
    assert validation_days.table(found) in (REPOSITORY_PATH / "docs" / "data.md").read_text(encoding="utf-8")
    whole = np.flatnonzero(validation_days.whole_days(np.arange(15_000, 15_700)))
    assert 65 <= len(whole) <= 75
    assert set(whole % 7) == set(range(7))
    template = (PACKAGE_DATA / "templates" / "snapshot.sql.j2").read_text(encoding="utf-8")
    assert "* 618034, 1000000)) < @validation_percent * 10000" in template
