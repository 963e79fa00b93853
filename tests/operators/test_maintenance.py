"""The daily cleaning on a bucket in memory: killed anywhere, raced by runs and exports, it never loses a span."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from fake_bucket import FakeBucket, Killed, nothing
from fake_cloud import FakeCloud

from retraining.core import names
from retraining.core.documents import KINDS, Maintenance, MaintenancePlan
from retraining.core.leftovers import Table
from retraining.hooks.vertex_jobs import Job
from retraining.operators import maintenance, sweep
from retraining.operators.maintenance import (
    CancelLeftJobsOperator,
    DeleteLeftoversOperator,
    FindLeftoversOperator,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "include" / "contracts" / "examples" / "valid"
NOW = datetime(2013, 12, 24, 12, 30, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=90)
MODEL, OTHER = "late", "later"
SCHEMA = "0123456789abcdef"
DAYS = ("2013-09-01", "2013-09-02", "2013-09-03")
OLD_RUN, CHAMPION, RECENT = (
    "20130904t030000z-000000000001",
    "20130905t030000z-000000000002",
    "20131223t030000z-000000000003",
)
FORM = {"dry_run": True, "min_age_days": 30, "models": [MODEL]}


@dataclasses.dataclass
class Scene:
    """A cloud, and one run of the DAG on it."""

    cloud: FakeCloud
    run: Any
    bucket: FakeBucket

    def look(self) -> dict[str, Any]:
        """First task."""
        return self.run.execute(FindLeftoversOperator(task_id="look"))

    def cancel(self) -> list[dict[str, Any]]:
        """Second."""
        return self._execute(CancelLeftJobsOperator(task_id="cancel_jobs"))

    def delete(self) -> dict[str, Any]:
        """Third."""
        return self._execute(DeleteLeftoversOperator(task_id="delete"))

    def clean(self) -> dict[str, Any]:
        """All of them."""
        self.look()
        self.cancel()
        return self.delete()

    def plan(self) -> MaintenancePlan:
        """What it meant to do."""
        return self._document(MaintenancePlan)

    def done(self) -> Maintenance:
        """What it did."""
        return self._document(Maintenance)

    def _execute(self, task: Any) -> Any:
        task.cleaning_uri = self.run.xcoms["look", "return_value"]["cleaning_uri"]
        return self.run.execute(task)

    def _document(self, kind: Any) -> Any:
        folder = self.run.xcoms["look", "return_value"]["cleaning_uri"]
        return kind.parse(self.bucket.objects[f"{folder}/{kind.kind_name()}.json"])


def folder(day: str, fingerprint: str = "1", model: str = MODEL) -> str:
    """A span's."""
    return f"gs://bucket/{model}/spans/{SCHEMA}/{day}/{fingerprint * 32}"


def put_span(bucket: FakeBucket, day: str, fingerprint: str = "1", model: str = MODEL, *, shards: int = 2) -> str:
    """Store a whole span: files, sidecars, and the marker last."""
    uri, part = folder(day, fingerprint, model), "golden" if day == "golden" else "train"
    files = []
    for shard in range(shards):
        name = f"{part}-{shard:05d}-of-{shards:05d}.tfrecord.gz"
        bucket.put(f"{uri}/{name}", b"x" * 50)
        bucket.put(f"{uri}/{name}.json", b"{}")
        digests = {"crc32c": "AAAAAA==", "sha256": "0" * 64}
        files.append({"part": part, "shard": shard, "file_name": name, "rows": 1, "bytes": 50, **digests})
    values = {"span": day, "fingerprint": fingerprint * 32, "schema_hash": SCHEMA, "files": files}
    bucket.put(
        f"{uri}/span.json", KINDS["span"].parse(json.dumps({"kind": "span", "schema_version": 1, **values})).to_bytes()
    )
    return uri


def example(name: str, **changes: Any) -> bytes:
    """A contract example with changes."""
    values = json.loads((EXAMPLES / f"{name}.json").read_text()) | changes
    return KINDS[values["kind"]].parse(json.dumps(values)).to_bytes()


