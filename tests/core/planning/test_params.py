"""What a filled-in form changes, and what started the run."""

from __future__ import annotations

import pytest

from retraining.core.errors import ConflictError, ContractError, JobError, PlanError, SpecError, is_final
from retraining.core.planning import params
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

FORM = ("window_days", "epochs", "as_of")


def _spec(**hyperparameters):
    spec = make_spec()
    training = spec.training.model_copy(update={"hyperparameters": hyperparameters})
    return spec.model_copy(update={"training": training})


def test_only_what_differs_from_the_file_is_an_override():
    spec = _spec(dropout=0.1, layers=(32, 16))
    same = {
        "window_days": spec.data.window_days,
        "sample_percent": 100,
        "epochs": None,
        "dropout": 0.1,
        "layers": [32, 16],
    }
    assert params.overrides(spec, same) == {}
    changed = {"window_days": 99, "sample_percent": 2.5, "epochs": 7, "dropout": 0.2, "layers": [8]}
    assert params.overrides(spec, changed) == {
        "data.window_days": 99,
        "data.sample_percent": 2.5,
        "training.epochs": 7,
        "training.hyperparameters.dropout": 0.2,
        "training.hyperparameters.layers": [8],
    }


def test_an_address_comes_from_the_file_alone():
    with refuses(PlanError, found="an address"):
        params.overrides(_spec(activation="relu"), {"activation": "gs://b/x"})
    with pytest.raises(PlanError, match="an address"):
        params.require_known(["module"], FORM, fixed=["module"])


def test_a_misspelt_param_is_refused():
    params.require_known(["epochs"], FORM)
    with refuses(PlanError, found="'epoch'", way_out="'epochs'"):
        params.require_known(["epoch"], FORM)


def test_a_hyperparameter_has_a_name_of_its_own():
    assert params.hyperparameters_of_form(_spec(dropout=0.1), FORM) == {"dropout": 0.1}
    with pytest.raises(SpecError, match="a hyperparameter named 'epochs'"):
        params.hyperparameters_of_form(_spec(epochs=3), FORM)


@pytest.mark.parametrize(
    ("error", "final"), [(JobError, False), (ConflictError, False), (ContractError, True), (PlanError, True)]
)
def test_a_retry_mends_jobs_and_conflicts_alone(error, final):
    assert is_final(error("where", "found")) is final
