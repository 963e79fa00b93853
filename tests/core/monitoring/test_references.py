"""The monitor's distances against those of NannyML, Evidently and TensorFlow Data Validation on the same inputs.

`references.json` has what they said (`make monitor-references`). All agree on a formula when the shares are the same;
where bins, missing values or unseen ones are treated otherwise, the test says how, as does docs/monitoring.md.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
from collections import Counter
from pathlib import Path

import pytest

from bench import monitor_baselines as baselines
from retraining.core import documents as d
from retraining.core.documents.answers import CalibrationBin, Curves
from retraining.core.documents.evaluation import Scores
from retraining.core.metrics import Metrics
from retraining.core.monitoring import distributions
from retraining.core.monitoring.estimates import estimate
from retraining.core.monitoring.request_log import Counted
from tests.support.product import REPOSITORY
from tests.support.small_model import make_spec

KNOWN = json.loads(Path(__file__).with_name("references.json").read_text(encoding="utf-8"))
CATEGORIES, NUMBERS = ({case["name"]: case for case in KNOWN[kind]} for kind in ("categories", "numbers"))
EXACT = 1e-9


def _present(counts):
    return {value: count for value, count in counts.items() if value}


def _shares(counts, values):
    total = sum(counts.values())
    return [counts.get(value, 0) / total for value in values]


def _statistics(counts):
    top = tuple(d.ValueCount(value=value, count=count) for value, count in _present(counts).items())
    return d.CategoricalStatistics(kind="categorical", nulls=counts.get("", 0), distinct=len(top), top=top)


def _ours(case):
    """The divergence of numbers over the bins that the monitor counts in."""
    baseline = baselines.numeric_statistics(case["reference"])
    return baselines.distance_of(baseline, len(case["reference"]), case["current"]).value


def _histogram(values, edges):
    """Shares between edges as NumPy counts them, the last edge included; then what lies outside of all."""
    there = [value for value in values if value is not None]
    shares = [0.0] * len(edges)
    for value in there:
        inside = edges[0] <= value <= edges[-1]
        shares[min(bisect.bisect_right(edges, value), len(edges) - 1) - 1 if inside else -1] += 1 / len(there)
    return shares


def _aligned(side, edges):
    """Shares of a histogram between other edges, its rows spread evenly over each of its own bins."""
    counts = [
        sum(rows * max(0.0, min(high, b) - max(low, a)) / (b - a) for a, b, rows in side["bins"])
        for low, high in itertools.pairwise(edges)
    ]
    return [count / sum(counts) for count in counts]


@pytest.mark.parametrize("name", CATEGORIES)
def test_shares_of_categories_have_everybodys_l_infinity(name):
    case = CATEGORIES[name]
    p, q = ({value: count / sum(side.values()) for value, count in side.items()} for side in _sides(case))
    found = distributions.l_infinity(p, q)
    assert found == pytest.approx(case["answers"]["nannyml"]["l_infinity"], abs=EXACT)
    assert found == pytest.approx(case["answers"]["tfdv"]["l_infinity"], abs=EXACT)


@pytest.mark.parametrize("name", CATEGORIES)
def test_shares_of_categories_have_everybodys_jensen_shannon(name):
    """A divergence in base 2; NannyML and Evidently give its root, Evidently with natural logarithms."""
    case = CATEGORIES[name]
    reference, current = _sides(case)
    values = sorted({*reference, *current})
    found = distributions.jensen_shannon(_shares(reference, values), _shares(current, values))
    answers = case["answers"]
    assert found == pytest.approx(answers["tfdv"]["jensen_shannon"], abs=EXACT)
    assert found == pytest.approx(answers["nannyml"]["jensen_shannon_distance"] ** 2, abs=EXACT)
    assert found == pytest.approx(answers["evidently"]["jensen_shannon_distance_base_e"] ** 2 / math.log(2), abs=EXACT)


def _sides(case):
    """Both sides without missing values, which none of the three counts."""
    return _present(case["reference"]), _present(case["current"])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_nannymls_bins_have_its_distance(name):
    """Its bins are the reference's alone (Doane's rule); what lies outside is one more."""
    case = NUMBERS[name]
    theirs = case["answers"]["nannyml"]
    p, q = (_histogram(case[side], theirs["edges"]) for side in ("reference", "current"))
    assert math.sqrt(distributions.jensen_shannon(p, q)) == pytest.approx(theirs["jensen_shannon_distance"], abs=1e-7)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_evidentlys_bins_have_its_distance(name):
    """Its bins are those of both sides together (Sturges); of at most 20 values each is one."""
    case = NUMBERS[name]
    theirs = case["answers"]["evidently"]
    reference, current = ([value for value in case[side] if value is not None] for side in ("reference", "current"))
    edges = theirs.get("edges")
    if edges:
        p, q = _histogram(reference, edges), _histogram(current, edges)
    else:
        values = sorted({*reference, *current})
        p, q = (_shares(Counter(side), values) for side in (reference, current))
    found = math.sqrt(distributions.jensen_shannon(p, q) * math.log(2))
    assert found == pytest.approx(theirs["jensen_shannon_distance_base_e"], abs=1e-7)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_tfdvs_bins_have_its_divergence(name):
    """Its bins are ten of equal width on each side, cut at the edges of both."""
    case = NUMBERS[name]
    theirs = case["answers"]["tfdv"]
    edges = sorted({edge for side in theirs["histograms"] for low, high, _ in side["bins"] for edge in (low, high)})
    p, q = (_aligned(side, edges) for side in theirs["histograms"])
    assert distributions.jensen_shannon(p, q) == pytest.approx(theirs["jensen_shannon"], abs=EXACT)


def test_what_is_missing_is_a_value_here_alone():
    case = CATEGORIES["missing categories"]
    baseline = distributions.category_shares(_statistics(case["reference"]), sum(case["reference"].values()))
    total = sum(case["current"].values())
    found = distributions.l_infinity(
        baseline, {value or None: count / total for value, count in case["current"].items()}
    )
    assert found == pytest.approx(0.2)
    assert case["answers"]["tfdv"]["l_infinity"] == pytest.approx(0.125)


def test_values_that_the_training_data_does_not_have_are_one_value_here_alone():
    case = CATEGORIES["nothing in common"]
    baseline = distributions.category_shares(_statistics(case["reference"]), sum(case["reference"].values()))
    assert distributions.l_infinity(baseline, {distributions.UNSEEN: 1.0}) == pytest.approx(1.0)
    assert case["answers"]["tfdv"]["l_infinity"] == pytest.approx(0.5)


@pytest.mark.parametrize("calibration", ["none", "isotonic"])
@pytest.mark.parametrize("metric", ["auc", "accuracy"])
def test_the_estimate_of_the_same_expected_labels_is_nannymls(calibration, metric):
    """Each answer a bucket of its own. It calibrates by isotonic regression, here 15 bins do: its shares are given."""
    case = KNOWN["estimate"]
    scores = case["current"]["scores"]
    shares = case[calibration]["calibrated"] or scores
    pairs = sorted(zip(scores, shares, strict=True))
    bins = tuple(CalibrationBin(rows=1, score=score, positive=share) for score, share in pairs)
    known = Scores(
        metrics=Metrics(auc=None, log_loss=0, accuracy=0, brier=0),
        slices=(),
        curves=Curves.model_construct(calibration=bins),
    )
    answers = {place: Counted(1, 0, score) for place, score in enumerate(sorted(scores))}
    assert estimate(make_spec(), metric, answers, known).value == pytest.approx(case[calibration][metric], abs=1e-7)


@pytest.mark.parametrize("name", NUMBERS)
def test_the_page_has_what_each_says_of_the_numbers(name):
    """All as divergences of base 2, so that a row can be read across."""
    case = NUMBERS[name]
    answers = case["answers"]
    row = (
        _ours(case),
        answers["tfdv"]["jensen_shannon"],
        answers["nannyml"]["jensen_shannon_distance"] ** 2,
        answers["evidently"]["jensen_shannon_distance_base_e"] ** 2 / math.log(2),
    )
    page = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert f"| {name} | " + " | ".join(f"{value:.3f}" for value in row) + " |" in page


def test_the_page_names_the_versions():
    page = " ".join((REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8").split())
    for package, name in (("nannyml", "NannyML"), ("evidently", "Evidently"), ("tfdv", "TensorFlow Data Validation")):
        versions = KNOWN["made"][package]
        assert f"{name} {next(iter(versions.values()))}" in page
