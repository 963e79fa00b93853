"""Features that the file names by patterns: which columns they are, and what is refused."""

from __future__ import annotations

import pytest

from retraining.core.documents import Plan
from retraining.core.errors import PlanError, SpecError
from retraining.core.planning.plan import explain, resolve_patterns
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from tests.support.refusals import refuses
from tests.support.small_model import SPEC_YAML, make_plan, make_spec, spec_values

COLUMNS = ["id", "at", "mean_b", "carrier", "distance", "mean_a", "late", "MEAN_C", "place.mean_d"]


def patterned(*entries: dict[str, object], **changes: object) -> ModelSpec:
    """The small model with more entries among its features."""
    return make_spec(features=[*spec_values()["features"], *entries], **changes)


def test_a_pattern_is_its_columns_in_the_querys_order() -> None:
    """All of one kind with the entry's options; the file's order holds for entries."""
    spec = patterned(
        {"names": "mean_*", "kind": "numeric", "normalize": False}, {"name": "MEAN_C", "kind": "categorical"}
    )
    resolved, matched = resolve_patterns(spec, COLUMNS)
    assert resolved.feature_names == ["carrier", "distance", "mean_b", "mean_a", "MEAN_C"]
    assert matched == {"mean_*": ("mean_b", "mean_a")}
    assert {feature.kind for feature in resolved.features[2:4]} == {"numeric"}
    assert not resolved.patterns
    again = ModelSpec.model_validate(spec.model_dump(mode="json"))
    assert again == spec


def test_key_time_label_and_what_has_a_name_are_left_out() -> None:
    """So `*` is all the others; a column goes to the first pattern that names it."""
    spec = patterned({"names": "mean_a*", "kind": "numeric"}, {"names": "*", "kind": "categorical"})
    _, matched = resolve_patterns(spec, COLUMNS)
    assert matched == {"mean_a*": ("mean_a",), "*": ("mean_b", "MEAN_C")}


def test_a_pattern_without_a_column_is_refused() -> None:
    spec = patterned({"names": "max_*", "kind": "numeric"})
    with refuses(PlanError, where="late.yaml, features", found="'max_*'"):
        resolve_patterns(spec, COLUMNS)
    spec = patterned({"names": "dist*", "kind": "numeric"})
    with pytest.raises(PlanError, match="that is free"):
        resolve_patterns(spec, COLUMNS)


def test_a_column_that_cannot_be_a_feature_is_refused() -> None:
    spec = patterned({"names": "class*", "kind": "numeric"})
    with refuses(PlanError, where="columns of its query", found=("features.2", "'class' is reserved")):
        resolve_patterns(spec, [*COLUMNS, "class"])


def test_slices_may_name_what_a_pattern_will_give() -> None:
    """Once the columns are known, they must be there."""
    evaluation = {**spec_values()["evaluation"], "slices": ["mean_x"]}
    spec = patterned({"names": "mean_*", "kind": "categorical"}, evaluation=evaluation)
    with refuses(PlanError, found=("evaluation.slices", "'mean_x'")):
        resolve_patterns(spec, COLUMNS)


def test_the_plan_has_features_and_says_whose_they_are() -> None:
    """Another column makes another run."""
    spec = patterned({"names": "mean_*", "kind": "numeric"})
    plan = make_plan(spec, columns=COLUMNS)
    assert plan.spec.feature_names == ["carrier", "distance", "mean_b", "mean_a"]
    assert plan.feature_patterns == {"mean_*": ("mean_b", "mean_a")}
    assert "features mean_*: mean_b, mean_a" in explain(plan)
    assert Plan.parse(plan.to_bytes()) == plan
    assert make_plan(spec, columns=[*COLUMNS, "mean_e"]).run_key != plan.run_key


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{names: 'mean_*', kind: numeric, embedding_dim: 4}", r"line 14: unknown key 'embedding_dim' in features.1"),
        ("{names: 'mean_*', kind: number}", r"line 14: features.1.kind is 'number'. .* Did you mean 'numeric'"),
        ("{names: 'mean_*'}", r"line 14: features.1.kind is missing"),
        ("{names: mean_a, kind: numeric}", r"line 14: features.1.names is 'mean_a'"),
        ("{names: 'mean_*', name: x, kind: numeric}", r"line 14: features.1: name and names in one entry"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_with_its_line(tmp_path, entry: str, words: str) -> None:
    path = tmp_path / "late.yaml"
    path.write_text(SPEC_YAML.replace("{name: distance, kind: numeric}", entry).replace("{distance: 0.1}", "{}"))
    with pytest.raises(SpecError, match=words):
        files.load_spec(path)
