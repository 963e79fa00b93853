"""Deleting spans: killed at any change and raced by runs and exports, none is lost that somebody needs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from cleaning_scene import (
    DAYS,
    LONG_AGO,
    NOW,
    OLD_RUN,
    Scene,
    add_version,
    folder,
    make_daily_run,
    no_half_span,
    put_plan,
    put_run,
    put_span,
    whole,
)
from fake_bucket import Killed, nothing

from retraining.operators import sweep


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
        add_version(scene.cloud, OLD_RUN, "previous")
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
