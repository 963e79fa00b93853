"""What the daily cleaning may delete: never what somebody refers to, never what is young; and all the rest."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retraining.core import documents
from retraining.core.data.span_store import StoredObject, StoredSpan, read_spans
from retraining.core.documents.export import ManifestFile, ManifestSpan, ManifestSplit
from retraining.core.documents.retention import KeptRun
from retraining.core.documents.snapshot import Column, GoldenWork, PartWork, SpanWork
from retraining.core.errors import ContractError, PlanError
from retraining.core.naming import storage
from retraining.core.naming.spans import place_of
from retraining.core.retention.spans import Claims, Limits, References, RunFolder, kept_runs, survey_spans
from tests.support.refusals import refuses
from tests.support.small_model import make_plan

AS_OF = datetime(2013, 12, 24, 12, 30, tzinfo=UTC)
LIMITS = Limits(as_of=AS_OF, min_age_days=30)
BUCKET, MODEL = "my-retraining", "late"
ROOT = storage.spans_roots(BUCKET, BUCKET, MODEL)[0]
SCHEMAS = ("0" * 16, "a" * 16)
FINGERPRINTS = tuple(digit * 32 for digit in "012")
DAYS = tuple(date(2013, 11, 10) + timedelta(days=number) for number in range(6))
KEYS = tuple(f"201311{10 + number}t030000z-{number:012x}" for number in range(4))
PLAN = make_plan()
PARTS = (PartWork(part="train", rows=1, shards=1),)
NO_DOCUMENTS = (None, None, None, None, None)


def run(key: str = KEYS[0], because: str = "recent") -> KeptRun:
    """A kept run."""
    return KeptRun(run_key=key, reason=because, message="it is kept")


def manifest(schema: str, spans: dict[str, str], golden: str | None = None, key: str = KEYS[0]) -> documents.Manifest:
    """A manifest of days and their fingerprints: even days in its files, the others only in its list of spans."""

    def file(span: str, fingerprint: str) -> ManifestFile:
        part = "golden" if span == "golden" else "train"
        uri = f"{ROOT}/{schema}/{span}/{fingerprint}/{part}-00000-of-00001.tfrecord.gz"
        digests = {"crc32c": "AAAAAA==", "sha256": "0" * 64}
        return ManifestFile(
            uri=uri,
            span="golden" if span == "golden" else date.fromisoformat(span),
            part=part,
            rows=1,
            bytes=1,
            **digests,
        )

    files = tuple(file(span, fingerprint) for span, fingerprint in spans.items() if int(span[-1]) % 2 == 0)
    splits = {
        "train": ManifestSplit(rows=len(files), files=files),
        "validation": ManifestSplit(rows=0, files=()),
        "test": ManifestSplit(rows=0, files=()),
    }
    if golden:
        splits["golden"] = ManifestSplit(rows=1, files=(file("golden", golden),))
    return documents.Manifest(
        model=MODEL,
        run_key=key,
        schema_hash=schema,
        compression="GZIP",
        schema=(Column(name="x", type="STRING", mode="NULLABLE"),),
        table="p.d.t",
        splits=splits,
        spans=tuple(
            ManifestSpan(span=date.fromisoformat(span), fingerprint=fingerprint, rows=1, action="export", reason="new")
            for span, fingerprint in spans.items()
        ),
        exported_rows=1,
        exported_bytes=1,
        seconds=1.0,
    )


def snapshot(schema: str, spans: dict[str, str], golden: str | None = None, key: str = KEYS[0]) -> documents.Snapshot:
    """A snapshot that reuses days, and a frozen set."""
    work = (
        GoldenWork(table="p.d.g", fingerprint=golden, rows=1, shards=1, action="reuse", reason="same")
        if golden
        else None
    )
    return documents.Snapshot(
        model=MODEL,
        run_key=key,
        table="p.d.t",
        bytes_processed=0,
        schema=(Column(name="x", type="STRING", mode="NULLABLE"),),
        schema_hash=schema,
        spans_uri=f"{ROOT}/{schema}",
        spans=tuple(
            SpanWork(span=date.fromisoformat(span), fingerprint=fingerprint, parts=PARTS, action="reuse", reason="same")
            for span, fingerprint in spans.items()
        ),
        golden=work,
    )


def stored(schema: str, span: str, fingerprint: str, age_days: float, **changes: object) -> StoredSpan:
    """A whole span in the store, last written so many days before the cleaning."""
    place = place_of(f"{ROOT}/{schema}/{span}/{fingerprint}", ROOT)
    assert place is not None
    values = {
        "place": place,
        "objects": 3,
        "bytes": 100,
        "newest": AS_OF - timedelta(days=age_days),
        "marker": 1,
        "tombstone": False,
    }
    return StoredSpan(**{**values, **changes})


def references(*held: tuple[KeptRun, tuple]) -> References:
    """References of runs."""
    made = References(BUCKET, BUCKET, MODEL)
    for kept, its_documents in held:
        made.add(kept, its_documents)
    return made


def deleted(spans: list[StoredSpan], refer: References, **options: int) -> list[str]:
    """Addresses of what goes, below the store."""
    found = survey_spans(MODEL, spans, refer, (), LIMITS, runs=0, **options)
    return [span.uri.removeprefix(f"{ROOT}/") for span in found.delete]


class TestKeptRuns:
    """Which runs count."""

    def keep(self, age_days: float, *, ended: bool = True, claims: Claims | None = None) -> str | None:
        """Why a run of some age is kept."""
        found = RunFolder(run_key=KEYS[0], newest=AS_OF - timedelta(days=age_days), ended=ended)
        kept = kept_runs([found], claims or Claims(), LIMITS)
        return kept[0].reason if kept else None

    @pytest.mark.parametrize(
        ("age_days", "ended", "because"),
        [
            (29.9, True, "recent"),
            (30.1, True, None),
            (30.1, False, "unfinished"),
            (59.9, False, "unfinished"),
            (60.1, False, None),
        ],
    )
    def test_by_age(self, age_days, ended, because) -> None:
        """By the newest document, not by the time in the key: a backfill is of the past and of today."""
        assert self.keep(age_days, ended=ended) == because

    def test_claims_hold_runs_of_any_age(self) -> None:
        """An alias, the endpoint, a job: in this order."""
        words = {KEYS[0]: "said"}
        assert self.keep(999, claims=Claims(running=words)) == "running"
        assert self.keep(999, claims=Claims(serving=words, running=words)) == "serving"
        assert self.keep(999, claims=Claims(alias=words, serving=words, running=words)) == "alias"

    def test_a_claim_without_a_folder_is_kept(self) -> None:
        """So that its missing manifest is noticed."""
        assert [item.run_key for item in kept_runs([], Claims(alias={KEYS[1]: "said"}), LIMITS)] == [KEYS[1]]


class TestReferences:
    """What documents refer to."""

    def test_a_manifests_files_and_spans_stay(self) -> None:
        """Also days that are in no file, as with `training.input: bigquery`; the frozen set too."""
        refer = references(
            (
                run(),
                (
                    None,
                    None,
                    None,
                    manifest(SCHEMAS[0], {"2013-11-10": "0" * 32, "2013-11-11": "1" * 32}, "2" * 32),
                    None,
                ),
            )
        )
        spans = [
            stored(SCHEMAS[0], "2013-11-10", "0" * 32, 99),
            stored(SCHEMAS[0], "2013-11-10", "1" * 32, 99),
            stored(SCHEMAS[0], "2013-11-11", "1" * 32, 99),
            stored(SCHEMAS[0], "golden", "2" * 32, 99),
            stored(SCHEMAS[0], "golden", "0" * 32, 99),
            stored(SCHEMAS[1], "2013-11-10", "0" * 32, 99),
        ]
        gone = deleted(spans, refer)
        assert gone == [
            f"{SCHEMAS[0]}/2013-11-10/{'1' * 32}",
            f"{SCHEMAS[0]}/golden/{'0' * 32}",
            f"{SCHEMAS[1]}/2013-11-10/{'0' * 32}",
        ]

    def test_files_that_a_judge_will_search_stay(self) -> None:
        """A run's evaluation reads shards of the champion that was; by now it may not be one any more."""
        searched = manifest(SCHEMAS[1], {"2013-11-12": "2" * 32}).splits["train"].files
        duel = documents.EvaluateRequest.model_construct(prove_unseen=searched)
        refer = references((run(), (None, snapshot(SCHEMAS[0], {}), None, None, duel)))
        assert deleted([stored(SCHEMAS[1], "2013-11-12", "2" * 32, 99)], refer) == []

    def test_a_run_without_a_snapshot_may_find_any_day_of_its_window(self) -> None:
        """It looks into the store after its plan is written: what it may find stays."""
        plan = make_plan()
        refer = references((run(plan.run_key), (plan, None, None, None, None)))
        inside, outside = plan.window.start, plan.window.end
        spans = [
            stored(SCHEMAS[0], inside.isoformat(), "0" * 32, 99),
            stored(SCHEMAS[0], outside.isoformat(), "0" * 32, 99),
            stored(SCHEMAS[0], "golden", "0" * 32, 99),
        ]
        assert deleted(spans, refer) == [f"{SCHEMAS[0]}/{outside}/{'0' * 32}"]

    @pytest.mark.parametrize("because", ["alias", "serving"])
    def test_a_version_without_a_manifest_is_refused(self, because) -> None:
        """What it was trained on cannot be known; the message names the document."""
        with refuses(ContractError, where=f"runs/{KEYS[0]}/manifest.json", found="no such document"):
            references((run(because=because), (make_plan(), snapshot(SCHEMAS[0], {}), None, None, None)))

    def test_a_run_without_any_document_is_refused(self) -> None:
        """Not even a plan."""
        with refuses(ContractError, where=f"runs/{KEYS[0]}", found="no plan"):
            references((run(), NO_DOCUMENTS))


