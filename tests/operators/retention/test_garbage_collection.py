"""The daily cleaning on a bucket in memory: what goes, what is refused, jobs and small objects."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.jobs.job import Job
from retraining.core.jobs.machine_pools import pool_labels, pool_request
from retraining.core.naming import storage, vertex
from retraining.core.retention.jobs_and_tables import Table
from retraining.operators.retention import survey
from tests.support import small_rollout
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.bucket import nothing
from tests.support.refusals import refuses
from tests.support.scenes import garbage_collection
from tests.support.scenes.garbage_collection import (
    CHAMPION,
    DAYS,
    FORM,
    LONG_AGO,
    MODEL,
    NOW,
    OLD_RUN,
    OTHER,
    RECENT,
    Scene,
    add_version,
    folder,
    make_daily_run,
    make_world,
    put_plan,
    put_run,
    put_span,
    whole,
)
from tests.support.small_pool import make_pool, write_pool


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

    def test_it_looks_where_earlier_releases_had_spans_too(self, make_run, monkeypatch) -> None:
        """A champion of then keeps its own there; what nobody refers to goes there too, and each is judged alone."""
        monkeypatch.setattr(garbage_collection, "STORE", garbage_collection.EARLIER_STORE)
        cloud, bucket = make_world()
        scene = Scene(cloud, make_daily_run(make_run), bucket)
        earlier = [folder(day) for day in DAYS]
        monkeypatch.undo()
        scene.bucket.now = LONG_AGO
        copied = [put_span(scene.bucket, day) for day in DAYS]
        put_run(scene.bucket, OLD_RUN, {})
        scene.bucket.now = NOW + timedelta(minutes=1)
        scene.clean()
        assert [whole(scene.bucket, uri) for uri in earlier] == [False, True, True]
        # Their manifests say which spans of which schema, so the copies of kept ones are kept as well.
        assert [whole(scene.bucket, uri) for uri in copied] == [False, True, True]
        assert sorted(span.uri for span in scene.done().models[0].spans) == sorted([earlier[0], copied[0]])

    def test_a_run_by_hand_only_says_what_would_go(self, scene, make_run, capsys) -> None:
        """Unless the form says otherwise."""
        before = dict(scene.bucket.objects)
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__1")
        scene.clean()
        assert {uri: data for uri, data in scene.bucket.objects.items() if "/maintenance/" not in uri} == before
        assert "Dry run: 1 span" in scene.done().message
        assert "dry run: nothing" in capsys.readouterr().out
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__2", params={**FORM, "dry_run": False})
        scene.clean()
        assert not list(scene.bucket.walk(folder(DAYS[0])))

    def test_a_walk_forward_keeps_its_spans_as_a_run_does(self, scene) -> None:
        """One at work says so by its lease; a version may have the key of an old run, of whose folder nothing is."""
        key = "20131222t000000z-0123456789ab"
        scene.bucket.now = NOW
        put_run(scene.bucket, key, {DAYS[0]: "1"})
        for name in ("plan", "snapshot", "manifest"):
            uri = f"gs://bucket/{MODEL}/runs/{key}/{name}.json"
            walked = f"gs://bucket/{MODEL}/walk_forward/{key}/{name}.json"
            scene.bucket.put(walked, scene.bucket.objects[uri])
        for name in ("plan", "snapshot", "manifest", "deployment"):
            del scene.bucket.objects[f"gs://bucket/{MODEL}/runs/{key}/{name}.json"]
        scene.clean()
        assert f"{folder(DAYS[0])}/span.json" in scene.bucket.objects

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
        labels = {vertex.MODEL_LABEL: MODEL, vertex.RUN_LABEL: OLD_RUN, vertex.KEY_LABEL: "k"}
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
        assert scene.done().message.endswith(f"Nothing of {MODEL} was deleted.")

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
        with refuses(AirflowFailException, found="rest of late"):
            scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert scene.done().models[0].spans[0].outcome == "spared"

    def test_a_bad_age_is_refused_before_anything_is_asked(self, scene) -> None:
        """The form stops it; so does the task."""
        scene.run.params = {**FORM, "min_age_days": 1}
        with pytest.raises(AirflowFailException, match="Param min_age_days: 1"):
            scene.look()

    def test_a_misspelt_param_is_refused(self, scene) -> None:
        """Airflow takes any name; `min_age_day` would leave the age as it is."""
        scene.run.params = {**FORM, "min_age_day": 90}
        with refuses(AirflowFailException, found="'min_age_day'", way_out="'min_age_days'"):
            scene.look()


class TestLitter:
    """Small objects without an owner."""

    def test_old_folders_of_scorings_go(self, scene) -> None:
        """Their answers are in their table; those of a model that was not chosen stay."""
        for moment, day in ((LONG_AGO, 1), (NOW - timedelta(days=1), 23)):
            scene.bucket.now = moment
            for model in (MODEL, "another"):
                scene.bucket.put(f"gs://bucket/{model}/scoring/201312{day:02}t030000z-0123456789ab/plan.json", b"{}")
        scene.look()
        scene.cancel()
        scene.delete()
        left = sorted(uri for uri in scene.bucket.objects if "/scoring/" in uri)
        assert [uri.split("/")[3] + uri.split("/")[5][:8] for uri in left] == [
            "another20131201",
            "another20131223",
            f"{MODEL}20131223",
        ]
        assert ("scorings", 1) in {(item.what, item.deleted) for item in scene.done().litter}

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
            "environment.txt",
            "wakes/saved.json",
            "wakes/young.json",
            "packages/trainer-1.tar.gz",
        }
        assert {(item.what, item.deleted) for item in scene.done().litter} == {
            ("wakes", 1),
            ("leases", 0),
            ("uploads", 1),
            ("uploads", 0),
            ("scorings", 0),
        }

    def test_run_tables_without_an_end_are_reported(self, scene) -> None:
        """Only said."""
        scene.cloud.warehouse.tables = [
            Table(name="p.retraining.run_late__20131120t030000z_0123456789ab", expires=None)
        ]
        scene.clean()
        assert "no expiration" in scene.done().tables[0].message


class TestJobs:
    """Jobs whose run is over."""

    @pytest.fixture
    def make_job(self, scene) -> Any:
        """Makes a job of a run that was created some days ago, in either service."""

        def make(run_key: str, kind: str = "customJobs", days: float = 3) -> str:
            name = f"projects/p/locations/r/{kind}/{len(scene.cloud.jobs.jobs) + 1}"
            labels = {
                vertex.MODEL_LABEL: MODEL,
                vertex.RUN_LABEL: run_key,
                vertex.KEY_LABEL: f"key{len(scene.cloud.jobs.jobs)}",
            }
            scene.cloud.jobs.jobs[name] = Job(
                name=name,
                state="JOB_STATE_RUNNING",
                labels=labels,
                created=NOW - timedelta(days=days),
                folder_uri=f"gs://bucket/{MODEL}/runs/{run_key}/training",
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
        key = scene.cloud.jobs.jobs[looked_at].labels[vertex.KEY_LABEL]
        scene.bucket.put(storage.poke_uri("bucket", key), b"{}")
        tomorrow = Scene(scene.cloud, make_daily_run(make_run, run_id="scheduled__2"), scene.bucket)
        tomorrow.run.run_after = NOW + timedelta(days=1)
        tomorrow.clean()
        assert scene.cloud.jobs.cancelled == [silent]

    def test_a_job_that_somebody_looks_at_again_is_left(self, scene, make_job) -> None:
        """Between the look and the cancellation."""
        name = make_job(RECENT)
        scene.look()
        scene.bucket.put(storage.poke_uri("bucket", scene.cloud.jobs.jobs[name].labels[vertex.KEY_LABEL]), b"{}")
        assert scene.cancel()[0]["outcome"] == "left"
        assert scene.cloud.jobs.cancelled == []

    def test_a_dry_run_cancels_nothing(self, scene, make_job, make_run) -> None:
        """It says which it would."""
        make_job(RECENT)
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__1")
        scene.clean()
        assert scene.cloud.jobs.cancelled == []
        assert "1 job would be cancelled" in scene.done().message


def test_a_cleared_cleaning_takes_what_it_wrote(scene) -> None:
    """Nothing is looked at or deleted a second time."""
    first = scene.clean()
    scene.bucket.now = LONG_AGO
    put_span(scene.bucket, "2013-09-09", "5")
    assert scene.clean() == first
    assert whole(scene.bucket, folder("2013-09-09", "5"))


class TestVersions:
    """Old versions of the registry."""

    @pytest.fixture
    def versions(self, scene) -> dict[str, Any]:
        """Six of ended runs, beside the champion's; the form keeps the three newest."""
        scene.run.params = {**FORM, "keep_versions": 3}
        keys = [f"201309{day}t030000z-0000000000{day}" for day in range(10, 16)]
        scene.bucket.now = LONG_AGO
        for key in keys:
            put_run(scene.bucket, key, {})
            add_version(scene.cloud, key)
        scene.bucket.now = NOW + timedelta(minutes=1)
        return {version.run_key: version for version in scene.cloud.registry.versions.values()}

    def numbers(self, scene) -> list[str]:
        """Of the versions that are there."""
        return sorted(scene.cloud.registry.versions)

    def test_old_ones_that_nothing_points_to_go(self, scene, versions) -> None:
        """The champion and the newest stay; plan, document and log say which went."""
        scene.clean()
        assert self.numbers(scene) == ["1", "5", "6", "7"]
        assert [found.version_name.rpartition("@")[2] for found in scene.plan().versions] == ["2", "3", "4"]
        assert {item.outcome for item in scene.done().versions} == {"deleted"}
        assert "3 versions" in scene.done().message
        assert "registry deleted" in scene.done().message

    def test_a_dry_run_deletes_none(self, scene, make_run, versions) -> None:
        """It names them."""
        scene.run = make_daily_run(make_run, run_type="manual", run_id="manual__1", params={**FORM, "keep_versions": 3})
        scene.clean()
        assert len(self.numbers(scene)) == 7
        assert "3 versions" in scene.done().message
        assert "would be deleted" in scene.done().message

    def test_what_somebody_points_to_since_stays(self, scene, versions) -> None:
        """An alias, a deployment, a run that was cleared; the others go."""
        scene.look()
        scene.cancel()
        second, third, fourth = (scene.cloud.registry.versions[number] for number in ("2", "3", "4"))
        scene.cloud.registry.merge_aliases(second, ["mine"])
        endpoint = scene.cloud.endpoints.ensure(MODEL, "t", {})
        scene.cloud.endpoints.by_name[endpoint.name] = replace(endpoint, deployed={"1": third.version_name})
        scene.bucket.put(storage.lease_uri("bucket", MODEL, fourth.run_key), b"{}")
        scene.delete()
        assert len(self.numbers(scene)) == 7
        assert [item.message.rpartition(" ")[2] for item in scene.done().versions] == ["mine", "deployed", "again"]

    def test_a_change_of_the_champion_that_begins_in_the_middle_stops_the_rest(self, scene, versions) -> None:
        """Rollout.json is looked at before each deletion."""
        scene.look()
        scene.cancel()
        registry = scene.cloud.registry
        real = registry.delete_version

        def delete(version: Any) -> bool:
            scene.bucket.put(storage.rollout_uri("bucket", MODEL), small_rollout.rollout().to_bytes())
            return real(version)

        registry.delete_version = delete
        scene.delete()
        assert self.numbers(scene) == ["1", "3", "4", "5", "6", "7"]
        outcomes = [(item.outcome, item.message) for item in scene.done().versions]
        assert outcomes[1:] == [("left", "the model's champion is being changed")] * 2

    def test_a_run_without_an_outcome_keeps_its_version(self, scene, versions) -> None:
        """It may wait for a person."""
        scene.bucket.now = NOW - timedelta(days=1)
        put_plan(scene.bucket, "20130911t030000z-000000000011")
        scene.bucket.take(f"gs://bucket/{MODEL}/runs/20130911t030000z-000000000011/deployment.json")
        scene.bucket.now = NOW + timedelta(minutes=1)
        scene.clean()
        assert self.numbers(scene) == ["1", "3", "5", "6", "7"]


