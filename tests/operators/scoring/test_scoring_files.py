"""A scoring of files in the cloud of memory: every line is compared, nothing is paid twice, answers are never mixed."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from retraining.core.errors import ConflictError
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.bucket import Killed
from tests.support.refusals import refuses
from tests.support.scenes.scoring import SPEC, ScoringScene, change_section

ALL = ("plan", "snapshot", "predict", "write", "cancel_jobs", "clean_up")
FILES, TARGET = "gs://b-b/in/*.jsonl", "gs://b-b/out"
CURRENT = f"{TARGET}/2013-11-20/current.json"
KEYS = [f"k{number}" for number in range(8)]


class FilesScene:
    """Two files of eight lines, and answers of a job as the test wants them."""

    def __init__(self, make_run: Any) -> None:
        self.scoring = ScoringScene(make_run)
        self.bucket = self.scoring.cloud.artifacts
        self.jobs = self.scoring.cloud.jobs
        self.put("a", KEYS[:5])
        self.put("b", KEYS[5:])

    def put(self, name: str, keys: list[str]) -> None:
        """Write a file of lines with these keys."""
        line = {feature.name: "UA" if feature.kind == "categorical" else 1.5 for feature in SPEC.features}
        text = "".join(json.dumps({self.scoring.key: key} | line) + "\n" for key in keys)
        self.bucket.put(f"gs://b-b/in/{name}.jsonl", text.encode())

    def start(self, run_id: str = "manual__1", **params: Any) -> Any:
        """A run that scores the files."""
        return self.scoring.start(run_id, files=FILES, destination=TARGET, **params)

    def answer(self, keys: list[str], score: float = 0.25) -> str:
        """End the newest job well, with answers in a folder of its own."""
        name = self.jobs.newest
        folder = f"{TARGET}/2013-11-20/prediction-{self.jobs.get(name).job_id}"
        rows = [json.dumps({"key": key, "prediction": score}) for key in keys]
        self.bucket.put(f"{folder}/prediction.results-00000-of-00002", "\n".join(rows[:3]).encode())
        self.bucket.put(f"{folder}/prediction.results-00001-of-00002", "\n".join(rows[3:]).encode())
        self.bucket.put(f"{folder}/prediction.errors_stats-00000-of-00001", b"('no number', 1)\n")
        self.jobs.end(name, seconds=90)
        self.jobs.jobs[name] = dataclasses.replace(self.jobs.jobs[name], output_folder=folder)
        return folder

    def predict(self, run: Any, keys: list[str], score: float = 0.25) -> str:
        """Go on until the job has answered; give its folder."""
        self.scoring.execute(run, "plan", "snapshot")
        with pytest.raises(AirflowRescheduleException):
            run.execute(self.scoring.task("predict"))
        folder = self.answer(keys, score)
        self.scoring.execute(run, "predict")
        return folder

    def current(self) -> dict[str, Any]:
        """What the destination names."""
        found: dict[str, Any] = json.loads(self.bucket.objects[CURRENT])
        return found


@pytest.fixture(autouse=True)
def _places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file allows what the form names."""
    change_section(monkeypatch, tmp_path, allow_sources=["gs://b-b/in/"], allow_destinations=["gs://b-b/"])


@pytest.fixture
def scene(make_run: Any) -> FilesScene:
    """A champion, and files to score."""
    return FilesScene(make_run)


def test_answers_in_another_order_are_announced(scene) -> None:
    run = scene.start()
    folder = scene.predict(run, KEYS[::-1])
    scene.scoring.execute(run, "write", "cancel_jobs", "clean_up")
    assert scene.current()["predictions"] == f"{folder}/prediction.results-*"
    assert (scene.current()["rows"], len(scene.jobs.specs)) == (8, 1)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            KEYS[:6],
            r"6 answers for 8 lines; 2 without an answer: {b}2; {b}3; the service's own errors are in .*errors_st",
        ),
        (
            [*KEYS[:7], "k0"],
            r"8 answers for 8 lines; 1 without an answer: {b}3; 1 answered more than once: {r}0-of-00002, line 1; {r}",
        ),
        (
            [*KEYS[:7], "x"],
            "8 answers for 8 lines; 1 without an answer: {b}3; 1 answered and not asked: {r}1-of-00002, line 5",
        ),
        ([*KEYS, "x"], "9 answers for 8 lines; 1 answered and not asked: {r}1-of-00002, line 6"),
        ([], "0 answers for 8 lines; 8 without an answer: {a}1; {a}2; {a}3; {a}4; {a}5; …"),
    ],
    ids=["lost", "doubled", "foreign", "too many", "none"],
)
def test_every_line_is_compared_with_the_answers(scene, keys, words) -> None:
    """Not how many there are alone; the destination stays, and no second job is paid for a cleared task."""
    run = scene.start()
    folder = scene.predict(run, keys)
    places = {name: rf"gs://b-b/in/{name}\.jsonl, line " for name in "ab"}
    words = words.format(r=f"{folder}/prediction.results-0000", **places)
    with pytest.raises(AirflowFailException, match=f"{folder}: {words}.*stays as it was") as refused:
        scene.scoring.execute(run, "write")
    assert "k0" not in str(refused.value)
    assert "no number" not in str(refused.value)
    assert CURRENT not in scene.bucket.objects
    scene.answer(KEYS)
    scene.scoring.execute(run, "write", "clean_up", max_tries=4)
    assert (scene.current()["rows"], len(scene.jobs.specs)) == (8, 1)


