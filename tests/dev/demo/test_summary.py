"""What the demonstration says to somebody who sees it for the first time: where to look, and what to do next."""

from __future__ import annotations

import re
from pathlib import Path

from demo.story import next_lines
from retraining_laptop.progress import follow_run

MAKEFILE = Path(__file__).parents[3] / "Makefile"


def test_who_stays_is_told_where_to_look_and_what_to_do() -> None:
    """The pages in the running Airflow, and a command that there is."""
    text = "\n".join(next_lines("http://127.0.0.1:8080"))
    assert "http://127.0.0.1:8080/retraining/models" in text
    targets = re.findall(r"make (?:-s )?([a-z-]+)", text)
    assert targets == ["demo-env", "retraining"]
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE.read_text(), re.MULTILINE)


class OneTask:
    """An Airflow whose run has one task that has succeeded."""

    def read_run(self, dag_id: str, run_id: str) -> dict[str, str]:
        """As the API."""
        del dag_id, run_id
        return {"state": "success"}

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, object]]:
        """As the API."""
        del dag_id, run_id
        times = {"start_date": "2026-01-01T00:00:00+00:00", "end_date": "2026-01-01T00:00:32+00:00"}
        return [{"task_id": "plan", "state": "success", "try_number": 1, **times}]


def test_both_columns_of_seconds_have_a_name() -> None:
    """Those since the run was ordered, and those that a task took."""
    said: list[str] = []
    follow_run(OneTask(), "retrain__x", "run", say=said.append, timeout_s=5)
    heading, row = said
    assert re.fullmatch(r"\s+since then  task\s+state\s+took", heading)
    assert row.endswith("32.0 s")
    assert heading.index("task") == row.index("plan")
