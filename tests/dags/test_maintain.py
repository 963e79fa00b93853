"""The daily cleaning as a DAG: one for all models; it deletes by the schedule, and says what would go by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from retraining.core.retention import spans

from .conftest import run_python


def test_it_looks_first_and_deletes_last(dags) -> None:
    """Nothing goes before the plan is written."""
    dag = dags["maintain"]
    assert dag.get_task("look").downstream_task_ids == {"cancel_jobs"}
    assert dag.get_task("cancel_jobs").downstream_task_ids == {"delete"}
    assert not dag.get_task("delete").downstream_task_ids
    for alone in ("show", "track"):  # what cannot be deleted keeps nobody from seeing
        assert not dag.get_task(alone).upstream_task_ids


def test_it_runs_daily(dags) -> None:
    """Two ticks of the clock are a day apart."""
    from tests.support.airflow_release import DagSerialization

    dag = DagSerialization.from_dict(DagSerialization.to_dict(dags["maintain"]))
    ticks = [
        info.run_after
        for info in dag.iter_dagrun_infos_between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    ]
    assert [after - before for before, after in pairwise(ticks)] == [timedelta(days=1)]


def test_by_hand_it_is_a_dry_run(dags) -> None:
    """The form's default; the schedule deletes whatever the default is (see the operator's tests)."""
    assert dags["maintain"].params["dry_run"] is True
    assert dags["maintain"].params["min_age_days"] == spans.DEFAULT_AGE_DAYS
    assert dags["maintain"].params["models"] == []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("min_age_days", [7, 30], [6, 0, -1, 1.5, "30", 4000]),
        ("keep_versions", [1, 10], [0, -1, 1.5, "10", 4000]),
        ("models", [[], ["flight_delays"]], [["../x"], ["A"], "flight_delays"]),
        ("dry_run", [False], ["no", 0]),
    ],
)
def test_the_form_refuses_what_cannot_be(dags, name, good, bad) -> None:
    """An age limit that a waiting run would not survive, and names that are no model's."""
    from tests.support.airflow_release import ParamValidationError

    param = dags["maintain"].params.get_param(name)
    for value in good:
        assert param.resolve(value) == value
    for value in bad:
        with pytest.raises(ParamValidationError):
            param.resolve(value)


def test_a_broken_spec_does_not_break_it(bundle) -> None:
    """It reads no spec while parsing; a worker of another DAG does not build it."""
    (bundle / "dags" / "include" / "models" / "broken.yaml").write_text("name: [unclosed\n")
    assert run_python(bundle, "import maintain; print(maintain.maintain.dag_id)").splitlines()[-1] == "maintain"
