"""What a demonstration says of a night that failed: each task that failed, in its own words."""

from __future__ import annotations

from typing import Any

from retraining_laptop.airflow_api import AirflowApiError
from retraining_laptop.progress import read_failures
from retraining_laptop.summary import failed_lines

MESSAGE = "run_x: no example between 2014-11-01 and 2014-12-31.\nLook at as_of."


class Recorded:
    """The answers of Airflow's API about one run."""

    def __init__(self, *, states: dict[str, str], errors: dict[str, str], logs: dict[str, list[str]]) -> None:
        self._states, self._errors, self._logs = states, errors, logs

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:  # the API's
        """Each ended one second after the one before."""
        return [
            {"task_id": task_id, "state": state, "try_number": 1, "end_date": f"2026-01-01T00:00:{number:02}Z"}
            for number, (task_id, state) in enumerate(self._states.items())
        ]

    def error_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Of the error that ended it."""
        return self._errors.get(task_id, "").splitlines()

    def log_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Of its log."""
        if task_id not in self._logs:
            raise AirflowApiError("GET", f"{dag_id}/{run_id}/{task_id}/{try_number}", 404, "no log")
        return self._logs[task_id]


def said(**answers: Any) -> list[str]:
    """Return the lines about a run."""
    api: Any = Recorded(**{"states": {}, "errors": {}, "logs": {}, **answers})
    return failed_lines(read_failures(api, "retrain__x", "run"))


def test_the_task_its_message_and_the_way_out_are_told() -> None:
    """All lines of the message; not the conclusion, which only says that something failed."""
    states = {"plan": "success", "snapshot": "failed", "train": "upstream_failed", "conclude": "failed"}
    assert said(states=states, errors={"snapshot": MESSAGE, "conclude": "snapshot failed"}) == [
        "failed     snapshot: run_x: no example between 2014-11-01 and 2014-12-31.",
        "           Look at as_of.",
    ]


def test_a_run_that_only_its_conclusion_failed_tells_that() -> None:
    """A person ended it: the conclusion names what did not run."""
    errors = {"conclude": "train did not run"}
    assert said(states={"train": "skipped", "conclude": "failed"}, errors=errors) == [
        "failed     conclude: train did not run"
    ]


def test_a_task_without_an_error_gives_the_end_of_its_log() -> None:
    """Its process was killed; and one that left nothing at all says that."""
    lines = said(states={"train": "failed"}, logs={"train": [f"line {number}" for number in range(40)]})
    assert (lines[0], lines[-1]) == ("failed     train: line 15", "           line 39")
    assert "no log" in said(states={"train": "failed"})[0]
    assert "none of its tasks" in said()[0]