def put_plan(bucket: FakeBucket, run_key: str, model: str = MODEL, *, start: str = "2013-09-01") -> str:
    """Store a run's plan, whose window begins on a day and ends ten later; gives the run's folder."""
    uri = f"gs://bucket/{model}/runs/{run_key}"
    first = datetime.fromisoformat(start).date()
    days = {"start": 0, "test_start": 8, "end": 10}
    window = {name: (first + timedelta(days=offset)).isoformat() for name, offset in days.items()}
    bucket.put(f"{uri}/plan.json", example("plan__scheduled", run_key=run_key, window=window))
    return uri


def put_run(
    bucket: FakeBucket, run_key: str, spans: dict[str, str], model: str = MODEL, *, golden: str | None = None
) -> None:
    """Store a finished run that used some spans."""
    uri = put_plan(bucket, run_key, model)
    reused = {"rows": 1, "action": "reuse", "because": "same fingerprint as stored"}
    used = [{"span": day, "fingerprint": fingerprint * 32} for day, fingerprint in spans.items()]
    work = golden and {"table": "p.d.t", "fingerprint": golden * 32, "shards": 1, **reused}
    taken = [{**span, "parts": [], "action": "reuse", "because": "same fingerprint as stored"} for span in used]
    bucket.put(
        f"{uri}/snapshot.json",
        example(
            "snapshot__three_new_spans",
            model=model,
            run_key=run_key,
            schema_hash=SCHEMA,
            spans_uri=f"gs://bucket/{model}/spans/{SCHEMA}",
            spans=taken,
            golden=work,
        ),
    )
    empty = {"rows": 0, "files": []}
    bucket.put(
        f"{uri}/manifest.json",
        example(
            "manifest__three_spans",
            model=model,
            run_key=run_key,
            schema_hash=SCHEMA,
            spans=[{**span, **reused} for span in used],
            splits={"train": empty, "validation": empty, "test": empty},
        ),
    )
    bucket.put(f"{uri}/deployment.json", example("deployment__nothing_changed", model=model, run_key=run_key))