class TestPools:
    """Machines that a run of their DAG should have deleted, and that are paid for."""

    @pytest.fixture
    def pool(self, scene, monkeypatch, tmp_path) -> str:
        """One that runs, whose end was two hours ago."""
        write_pool(tmp_path)
        monkeypatch.setattr(survey, "include_path", lambda: tmp_path)
        labels = pool_labels(make_pool(), NOW - timedelta(hours=6))
        scene.cloud.machine_pools.create("left", pool_request(make_pool(), labels, own_accounts=False))
        scene.cloud.machine_pools.run("left")
        return "left"

    def test_what_outlived_its_end_is_deleted(self, scene, pool) -> None:
        """And the document says so."""
        scene.clean()
        assert scene.cloud.machine_pools.find(pool).state == "STOPPING"
        assert [(each.pool_id, each.outcome) for each in scene.done().machine_pools] == [(pool, "deleted")]
        assert "1 pool of machines deleted" in scene.done().message

    def test_one_that_is_open_or_was_made_anew_stays(self, scene, pool) -> None:
        """Also between the look and the act."""
        scene.look()
        labels = pool_labels(make_pool(), NOW - timedelta(hours=1))
        scene.cloud.machine_pools.vanish(pool)
        scene.cloud.machine_pools.create(pool, pool_request(make_pool(), labels, own_accounts=False))
        scene.cloud.machine_pools.run(pool)
        scene.clean()
        assert scene.cloud.machine_pools.find(pool).state == "RUNNING"
        assert [each.outcome for each in scene.done().machine_pools] == ["left"]

    def test_nobody_is_asked_for_pools_where_no_file_names_one(self, scene) -> None:
        """The account needs no right to it."""
        scene.cloud.machine_pools = None
        scene.clean()
        assert scene.done().machine_pools == ()