def test_files_that_changed_after_they_were_read_are_noticed(scene) -> None:
    """The job reads them later than snapshot did."""
    run = scene.start()
    scene.predict(run, [*KEYS, "late"])
    scene.put("c", ["late"])
    with refuses(AirflowFailException, found=("9 answers for 8", "gs://b-b/in/*.jsonl")):
        scene.scoring.execute(run, "write")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "c",
            ["k3", "k6", "new"],
            r"2 {key} more than once in 11 lines: \S+a\.jsonl, line 4; \S+b\.jsonl, line 2; \S+c\.jsonl, line 1; ",
        ),
        ("b", None, r"in/b\.jsonl, line 1: a compressed file.*Unpack it"),
    ],
    ids=["doubled", "gzip"],
)
def test_input_that_cannot_be_is_refused_before_a_job(scene, name, data, words) -> None:
    if data is None:
        scene.bucket.put(f"gs://b-b/in/{name}.jsonl", gzip.compress(b"{}\n"))
    else:
        scene.put(name, data)
    with pytest.raises(AirflowFailException, match=words.format(key=scene.scoring.key)):
        scene.scoring.execute(scene.start(), "plan", "snapshot")
    assert scene.jobs.specs == []


def test_a_later_line_is_held_to_the_version_too(scene) -> None:
    """Not the first of each file alone."""
    name = "gs://b-b/in/b.jsonl"
    scene.bucket.put(name, scene.bucket.objects[name] + b'\n{"id": "z"}\n')
    with pytest.raises(AirflowFailException, match=r"in/b\.jsonl, line 5: no "):
        scene.scoring.execute(scene.start(), "plan", "snapshot")


def test_a_file_that_goes_while_it_is_read_is_no_short_file(scene) -> None:
    """It would be scored without these lines."""
    listed = scene.bucket.match
    scene.bucket.match = lambda uri: [*listed(uri), dataclasses.replace(listed(uri)[0], uri="gs://b-b/in/gone.jsonl")]
    with refuses(AirflowFailException, where="in/gone.jsonl", found="deleted"):
        scene.scoring.execute(scene.start(), "plan", "snapshot")


def test_a_second_run_of_the_day_keeps_the_folder_of_the_first(scene) -> None:
    """`current.json` moves on in one step; what it named before lies there as it was."""
    first = scene.start("manual__1")
    old = scene.predict(first, KEYS, 0.25)
    scene.scoring.execute(first, "write", "clean_up")
    before = {uri: data for uri, data in scene.bucket.objects.items() if uri.startswith(old)}
    second = scene.start("manual__2", force=True)
    new = scene.predict(second, KEYS, 0.75)
    assert scene.current()["predictions"].startswith(old)
    scene.scoring.execute(second, "write", "clean_up")
    assert scene.current()["predictions"] == f"{new}/prediction.results-*"
    assert {uri: data for uri, data in scene.bucket.objects.items() if uri.startswith(old)} == before


OLD, NEW = "2013-11-20T03:00:00Z", "2013-11-20T05:00:00Z"


def test_older_answers_do_not_take_the_place_of_newer_ones(scene) -> None:
    """Refused before a job is paid for; cleared, a scoring that was overtaken has nothing to do."""
    newer, older = scene.start("manual__1", as_of=NEW), scene.start("manual__2", as_of=OLD)
    folder = scene.predict(newer, KEYS)
    scene.scoring.execute(newer, "write", "clean_up")
    with refuses(AirflowFailException, where="current.json", found=(f"as of {NEW}", f"as of {OLD}")):
        scene.scoring.execute(older, "plan", "snapshot")
    assert (scene.current()["predictions"], len(scene.jobs.specs)) == (f"{folder}/prediction.results-*", 1)


