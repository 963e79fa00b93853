"""Deleting spans: killed at any change and raced by runs and exports, none is lost that somebody needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator

from retraining.core.documents import KINDS, Document
from retraining.core.errors import DataError
from retraining.operators.record.ownership import leased_spans_exist
from retraining.operators.record.run_record import Record
from tests.support.fakes.bucket import Killed, nothing
from tests.support.scenes.garbage_collection import (
    DAYS,
    LONG_AGO,
    MODEL,
    NOW,
    OLD_RUN,
    SCHEMA,
    STORE,
    Scene,
    add_version,
    example,
    folder,
    make_daily_run,
    no_half_span,
    put_plan,
    put_run,
    put_span,
    whole,
)


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
        assert "exported again" in scene.done().models[0].spans[0].message

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
        add_version(scene.cloud, OLD_RUN, "previous")
        scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert "previous" in scene.done().models[0].spans[0].message

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

    def test_a_cleared_old_run_finds_its_spans_or_waits_whenever_it_comes(self, make_scene, make_run) -> None:
        """A job is paid for only when its span stays; one that comes too late waits, and is then told what is gone."""
        seen = set()
        for scene, moment in self.at_every_change(make_scene):
            said: list[Any] = []

            def come(scene: Scene = scene, said: list[Any] = said) -> None:
                said.append(self.ask(scene, make_run, train_request()))

            moment(come)
            scene.delete()
            seen.add(said[0])
            if said[0] is False:
                said.append(self.ask(scene, make_run, train_request()))
            assert said[-1] is whole(scene.bucket, folder(DAYS[0])), said
            no_half_span(scene.bucket)
        assert seen == {True, False}

    def test_an_export_and_the_deletion_never_work_on_one_folder(self, make_scene, make_run) -> None:
        """An export that may begin keeps the files that are there: none of them goes afterwards."""
        seen = set()
        for scene, moment in self.at_every_change(make_scene):
            said: list[Any] = []

            def come(scene: Scene = scene, said: list[Any] = said) -> None:
                said.append(self.ask(scene, make_run, export_request()))
                if said[-1]:
                    export(scene)

            moment(come)
            scene.delete()
            seen.add(said[0])
            if said[0] is False:
                come()
            assert said[-1]
            assert whole(scene.bucket, folder(DAYS[0]))
        assert seen == {True, False}

    def test_a_span_of_a_run_that_renewed_its_lease_in_the_meantime_stays(self, scene, make_run) -> None:
        """Between the look and the deletion; the record says whose it is."""
        scene.look()
        scene.cancel()
        scene.bucket.now = NOW + timedelta(hours=3)
        assert self.ask(scene, make_run, train_request())
        scene.delete()
        assert whole(scene.bucket, folder(DAYS[0]))
        assert {kept.reason for kept in scene.plan().models[0].kept_runs} == {"alias", "recent"}
        assert scene.done().models[0].spans[0].message == f"run {OLD_RUN} needs it: it was last at work on 2013-12-24"

    def test_a_marker_that_comes_from_elsewhere_during_the_deletion_leaves_no_half_span(self, scene) -> None:
        """Written by somebody who asked nobody, over files that are gone by now: it does not stay."""
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
        assert "its marker is withdrawn" in scene.done().models[0].spans[0].message

    @staticmethod
    def at_every_change(make_scene: Any) -> Iterator[tuple[Scene, Callable[[Callable[[], None]], None]]]:
        """Scenes before the deletion, and for each how to let something happen at one of its changes."""
        undisturbed = make_scene()
        undisturbed.look()
        undisturbed.cancel()
        before = undisturbed.bucket.changes
        undisturbed.delete()
        for number in range(1, undisturbed.bucket.changes - before + 1):
            for at_end in (False, True):
                scene = make_scene()
                scene.look()
                scene.cancel()
                last = scene.bucket.changes + number

                def moment(
                    event: Callable[[], None], scene: Scene = scene, last: int = last, at_end: bool = at_end
                ) -> None:
                    def around(change: int, done: bool) -> None:
                        if change == last and done == at_end:
                            scene.bucket.around = nothing
                            event()

                    scene.bucket.around = around

                yield scene, moment

    @staticmethod
    def ask(scene: Scene, make_run: Any, request: Document) -> bool:
        """Whether a task of the old run may create its job; False also when it is told that the span is gone."""
        record = Record(scene.bucket, f"gs://bucket/{MODEL}/runs/{OLD_RUN}")
        context = make_run().context(EmptyOperator(task_id="train"))
        try:
            return leased_spans_exist(scene.cloud, record, request, context)
        except DataError as error:
            return "span.json: no such object" not in str(error) or "Param force" not in str(error)


def train_request() -> Document:
    """What the old run's training reads; its manifest names the files."""
    return KINDS["train_request"].parse(example("train_request__defaults", model=MODEL, run_key=OLD_RUN))


def export_request() -> Document:
    """An export of the old run that writes the doomed span."""
    spans_uri = f"{STORE.format(MODEL)}/{SCHEMA}"
    span = {"span": DAYS[0], "fingerprint": "1" * 32, "parts": [], "action": "export", "because": "not stored yet"}
    changes = {"model": MODEL, "run_key": OLD_RUN, "spans_uri": spans_uri, "schema_hash": SCHEMA, "spans": [span]}
    return KINDS["export_request"].parse(example("export_request__two_new_spans", **changes))


def export(scene: Scene) -> None:
    """The job: what is there is kept, the rest is written, the marker last."""
    there = dict(scene.bucket.found)
    put_span(scene.bucket, DAYS[0])
    for uri, item in there.items():
        scene.bucket.found[uri] = item