@pytest.mark.parametrize("days", [6, 0, -1, 3651])
def test_an_age_that_a_waiting_run_would_not_survive_is_refused(days) -> None:
    """Also where the form did not stop it."""
    with pytest.raises(PlanError, match="Param min_age_days"):
        Limits(as_of=AS_OF, min_age_days=days)


def test_the_limit_of_one_cleaning_leaves_the_rest_to_the_next() -> None:
    """The plan stays small; nothing is lost."""
    spans = [stored(SCHEMAS[0], day.isoformat(), "0" * 32, 99) for day in DAYS]
    found = survey_spans(MODEL, spans, references(), (), LIMITS, runs=0, most_spans=4)
    assert (len(found.delete), found.postponed, found.spans) == (4, 2, 6)


def test_a_kept_span_whose_deletion_had_begun_is_to_be_restored() -> None:
    """Its marker is gone, and a run refers to it by now."""
    refer = references((run(), (None, snapshot(SCHEMAS[0], {"2013-11-10": "0" * 32}), None, None, None)))
    span = stored(SCHEMAS[0], "2013-11-10", "0" * 32, 99, marker=None, tombstone=True)
    assert survey_spans(MODEL, [span], refer, (), LIMITS, runs=0).restore == (span.place.uri,)


# --- the whole rule, over made-up worlds ----------------------------------------------------------------------------

