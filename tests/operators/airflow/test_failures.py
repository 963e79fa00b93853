"""A failed task's message reaches whoever is on call: last in the log, on the page, in a shell, in a mail; the same."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from retraining.__main__ import main
from retraining.commands.runs import whole_run
from retraining.commands.shell import Shell
from retraining.core.errors import ConflictError, DataError, JobError, SettingsError
from retraining.core.report import terminal
from retraining.core.report.run import Run, read_reported_run
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.airflow.failures import KIND_KEY
from retraining.operators.ending.conclusion import ConcludeRunOperator
from retraining.operators.planning.run_plan import PlanRunOperator
from retraining.operators.report.page import ReportOperator
from tests.operators.airflow.test_notification import with_people
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.deployment import FOLDER, Scene, example

SQL_ERROR = SettingsError(
    "include/sql/flight_delays/examples.sql",
    "\x1b[1;31mBinder Error\x1b[0m: no column \x1b]0;x\x07carier, as postgres://ada:hunter2@db/x password=hunter2",
    "a statement that BigQuery takes",
    "Correct the file, then clear plan and what follows it",
)
CLEAN = "Binder Error: no column carier, as postgres://***@db/x password=***"


class FailingOperator(RunTask, CloudOperator):
    """A task of the run that fails as it is told."""

    def __init__(self, *, error: Exception, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    def act(self, cloud: Any, context: Any) -> Any:
        """Fail, as deep as a database does."""
        del cloud, context
        try:
            try:
                raise ValueError("\x1b[1mrow 17 of ada")
            except ValueError as deep:
                raise RuntimeError("the session broke") from deep
        except RuntimeError as broken:
            raise self.error from broken


def fail(scene: Scene, run: Any, task: str, error: Exception, *, try_number: int = 1, max_tries: int = 0) -> Exception:
    """A try of a task that fails; gives what Airflow is shown."""
    operator = FailingOperator(task_id=task, run_uri=FOLDER, cloud=scene.cloud.connect, error=error)
    with pytest.raises((AirflowFailException, type(error))) as raised:
        run.execute(operator, try_number=try_number, max_tries=max_tries)
    return raised.value


def stopped_at_snapshot() -> Scene:
    """A run that has nothing but its plan."""
    scene = Scene()
    for uri in list(scene.cloud.artifacts.objects):
        if not uri.endswith("/plan.json"):
            del scene.cloud.artifacts.objects[uri]
    return scene


def report(scene: Scene, run: Any, states: dict[str, str]) -> str:
    """Make the run's page when its tasks ended so; gives it."""
    with DAG("retrain__flight_delays", schedule=None):
        before = [BaseOperator(task_id=task) for task in states]
        task = ReportOperator(task_id="report", run_uri=FOLDER, cloud=scene.cloud.connect)
        before >> task
    context = run.context(task)
    context["ti"].get_task_states = lambda **asked: dict.fromkeys(asked["run_ids"], states)
    task.execute(context)
    return scene.cloud.artifacts.objects[f"{FOLDER}/report.html"].decode()


def stored_run(scene: Scene) -> Run:
    """The run, as a shell reads it."""
    plan = read_reported_run({"plan": scene.read("plan")})
    return whole_run(scene.cloud.artifacts, plan)


def test_an_error_that_nobody_explained_fails_the_task_as_it_is(make_run) -> None:
    """A task that went on behind a fault of ours would be green with nothing done."""
    broken = KeyError("a fault of ours")
    assert fail(Scene(), make_run(), "snapshot", broken) is broken


@pytest.mark.parametrize("error", [SQL_ERROR, JobError("job 1", "exit code 1", "", "Look")], ids=["final", "retried"])
def test_the_message_is_the_last_line_that_airflow_prints(make_run, caplog, error: Any) -> None:
    """What it came of stands above it, in a line of its own."""
    shown = traceback.format_exception(fail(Scene(), make_run(), "snapshot", error))
    assert str(shown[-1]).strip().endswith(str(error))
    assert "".join(shown).count("Traceback") == 1
    assert "row 17 of ada" in caplog.text


def test_page_shell_and_mail_say_the_same(make_run) -> None:
    """Where, found, expected, way out, the log; without escapes and passwords. Nothing is said five times."""
    scene, run = stopped_at_snapshot(), make_run()
    with_people(scene.cloud)
    fail(scene, run, "snapshot", SQL_ERROR)
    states = {"plan": "success", "snapshot": "failed", "check_data": "upstream_failed"}
    page = report(scene, run, states)
    shell = "\n".join(terminal.explain_run(stored_run(scene)))
    with pytest.raises(AirflowFailException):
        conclude(scene, run, states)
    mail = scene.cloud.notifiers.sent[0].text
    for text in (SQL_ERROR.where, SQL_ERROR.expected, SQL_ERROR.way_out):
        assert all(text in shown for shown in (page, shell, mail))
    assert CLEAN in page
    assert CLEAN in shell
    assert "hunter2" not in page + shell + mail + str(scene.cloud.artifacts.objects)
    assert "\x1b" not in page + shell + mail
    assert page.index(CLEAN) < page.index('class="facts"')
    assert "Failed at snapshot" in page
    assert "did not happen" not in page
    assert page.count("its message stands at the top") <= 2
    assert "Of wrong SQL correct the file" in page


