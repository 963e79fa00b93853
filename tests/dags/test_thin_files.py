"""The files of `dags/`, as a team has them: three lines that Airflow finds, and each DAG in one of them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from airflow.utils.file import might_contain_dag

from retraining.dags import KINDS, build_dags

from .conftest import ROOT, run_python

FILES = sorted((ROOT / "dags").glob("*.py"))


def test_each_kind_has_its_file() -> None:
    """And no other file makes DAGs."""
    assert {path.stem for path in FILES} == set(KINDS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_three_lines_that_airflow_finds(path: Path) -> None:
    """A docstring, an import and a call; in safe mode Airflow looks for its name and for `dag` in the text."""
    assert len(ast.parse(path.read_text()).body) == 3
    assert might_contain_dag(str(path), safe_mode=True)


def test_one_file_can_have_them_all(bundle: Path) -> None:
    """As in a team's repository; a worker that runs a task gets that DAG, and imports no kind but its own."""
    for path in (bundle / "dags").glob("*.py"):
        path.unlink()
    (bundle / "dags" / "team.py").write_text(
        "from retraining.dags import build_dags\n\nglobals().update(build_dags())\n"
    )
    code = """
import json, sys
import retraining.dags as factories
class Parsing:
    dag_id = None
factories.get_parsing_context = lambda: Parsing
Parsing.dag_id = "retrain__digits"
import team
one = [name for name in vars(team) if hasattr(vars(team)[name], "tasks")]
kinds = sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith("retraining.dags."))
Parsing.dag_id = None
del sys.modules["team"]
import team
print(json.dumps([one, kinds, sorted(name for name in vars(team) if hasattr(vars(team)[name], "tasks"))]))
"""
    one, kinds, every = json.loads(run_python(bundle, code).splitlines()[-1])
    assert (one, kinds) == (["retrain__digits"], ["retrain"])
    assert {"retrain__digits", "monitor__digits", "score__digits", "rollback", "maintain", "notify_test"} <= set(every)


def test_a_kind_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"retrian: no kind of DAGs\. Expected of: retrain, monitor"):
        build_dags("retrian")