places = st.tuples(
    st.sampled_from(SCHEMAS),
    st.sampled_from([*(day.isoformat() for day in DAYS), "golden"]),
    st.sampled_from(FINGERPRINTS),
)
ages = st.sampled_from([0.0, 29.0, 31.0, 61.0, 400.0])
content = st.dictionaries(st.sampled_from([day.isoformat() for day in DAYS]), st.sampled_from(FINGERPRINTS))


@st.composite
def runs_of_a_world(draw: st.DrawFn):
    """Runs by key: age, outcome, schema, content, frozen set, which documents there are, who claims it."""
    return {
        key: {
            "age": draw(ages),
            "ended": draw(st.booleans()),
            "schema": draw(st.sampled_from(SCHEMAS)),
            "content": draw(content),
            "golden": draw(st.none() | st.sampled_from(FINGERPRINTS)),
            "has": draw(st.sampled_from(["manifest", "snapshot", "both", "plan"])),
            "claim": draw(st.sampled_from([None, None, "alias", "serving", "running"])),
        }
        for key in draw(st.sets(st.sampled_from(KEYS)))
    }


@given(store=st.dictionaries(places, ages, max_size=30), world=runs_of_a_world())
@settings(max_examples=150, deadline=None)
def test_nothing_referred_to_is_ever_deleted_and_everything_else_is(store, world) -> None:
    """The rule said a second time, run by run and span by span, over any store and any runs."""
    plan = PLAN
    for values in world.values():
        if values["claim"] in ("alias", "serving") and values["has"] in ("snapshot", "plan"):
            values["has"] = "manifest"  # the other case is refused, see above
    needed: set[tuple[str, str, str | None]] = set()
    for values in world.values():
        if not (values["claim"] or values["age"] < 30 or (not values["ended"] and values["age"] < 60)):
            continue
        if values["has"] == "plan":
            window = plan.window
            needed |= {
                at for at in store if at[1] == "golden" or window.start <= date.fromisoformat(at[1]) < window.end
            }
        else:
            needed |= {(values["schema"], day, fingerprint) for day, fingerprint in values["content"].items()}
            needed.add((values["schema"], "golden", values["golden"]))
    refer = References(BUCKET, BUCKET, MODEL)
    for kept in kept_runs(*found_in(world), LIMITS):
        values = world[kept.run_key]
        content = (values["schema"], values["content"], values["golden"], kept.run_key)
        taken = snapshot(*content) if values["has"] in ("snapshot", "both") else None
        made = manifest(*content) if values["has"] in ("manifest", "both") else None
        refer.add(kept, (plan, taken, None, made, None))
    gone = deleted([stored(*place, age_days=age) for place, age in store.items()], refer)
    assert {tuple(path.split("/")) for path in gone} == {
        place for place, age in store.items() if age > 30 and place not in needed
    }