@pytest.fixture
def make_scene(make_run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the same world each time: three days of examples, of which the first nobody refers to any more.

    The second is the champion's, the third last night's; an old run used all of them.
    """

    def make() -> Scene:
        cloud = FakeCloud()
        bucket = FakeBucket(now=LONG_AGO)
        cloud.artifacts = cloud.objects = bucket
        monkeypatch.setattr(maintenance, "Cloud", lambda: cloud)
        for day in DAYS:
            put_span(bucket, day)
        put_run(bucket, OLD_RUN, dict.fromkeys(DAYS, "1"))
        put_run(bucket, CHAMPION, {DAYS[1]: "1"})
        cloud.registry.add(CHAMPION, "champion")
        registered = cloud.registry.versions["1"]
        cloud.registry.versions["1"] = dataclasses.replace(
            registered, model_name=f"projects/p/locations/r/models/{MODEL}"
        )
        bucket.now = NOW - timedelta(days=1)
        put_run(bucket, RECENT, {DAYS[2]: "1"})
        bucket.now = NOW + timedelta(minutes=1)
        return Scene(cloud, make_daily_run(make_run), bucket)

    return make


def make_daily_run(make_run: Any, **changes: Any) -> Any:
    """A run by the schedule."""
    run = make_run(
        **{"dag_id": "maintain", "run_id": "scheduled__1", "run_type": "scheduled", "params": FORM, **changes}
    )
    run.run_after = NOW
    return run


@pytest.fixture
def scene(make_scene) -> Scene:
    """One of them."""
    return make_scene()


def whole(bucket: FakeBucket, uri: str) -> bool:
    """Whether a span has its marker and every file that it lists."""
    marker = bucket.objects.get(f"{uri}/span.json")
    return marker is not None and all(
        f"{uri}/{file['file_name']}" in bucket.objects for file in json.loads(marker)["files"]
    )


def no_half_span(bucket: FakeBucket) -> None:
    """No span has a marker and lacks a file."""
    for uri in [uri.removesuffix("/span.json") for uri in bucket.objects if uri.endswith("/span.json")]:
        assert whole(bucket, uri), uri


class TestWhatGoes:
    """The rule on real documents."""

    def test_what_nobody_refers_to_goes_and_the_rest_stays(self, scene, capsys) -> None:
        """And the document and the log say so."""
        result = scene.clean()
        assert not list(scene.bucket.walk(folder(DAYS[0])))
        assert whole(scene.bucket, folder(DAYS[1]))
        assert whole(scene.bucket, folder(DAYS[2]))
        (cleaned,) = scene.done().models
        assert {because: (kept.spans, kept.bytes > 200) for because, kept in cleaned.kept.items()} == {
            "alias": (1, True),
            "recent": (1, True),
        }
        assert [(span.uri, span.outcome) for span in cleaned.spans] == [(folder(DAYS[0]), "deleted")]
        assert result["freed_bytes"] == cleaned.freed_bytes == cleaned.spans[0].bytes > 100
        printed = capsys.readouterr().out
        assert "model  kept  deleted  MB   because" in printed
        assert "late   2     1        0.0  1 of a version with an alias, 1 of recent runs" in printed
        assert [kept.run_key for kept in scene.plan().models[0].kept_runs] == [CHAMPION, RECENT]

    def test_a_run_by_hand_only_says_what_would_go(self, scene, make_run, capsys) -> None:
        """Unless the form says otherwise."""
        before = dict(scene.bucket.objects)
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__1")
        scene.clean()
        assert {uri: data for uri, data in scene.bucket.objects.items() if "/maintenance/" not in uri} == before
        assert "Dry run: 1 span with 0.0 MB would go" in scene.done().words
        assert "dry run: nothing is deleted or cancelled" in capsys.readouterr().out
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__2", params={**FORM, "dry_run": False})
        scene.clean()
        assert not list(scene.bucket.walk(folder(DAYS[0])))

    def test_what_was_written_lately_stays(self, scene) -> None:
        """An export may be about to refer to it."""
        scene.bucket.now = NOW - timedelta(days=29)
        put_span(scene.bucket, "2013-09-09", "5")
        scene.clean()
        assert whole(scene.bucket, folder("2013-09-09", "5"))

    def test_exports_that_were_never_finished_go_too(self, scene) -> None:
        """Files without a marker, of a run that died."""
        scene.bucket.now = LONG_AGO
        uri = put_span(scene.bucket, "2013-09-09", "5")
        scene.bucket.take(f"{uri}/span.json")
        scene.clean()
        assert not list(scene.bucket.walk(uri))

    def test_frozen_sets_go_by_the_same_rule(self, scene) -> None:
        """One that a recent run used stays, one of an older query goes."""
        scene.bucket.now = LONG_AGO
        used, unused = put_span(scene.bucket, "golden", "6"), put_span(scene.bucket, "golden", "7")
        scene.bucket.now = NOW - timedelta(days=1)
        put_run(scene.bucket, "20131222t030000z-000000000004", {}, golden="6")
        scene.clean()
        assert whole(scene.bucket, used)
        assert not list(scene.bucket.walk(unused))

    def test_a_running_job_keeps_its_runs_spans(self, scene) -> None:
        """However old the run's documents are."""
        labels = {names.MODEL_LABEL: MODEL, names.RUN_LABEL: OLD_RUN, names.KEY_LABEL: "k"}
        scene.cloud.jobs.create({"labels": labels})
        scene.clean()
        assert all(whole(scene.bucket, folder(day)) for day in DAYS)

    def test_what_is_no_span_is_not_touched(self, scene) -> None:
        """It is counted."""
        scene.bucket.now = LONG_AGO
        scene.bucket.put(f"gs://bucket/{MODEL}/spans/notes.txt", b"mine")
        scene.clean()
        assert f"gs://bucket/{MODEL}/spans/notes.txt" in scene.bucket.objects
        assert scene.plan().models[0].foreign == 1


class TestRefusals:
    """When in doubt, nothing."""

    @pytest.mark.parametrize("kind", ["manifest", "snapshot", "plan"])
    def test_an_unreadable_document_of_a_kept_run_stops_its_model_by_name(self, scene, kind) -> None:
        """The other model is cleaned; the task fails for good and says what to mend."""
        scene.bucket.now = LONG_AGO
        put_span(scene.bucket, DAYS[0], model=OTHER)
        uri = f"gs://bucket/{MODEL}/runs/{RECENT}/{kind}.json"
        scene.bucket.put(uri, b'{"kind": "cut of')
        scene.bucket.now = NOW - timedelta(days=1)
        scene.bucket.put(f"gs://bucket/{MODEL}/runs/{RECENT}/deployment.json", b"{}")
        scene.run.params = {**FORM, "models": [MODEL, OTHER]}
        scene.look()
        scene.cancel()
        with pytest.raises(AirflowFailException, match=rf"nothing of {MODEL} is deleted: {uri}: not JSON"):
            scene.delete()
        assert all(whole(scene.bucket, folder(day)) for day in DAYS)
        assert not list(scene.bucket.walk(folder(DAYS[0], model=OTHER)))
        assert scene.done().words.endswith(f"Nothing of {MODEL} was deleted.")

    def test_a_document_that_breaks_between_look_and_delete_stops_it_too(self, scene) -> None:
        """The plan alone is not trusted."""
        scene.look()
        scene.cancel()
        scene.bucket.put(f"gs://bucket/{MODEL}/runs/{CHAMPION}/manifest.json", b"{")
        with pytest.raises(AirflowFailException, match=CHAMPION):
            scene.delete()
        assert all(whole(scene.bucket, folder(day)) for day in DAYS)

    def test_a_run_that_comes_unreadable_in_the_middle_stops_the_rest(self, scene) -> None:
        """The marker that was gone by then comes back."""

        def come(number: int, done: bool) -> None:
            if done and f"{folder(DAYS[0])}/span.json" not in scene.bucket.objects:
                scene.bucket.objects.setdefault(
                    f"gs://bucket/{MODEL}/runs/20131224t030000z-00000000000a/plan.json", b"{"
                )
                uri = f"gs://bucket/{MODEL}/runs/20131224t030000z-00000000000a/plan.json"
                if uri not in scene.bucket.found:
                    scene.bucket.put(uri, b"{")

        scene.look()
        scene.cancel()
        scene.bucket.around = come
        with pytest.raises(AirflowFailException, match="the rest of late is not deleted"):
            scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert scene.done().models[0].spans[0].outcome == "spared"

    def test_a_bad_age_is_refused_before_anything_is_asked(self, scene) -> None:
        """The form stops it; so does the task."""
        scene.run.params = {**FORM, "min_age_days": 1}
        with pytest.raises(AirflowFailException, match="Param min_age_days: 1"):
            scene.look()


class TestKilledAnywhere:
    """Each change of the bucket is the last one of a try."""

    @pytest.fixture
    def two_go(self, make_scene) -> Any:
        """Two spans go, one of them half."""

        def make() -> Scene:
            scene = make_scene()
            scene.bucket.now = LONG_AGO
            half = put_span(scene.bucket, "2013-09-09", "5")
            scene.bucket.take(f"{half}/span.json")
            scene.bucket.now = NOW + timedelta(minutes=1)
            scene.look()
            scene.cancel()
            return scene

        return make

    def test_the_next_try_goes_on(self, two_go) -> None:
        """Same end, same document, and never a half span that looks whole."""
        undisturbed = two_go()
        changes_before = undisturbed.bucket.changes
        undisturbed.delete()
        count = undisturbed.bucket.changes - changes_before
        assert count > 10
        for number in range(1, count + 1):
            for at_end in (False, True):
                scene = two_go()
                self.kill_at(scene, number, at_end=at_end)
                with pytest.raises(Killed):
                    scene.delete()
                no_half_span(scene.bucket)
                scene.bucket.around = nothing
                scene.delete()
                assert scene.bucket.objects.keys() == undisturbed.bucket.objects.keys(), (number, at_end)
                outcomes = [(span.uri, span.outcome, span.bytes) for span in scene.done().models[0].spans]
                assert outcomes == [(span.uri, span.outcome, span.bytes) for span in undisturbed.done().models[0].spans]

    def test_a_run_that_needs_it_meanwhile_gets_it_back_the_next_day(self, two_go, make_run) -> None:
        """The killed cleaning is never tried again; tomorrow's sees who refers to the span by now."""
        for number in range(1, 12):
            scene = two_go()
            self.kill_at(scene, number, at_end=True)
            with pytest.raises(Killed):
                scene.delete()
            scene.bucket.around = nothing
            deleted_files = sum(uri.startswith(folder(DAYS[0])) for uri in scene.bucket.objects) < 5
            put_run(scene.bucket, "20131224t030000z-00000000000b", {DAYS[0]: "1"})
            tomorrow = Scene(scene.cloud, make_daily_run(make_run, run_id="scheduled__2"), scene.bucket)
            tomorrow.run.run_after = NOW + timedelta(days=1)
            tomorrow.clean()
            assert whole(scene.bucket, folder(DAYS[0])) or deleted_files
            assert f"{folder(DAYS[0])}/deleted.json" not in scene.bucket.objects
            no_half_span(scene.bucket)

    @staticmethod
    def kill_at(scene: Scene, number: int, *, at_end: bool) -> None:
        """Let the process die at a change, before or after it took effect."""
        last = scene.bucket.changes + number

        def die(change: int, done: bool) -> None:
            no_half_span(scene.bucket)
            if change == last and done == at_end:
                raise Killed

        scene.bucket.around = die


class TestRaces:
    """What others do between the look and the deletion."""

    def test_a_span_that_was_exported_again_stays(self, scene) -> None:
        """Its marker has another generation."""
        scene.look()
        scene.cancel()
        put_span(scene.bucket, DAYS[0])
        scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert "exported again" in scene.done().models[0].spans[0].words

    def test_a_marker_that_is_replaced_in_the_last_moment_stays(self, scene) -> None:
        """After it was listed, before it is deleted."""
        scene.look()
        scene.cancel()

        def replace(number: int, done: bool) -> None:
            if not done and f"{folder(DAYS[0])}/deleted.json" not in scene.bucket.objects:
                scene.bucket.around = nothing
                put_span(scene.bucket, DAYS[0])

        scene.bucket.around = replace
        scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert f"{folder(DAYS[0])}/deleted.json" not in scene.bucket.objects

    def test_an_alias_that_comes_meanwhile_keeps_the_span(self, scene) -> None:
        """Somebody goes back to an old version."""
        scene.look()
        scene.cancel()
        version = dataclasses.replace(
            scene.cloud.registry.add(OLD_RUN, "previous"), model_name=f"projects/p/locations/r/models/{MODEL}"
        )
        scene.cloud.registry.versions["2"] = version
        scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert "previous" in scene.done().models[0].spans[0].words

    def test_a_run_that_comes_at_any_moment_finds_what_its_snapshot_saw(self, make_scene) -> None:
        """Its plan is written, then it looks at the store: a span that it finds whole stays whole."""
        undisturbed = make_scene()
        undisturbed.look()
        undisturbed.cancel()
        before = undisturbed.bucket.changes
        undisturbed.delete()
        seen = set()
        for number in range(1, undisturbed.bucket.changes - before + 1):
            for at_end in (False, True):
                scene = make_scene()
                scene.look()
                scene.cancel()
                reused = self.come_at(scene, scene.bucket.changes + number, at_end=at_end)
                scene.delete()
                assert reused
                seen.add(reused[0])
                if reused[0]:
                    assert whole(scene.bucket, folder(DAYS[0])), (number, at_end)
                no_half_span(scene.bucket)
        assert seen == {True, False}

    @staticmethod
    def come_at(scene: Scene, last: int, *, at_end: bool) -> list[bool]:
        """Let a run come at a change; the list says whether its snapshot found the span whole."""
        reused: list[bool] = []

        def come(change: int, done: bool) -> None:
            if change == last and done == at_end:
                put_plan(scene.bucket, "20131224t030000z-00000000000c")
                reused.append(f"{folder(DAYS[0])}/span.json" in scene.bucket.objects)

        scene.bucket.around = come
        return reused

    def test_an_export_in_the_very_seconds_of_the_deletion_leaves_no_half_span(self, scene, monkeypatch) -> None:
        """It finished the span from files that are gone by now: its marker does not stay."""
        monkeypatch.setattr(sweep, "LOOK_COUNTS_S", 1e9)  # nobody looks again
        scene.look()
        scene.cancel()
        marker = scene.bucket.objects[f"{folder(DAYS[0])}/span.json"]

        def finish(number: int, done: bool) -> None:
            files = [uri for uri in scene.bucket.objects if uri.startswith(folder(DAYS[0])) and uri.endswith(".gz")]
            if done and len(files) == 1 and f"{folder(DAYS[0])}/span.json" not in scene.bucket.objects:
                scene.bucket.put(f"{folder(DAYS[0])}/span.json", marker)

        scene.bucket.around = finish
        scene.delete()
        no_half_span(scene.bucket)
        assert "its marker is withdrawn" in scene.done().models[0].spans[0].words

    def test_it_looks_again_when_a_look_is_old(self, scene, monkeypatch) -> None:
        """A large span takes longer than a look counts."""
        looks = []
        real = sweep.ModelRuns.look_again
        monkeypatch.setattr(sweep.ModelRuns, "look_again", lambda runs: (looks.append(1), real(runs))[1])
        monkeypatch.setattr(sweep, "BATCH", 1)
        monkeypatch.setattr(sweep, "LOOK_COUNTS_S", -1.0)
        scene.clean()
        assert len(looks) == 1 + 4  # after the marker, and before each of two files and two sidecars


class TestLitter:
    """Small objects without an owner."""

    def test_old_wakes_and_pieces_of_uploads_go(self, scene) -> None:
        """A wake that is saved again while they go stays."""
        pieces = "gcloud/tmp/parallel_composite_uploads"
        scene.bucket.now = LONG_AGO
        for uri in ("wakes/old.json", "wakes/saved.json", f"{pieces}/see/abc", "packages/trainer-1.tar.gz"):
            scene.bucket.put(f"gs://bucket/{uri}", b"0123456789")
        scene.bucket.now = NOW - timedelta(days=1)
        scene.bucket.put("gs://bucket/wakes/young.json", b"{}")

        def save(number: int, done: bool) -> None:
            if done and "gs://bucket/wakes/old.json" not in scene.bucket.objects:
                scene.bucket.around = nothing
                scene.bucket.put("gs://bucket/wakes/saved.json", b"{}")

        scene.look()
        scene.cancel()
        scene.bucket.around = save
        scene.delete()
        left = {uri.removeprefix("gs://bucket/") for uri in scene.bucket.objects if MODEL not in uri}
        assert {uri for uri in left if not uri.startswith("maintenance/")} == {
            "wakes/saved.json",
            "wakes/young.json",
            "packages/trainer-1.tar.gz",
        }
        assert {(item.what, item.deleted) for item in scene.done().litter} == {
            ("wakes", 1),
            ("uploads", 1),
            ("uploads", 0),
        }

    def test_run_tables_without_an_end_are_reported(self, scene) -> None:
        """Only said."""
        scene.cloud.warehouse.tables = [Table(name="p.d.run_late__20131120t030000z_0123456789ab", expires=None)]
        scene.clean()
        assert "no expiration" in scene.done().tables[0].words


class TestJobs:
    """Jobs whose run is over."""

    @pytest.fixture
    def make_job(self, scene) -> Any:
        """Makes a job of a run that was created some days ago, in either service."""

        def make(run_key: str, kind: str = "customJobs", days: float = 3) -> str:
            name = f"projects/p/locations/r/{kind}/{len(scene.cloud.jobs.jobs) + 1}"
            labels = {
                names.MODEL_LABEL: MODEL,
                names.RUN_LABEL: run_key,
                names.KEY_LABEL: f"key{len(scene.cloud.jobs.jobs)}",
            }
            scene.cloud.jobs.jobs[name] = Job(
                name=name, state="JOB_STATE_RUNNING", labels=labels, created=NOW - timedelta(days=days)
            )
            return name

        return make

    def test_jobs_of_a_run_with_an_outcome_end(self, scene, make_job) -> None:
        """Custom and tuning jobs; one that is no run's is nobody's business here."""
        jobs = [make_job(RECENT), make_job(RECENT, "hyperparameterTuningJobs")]
        foreign = make_job("somebody-elses")
        scene.clean()
        assert scene.cloud.jobs.cancelled == jobs
        assert scene.cloud.jobs.jobs[foreign].active
        assert [job.outcome for job in scene.done().jobs] == ["cancelled", "cancelled"]

    def test_a_retry_cancels_nothing_twice(self, scene, make_job) -> None:
        """The first try's cancellation stands in the document."""
        make_job(RECENT)
        scene.look()
        scene.cancel()
        assert scene.cancel()[0]["outcome"] == "cancelled"
        assert len(scene.cloud.jobs.cancelled) == 1

    def test_a_silent_job_of_an_unfinished_run_ends_on_the_second_day(self, scene, make_job, make_run) -> None:
        """And not when its task looked at it between."""
        run_key = "20131221t030000z-00000000000d"
        put_plan(scene.bucket, run_key)
        silent, looked_at = make_job(run_key), make_job(run_key)
        scene.clean()
        assert scene.cloud.jobs.cancelled == []
        scene.bucket.now = NOW + timedelta(hours=20)
        key = scene.cloud.jobs.jobs[looked_at].labels[names.KEY_LABEL]
        scene.bucket.put(names.wake_uri("bucket", key), b"{}")
        tomorrow = Scene(scene.cloud, make_daily_run(make_run, run_id="scheduled__2"), scene.bucket)
        tomorrow.run.run_after = NOW + timedelta(days=1)
        tomorrow.clean()
        assert scene.cloud.jobs.cancelled == [silent]

    def test_a_job_that_somebody_looks_at_again_is_left(self, scene, make_job) -> None:
        """Between the look and the cancellation."""
        name = make_job(RECENT)
        scene.look()
        scene.bucket.put(names.wake_uri("bucket", scene.cloud.jobs.jobs[name].labels[names.KEY_LABEL]), b"{}")
        assert scene.cancel()[0]["outcome"] == "left"
        assert scene.cloud.jobs.cancelled == []

    def test_a_dry_run_cancels_nothing(self, scene, make_job, make_run) -> None:
        """It says which it would."""
        make_job(RECENT)
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__1")
        scene.clean()
        assert scene.cloud.jobs.cancelled == []
        assert "1 job would be cancelled" in scene.done().words


def test_a_cleared_cleaning_takes_what_it_wrote(scene) -> None:
    """Nothing is looked at or deleted a second time."""
    first = scene.clean()
    scene.bucket.now = LONG_AGO
    put_span(scene.bucket, "2013-09-09", "5")
    assert scene.clean() == first
    assert whole(scene.bucket, folder("2013-09-09", "5"))