def conclude(scene: Scene, run: Any, states: dict[str, str]) -> None:
    """End the run."""
    with DAG(dag_id="retrain__flight_delays", schedule=None):
        for task_id in states:
            BaseOperator(task_id=task_id)
        task = ConcludeRunOperator(task_id="conclude", run_uri=FOLDER, cloud=scene.cloud.connect)
    context = run.context(task)
    context["ti"].get_task_states = lambda **asked: dict.fromkeys(asked["run_ids"], states)
    task.execute(context)


def test_what_quotes_the_data_stays_out_of_mails(make_run) -> None:
    """A finding and a job's last lines may: the mail names the place and the way out, the page has the rest."""
    scene, run = stopped_at_snapshot(), make_run()
    with_people(scene.cloud)
    fail(scene, run, "train", DataError("split train", "carrier is 'ada lovelace'", "a code", "Mend it"))
    states = {"plan": "success", "train": "failed"}
    assert "ada lovelace" in report(scene, run, states)
    with pytest.raises(AirflowFailException):
        conclude(scene, run, states)
    mail = str(scene.cloud.notifiers.sent)
    assert "split train" in mail
    assert "Mend it" in mail
    assert "ada lovelace" not in mail


def test_a_try_writes_once_and_the_newest_is_shown(make_run) -> None:
    """While Airflow tries again the run is not over, and when the task is done the message is history."""
    scene, run = stopped_at_snapshot(), make_run()
    for number, text in ((1, "no room"), (2, "no network")):
        fail(scene, run, "snapshot", ConflictError("table", text), try_number=number, max_tries=2)
    fail(scene, run, "snapshot", ConflictError("table", "another"), try_number=2, max_tries=2)
    shown = stored_run(scene)
    assert [each.found for each in shown.failures] == ["no room", "no network"]
    assert shown.failure is not None
    assert (shown.failure.found, shown.failure.retried) == ("no network", True)
    assert "is tried again" in "\n".join(terminal.explain_run(shown))
    scene.put("snapshot", example("snapshot") | {"model": "flight_delays", "run_key": scene.run_key})
    assert stored_run(scene).failure is None


def test_a_run_under_way_says_what_it_waits_for(make_run) -> None:
    """Nothing failed: nothing "did not happen"."""
    scene = stopped_at_snapshot()
    told = "\n".join(terminal.explain_run(stored_run(scene)))
    assert "The run is at the task snapshot and waits for BigQuery." in told
    assert "did not" not in told


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ({"plan": "success", "snapshot": "failed"}, "it failed and left no message: its worker died"),
        ({"plan": "success", "snapshot": "skipped"}, "the task snapshot did not run: the run was ended by hand"),
    ],
    ids=["worker-died", "ended-by-hand"],
)
def test_who_could_not_speak_is_spoken_for(make_run, states: dict[str, str], found: str) -> None:
    """Once, however often the page is made; and the task's own message counts when it is cleared."""
    scene, run = stopped_at_snapshot(), make_run()
    for _ in range(2):
        assert found in report(scene, run, states)
    assert len(stored_run(scene).failures) == 1
    fail(scene, run, "snapshot", SQL_ERROR)
    assert CLEAN in report(scene, run, {"plan": "success", "snapshot": "failed"})


def test_nothing_is_written_into_the_bucket_of_another_environment(make_run, include) -> None:
    """The one error that a plan may fail with there is that it is another's."""
    cloud = FakeCloud()
    cloud.artifacts.objects["gs://bucket/environment.txt"] = b"another"
    with pytest.raises(AirflowFailException):
        make_run(params={"as_off": 1}).execute(
            PlanRunOperator(task_id="plan", model="flight_delays", cloud=cloud.connect)
        )
    assert set(cloud.artifacts.objects) == {"gs://bucket/environment.txt"}


def test_a_folder_that_is_not_this_runs_is_not_written_into(make_run) -> None:
    """The address came through XCom, and may be another model's."""
    scene, run = Scene(), make_run()
    before = set(scene.cloud.artifacts.objects)
    other = FOLDER.replace("flight_delays", "parcels")
    operator = FailingOperator(task_id="train", run_uri=other, cloud=scene.cloud.connect, error=SQL_ERROR)
    with pytest.raises(AirflowFailException, match="Binder"):
        run.execute(operator)
    assert set(scene.cloud.artifacts.objects) == before
    assert run.xcoms["train", KIND_KEY] == "SettingsError"


def test_no_cloud_hides_no_message(make_run) -> None:
    """The settings are what is wrong: the message comes out, and XCom has it for the mail."""

    def no_cloud() -> FakeCloud:
        raise SettingsError("RETRAINING_BUCKET", "not set", "a bucket", "Set it")

    run = make_run()
    with pytest.raises(AirflowFailException, match="RETRAINING_BUCKET"):
        run.execute(FailingOperator(task_id="train", run_uri=FOLDER, cloud=no_cloud, error=SQL_ERROR))
    assert run.xcoms["train", "failure"]["way_out"] == "Set it"


def test_why_reads_it(make_run, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command that a person types."""
    scene = stopped_at_snapshot()
    fail(scene, make_run(), "snapshot", SQL_ERROR)
    assert main(["why", "flight_delays"], Shell(connect=scene.cloud.connect)) == 0
    assert CLEAN in capsys.readouterr().out