def found_in(world) -> tuple[list[RunFolder], Claims]:
    """What the hooks would say of the runs."""
    claims = {
        kind: {key: "said" for key, values in world.items() if values["claim"] == kind}
        for kind in ("alias", "serving", "running")
    }
    found = [
        RunFolder(run_key=key, newest=AS_OF - timedelta(days=values["age"]), ended=values["ended"])
        for key, values in world.items()
    ]
    return found, Claims(**claims)


# --- the store by the names of its objects --------------------------------------------------------------------------


def item(path: str, *, generation: int = 1, age_days: float = 99, size: int = 10) -> StoredObject:
    """An object of the store."""
    return StoredObject(
        uri=f"{ROOT}/{path}", bytes=size, generation=generation, created=AS_OF - timedelta(days=age_days)
    )


FOLDER = f"{SCHEMAS[0]}/2013-11-10/{'0' * 32}"


def test_a_folder_is_a_span() -> None:
    """Counted and weighed whole; the marker's generation is kept, the youngest file counts."""
    objects = [
        item(f"{FOLDER}/span.json", generation=7, age_days=50),
        item(f"{FOLDER}/train-00000-of-00001.tfrecord.gz", age_days=60),
        item(f"{FOLDER}/train-00000-of-00001.tfrecord.gz.json", age_days=40),
        item(f"{SCHEMAS[0]}/golden/{'1' * 32}/span.json"),
    ]
    first, golden = read_spans(objects, ROOT)
    assert isinstance(first, StoredSpan)
    assert (first.objects, first.bytes, first.marker, first.tombstone) == (3, 30, 7, False)
    assert first.newest == AS_OF - timedelta(days=40)
    assert isinstance(golden, StoredSpan)
    assert (golden.place.day, golden.place.span) == (None, "golden")


def test_a_tombstone_makes_no_span_young() -> None:
    """Else a deletion that was cut off would wait for another month."""
    (span,) = read_spans([item(f"{FOLDER}/deleted.json", age_days=0), item(f"{FOLDER}/train.gz")], ROOT)
    assert isinstance(span, StoredSpan)
    assert (span.tombstone, span.marker, span.objects) == (True, None, 1)
    assert LIMITS.is_old(span.newest)


@pytest.mark.parametrize(
    "path",
    [
        "readme.txt",
        f"{SCHEMAS[0]}/notes.txt",
        f"{SCHEMAS[0]}/2013-11-10/loose.gz",
        f"{SCHEMAS[0]}/2013-02-30/{'0' * 32}/span.json",
        f"{SCHEMAS[0]}/2013-11-10/{'0' * 31}/span.json",
        f"{SCHEMAS[0]}/2013-11-10/{'0' * 32}/below/span.json",
        f"{SCHEMAS[0].upper()}X/2013-11-10/{'0' * 32}/span.json",
    ],
)
def test_what_does_not_lie_like_a_span_is_not_one(path) -> None:
    """It is counted, and never in a plan."""
    (found,) = read_spans([item(path)], ROOT)
    assert isinstance(found, StoredObject)
    counted = survey_spans(MODEL, [found], references(), (), LIMITS, runs=0)
    assert (counted.foreign, counted.spans, counted.delete) == (1, 0, ())


def test_a_listing_is_not_kept_in_memory() -> None:
    """Of many objects in one span only the sums are."""
    objects = (item(f"{FOLDER}/train-{number:05d}.gz") for number in range(20_000))
    tracemalloc.start()
    try:
        (span,) = read_spans(objects, ROOT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(span, StoredSpan)
    assert span.objects == 20_000
    assert peak < 200_000
