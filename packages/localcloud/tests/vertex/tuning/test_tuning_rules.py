"""The rules of studies without a server: early stopping, the end of a study, files of measurements."""

from __future__ import annotations

import datetime
import json

import pytest
from google.cloud import aiplatform_v1 as v1

from localcloud.vertex.jobs.tuning.metric_files import MetricFiles
from localcloud.vertex.jobs.tuning.search.stopping import should_stop
from localcloud.vertex.jobs.tuning.search.study_end import is_over
from packages.localcloud.tests.vertex.studies import State, integer, measurement, study_spec

BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def spec(**more) -> v1.StudySpec:
    return v1.StudySpec(study_spec(integer("x", 1, 9), **more))


def trial(number: int, *scores: float, done: bool = True, minutes: int = 0) -> v1.Trial:
    """A trial with a measurement per step, and the last one as the final one when it is done."""
    made = v1.Trial(id=str(number), measurements=[measurement(score, step) for step, score in enumerate(scores, 1)])
    made.start_time = BEGAN
    made.state = State.SUCCEEDED if done else State.ACTIVE
    if done:
        made.final_measurement = made.measurements[-1]
        made.end_time = BEGAN + datetime.timedelta(minutes=minutes or number)
    return made


MEDIAN = {"median_automated_stopping_spec": {"use_elapsed_duration": False}}
DECAY = {"decay_curve_stopping_spec": {"use_elapsed_duration": False}}
CONVEX = {"convex_automated_stopping_spec": {"max_step_count": 10, "min_measurement_count": 3, "min_step_count": 0}}
RISING = [trial(number, 0.5, 0.6, 0.7, 0.75) for number in range(1, 7)]


@pytest.mark.parametrize(
    ("rule", "curve", "expected"),
    [
        pytest.param(MEDIAN, (0.3, 0.4), True, id="below the median"),
        pytest.param(MEDIAN, (0.5, 0.56), False, id="above the running average"),
        pytest.param(MEDIAN, (), False, id="nothing measured"),
        pytest.param(DECAY, (0.1, 0.15), True, id="would need a miracle"),
        pytest.param(DECAY, (0.5, 0.6), False, id="as good as the others"),
        pytest.param(DECAY, (0.1,), False, id="one point is no curve"),
        pytest.param(CONVEX, (0.1, 0.11, 0.12, 0.125), True, id="too flat to climb"),
        pytest.param(CONVEX, (0.1, 0.3, 0.5, 0.7), False, id="steep enough"),
        pytest.param({}, (0.0, 0.0), False, id="no rule"),
    ],
)
def test_early_stopping(rule, curve, expected):
    running = trial(9, *curve, done=False)
    assert should_stop(spec(**rule), [*RISING, running], running) is expected


@pytest.mark.parametrize(("rule", "need"), [(MEDIAN, 3), (DECAY, 5)])
def test_no_rule_speaks_before_enough_trials_are_done(rule, need):
    running = trial(9, 0.0, 0.01, done=False)
    assert not should_stop(spec(**rule), [*RISING[: need - 1], running], running)
    assert should_stop(spec(**rule), [*RISING[:need], running], running)


def test_less_is_better_where_the_goal_says_so():
    """The same curves, upside down."""
    goal = [{"metric_id": "score", "goal": "MINIMIZE"}]
    done = [trial(number, 0.5, 0.4, 0.3) for number in range(1, 5)]
    bad, good = trial(8, 0.7, 0.6, done=False), trial(9, 0.4, 0.3, done=False)
    rule = spec(**MEDIAN, metrics=goal)
    assert should_stop(rule, [*done, bad], bad)
    assert not should_stop(rule, [*done, good], good)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({"max_num_trials": 6}, True, id="enough trials"),
        pytest.param({"max_num_trials": 7}, False, id="not enough trials"),
        pytest.param({"max_num_trials": 6, "min_num_trials": 7}, False, id="held back by a minimum"),
        pytest.param({"maximum_runtime_constraint": {"max_duration": "3600s"}}, True, id="an hour is over"),
        pytest.param({"maximum_runtime_constraint": {"max_duration": "7201s"}}, False, id="two hours are not"),
        pytest.param({"max_num_trials_no_progress": 5}, True, id="no progress in five trials"),
        pytest.param({"max_num_trials_no_progress": 6}, False, id="nor in six"),
        pytest.param({"max_duration_no_progress": "3600s"}, True, id="no progress for an hour"),
        pytest.param({}, False, id="nothing said"),
    ],
)
def test_a_study_ends_by_its_own_conditions(config, expected):
    from google.protobuf import json_format

    wanted = spec()
    json_format.ParseDict({"study_stopping_config": config} if config else {}, v1.StudySpec.pb(wanted))
    assert is_over(wanted, BEGAN, RISING, BEGAN + datetime.timedelta(hours=2)) is expected


def test_reports_are_read_as_hypertune_writes_them(tmp_path):
    """Half lines wait, what was seen is not seen again, other metrics and nonsense are left out."""
    path = tmp_path / "hypertune" / "workerpool0-0" / "output.metrics"
    path.parent.mkdir(parents=True)
    files = MetricFiles(lambda: sorted(tmp_path.glob("hypertune/*/output.metrics")), ["score"], BEGAN)

    def line(step: int, **more: object) -> str:
        body = {"timestamp": BEGAN.timestamp() + step, "trial": "1", "global_step": str(step), "checkpoint_path": ""}
        return json.dumps({**body, **more}) + "\n"

    assert files.read_measurements([]) is None
    whole = line(1, score="0.5") + line(1, other="3") + "nonsense\n" + line(2, score="nan")
    path.write_text(whole + line(2, score="0.25")[:-5])
    (first,) = files.read_measurements([])
    assert (first.step_count, first.metrics[0].value, first.elapsed_duration.total_seconds()) == (1, 0.5, 1)
    assert files.read_measurements([first]) is None
    path.write_text(whole + line(2, score="0.25") + line(1, score="0.75"))
    again = files.read_measurements([first])
    assert [(each.step_count, each.metrics[0].value) for each in again] == [(1, 0.75), (2, 0.25)]