@pytest.mark.parametrize("other", [OLD, NEW], ids=["same time, Force", "newer"])
@pytest.mark.parametrize("look", [1, 2], ids=["before its look", "after its look"])
def test_a_write_that_outlived_its_run_names_nothing(scene, other: str, look: int) -> None:
    """It was stopped beside its look at `current.json`, while another run scored the day."""
    first, second = scene.start("manual__1", as_of=OLD), scene.start("manual__2", as_of=other, force=True)
    scene.predict(first, KEYS)
    read, looks = scene.bucket.read_generation, []

    def paused(uri: str) -> tuple[bytes, int]:
        found = read(uri)
        looks.append(uri)
        if uri == CURRENT:
            scene.bucket.read_generation = read
            scene.scoring.execute(first, "clean_up")
            folders.append(scene.predict(second, KEYS, 0.75))
            scene.scoring.execute(second, "write", "clean_up")
            found = found if look == 2 else read(uri)
        return found

    folders: list[str] = []
    scene.bucket.read_generation = paused
    with pytest.raises((ConflictError, AirflowFailException), match=r"newer|claim on"):
        scene.scoring.execute(first, "write")
    assert scene.current()["predictions"] == f"{folders[0]}/prediction.results-*"


def test_a_write_that_loses_its_claim_after_the_look_at_it_names_nothing(scene) -> None:
    """The other run has changed `current.json` by then."""
    first, second = scene.start("manual__1", as_of=OLD), scene.start("manual__2", as_of=OLD, force=True)
    scene.predict(first, KEYS)
    write, folders = scene.bucket.write_if, []

    def paused(uri: str, data: bytes, generation: int, *rest: str) -> int | None:
        if uri == CURRENT:
            scene.bucket.write_if = write
            scene.scoring.execute(first, "clean_up")
            folders.append(scene.predict(second, KEYS, 0.75))
            scene.scoring.execute(second, "write", "clean_up")
        return write(uri, data, generation, *rest)

    scene.bucket.write_if = paused
    with refuses(ConflictError, found="claim on the destination"):
        scene.scoring.execute(first, "write")
    assert scene.current()["predictions"] == f"{folders[0]}/prediction.results-*"


def test_what_the_destination_has_lost_is_named_again_without_a_job(scene) -> None:
    """The answers lie where the job wrote them."""
    run = scene.start()
    folder = scene.predict(run, KEYS)
    scene.scoring.execute(run, "write", "clean_up")
    scene.bucket.take(CURRENT)
    scene.scoring.execute(run, "snapshot", "predict", "write", "clean_up", max_tries=4)
    assert (scene.current()["predictions"], len(scene.jobs.specs)) == (f"{folder}/prediction.results-*", 1)


@pytest.mark.parametrize("data", [b"{}", b"[]", b"{", b'{"scored_as_of": 7}', b'{"scored_as_of": "noon"}'])
def test_a_foreign_object_in_the_place_of_current_json_is_left_alone(scene, data) -> None:
    """Nothing is paid for."""
    scene.bucket.put(CURRENT, data)
    with refuses(AirflowFailException, where="current.json", found="no record"):
        scene.scoring.execute(scene.start(), "plan", "snapshot")
    assert (scene.bucket.objects[CURRENT], scene.jobs.specs) == (data, [])


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_killed_at_any_write_and_run_again_answers_are_not_mixed(make_run, done) -> None:
    """After an earlier scoring of the day: at each moment the destination names all old answers or all new ones."""
    number = 0
    while True:
        number += 1
        scene = FilesScene(make_run)
        first = scene.start("manual__1")
        old = scene.predict(first, KEYS)
        scene.scoring.execute(first, "write", "clean_up")
        run, deaths, at = scene.start("manual__2", force=True), [], scene.bucket.changes + number

        def die(change: int, after: bool, at: int = at, deaths: list[int] = deaths) -> None:
            if change == at and after is done:
                deaths.append(change)
                raise Killed

        scene.bucket.around = die
        folders = []
        for task_id in ALL:
            for _ in range(5):
                try:
                    run.execute(scene.scoring.task(task_id))
                    break
                except AirflowRescheduleException:
                    scene.scoring.cloud.clock.sleep(600)
                    if len(scene.jobs.specs) == 2 and not folders:
                        folders.append(scene.answer(KEYS, 0.75))
                except Killed:
                    scene.scoring.cloud.clock.sleep(600)
                assert scene.current()["predictions"].rpartition("/")[0] in (old, *folders), number
            else:
                pytest.fail(f"{task_id} did not end after a death at write {number}")
        assert (len(scene.jobs.specs), len(folders)) == (2, 1), number
        assert scene.current()["predictions"] == f"{folders[0]}/prediction.results-*", number
        if not deaths:
            break
    assert number > 8
