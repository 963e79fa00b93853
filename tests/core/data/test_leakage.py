"""Which of the champion's files must be searched for planned's test examples."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core import documents
from retraining.core.data import leakage
from retraining.core.jobs import requests
from tests.support.small_model import fingerprint_rows, make_plan, make_snapshot

DAYS = ("2013-11-10", "2013-11-16", "2013-11-17")


@pytest.fixture
def planned(small_plan):
    """A snapshot of three days."""
    return make_snapshot(small_plan)


def manifest(snapshot: documents.Snapshot, rows: int = 100, **fingerprints: str) -> documents.Manifest:
    """A champion's manifest: a file per day and part, but the last day is test; some days with other fingerprints."""
    spans = [{**span.model_dump(), "rows": 100} for span in snapshot.spans]
    for span in spans:
        span["fingerprint"] = fingerprints.get(f"d{span['span']:%m%d}", span["fingerprint"])
        del span["parts"]
    days = [span["span"] for span in spans]

    def split(part: str, chosen: list[Any], rows: int = 0) -> dict[str, Any]:
        files = [
            {"uri": f"gs://b/{day}/{part}", "span": day, "part": part, "rows": rows and 50, "bytes": 1}
            | {"crc32c": "AAAAAA==", "sha256": "0" * 64}
            for day in chosen
        ]
        return {"rows": sum(file["rows"] for file in files), "files": tuple(files)}

    return documents.Manifest(
        model=snapshot.model,
        run_key=snapshot.run_key,
        schema_hash=snapshot.schema_hash,
        compression="GZIP",
        schema=snapshot.columns,
        table=snapshot.table,
        splits={
            "train": split("train", days[:-1], rows),
            "validation": split("validation", days[:-1], rows),
            "test": split("train", days[-1:], rows),
        },
        spans=tuple(spans),
        exported_rows=0,
        exported_bytes=0,
        seconds=1,
    )


def test_spans_of_the_same_content_are_proven(planned):
    assert leakage.unproven_files(manifest(planned), planned) == ()


def test_a_changed_span_is_searched_in_both_parts(planned):
    found = leakage.unproven_files(manifest(planned, d1116="f" * 32), planned)
    assert [file.uri for file in found] == ["gs://b/2013-11-16/train", "gs://b/2013-11-16/validation"]


def test_a_span_that_left_the_window_is_searched(small_plan, planned):
    later = make_snapshot(small_plan, fingerprint_rows=fingerprint_rows(*DAYS)[2:])
    found = leakage.unproven_files(manifest(planned), later)
    assert {str(file.span) for file in found} == {"2013-11-10"}


def test_the_champions_test_days_are_not_searched(planned):
    found = leakage.unproven_files(manifest(planned, d1117="f" * 32), planned)
    assert found == ()


def test_rows_that_no_file_holds_are_counted(planned):
    champion = manifest(planned)
    assert leakage.unreadable_rows(champion) == 0
    splits = {
        name: split.model_copy(update={"rows": split.rows + 7}) if name == "train" else split
        for name, split in champion.splits.items()
    }
    assert leakage.unreadable_rows(champion.model_copy(update={"splits": splits})) == 7


def test_the_duel_gets_them_only_with_a_champion(planned):
    plan = make_plan()
    files = leakage.unproven_files(manifest(planned, d1116="f" * 32), planned)
    assert requests.evaluation_job(plan, None, proof=leakage.Proof(files=files)).request.prove_unseen == ()
    champion = documents.Champion(
        model_uri="gs://b/m",
        version_name="v@1",
        version_id="1",
        run_key="20131119t030000z-0123456789ab",
        as_of=datetime(2013, 11, 19, 3, tzinfo=UTC),
    )
    assert requests.evaluation_job(plan, champion, proof=leakage.Proof(files=files)).request.prove_unseen == files
    newer = champion.model_copy(update={"as_of": plan.as_of})
    assert requests.evaluation_job(plan, newer, proof=leakage.Proof(files=files)).request.prove_unseen == ()


def test_a_champion_of_another_stage_is_proven_by_fingerprints_alone(planned):
    """Its files may be gone any day, and are not asked for."""
    assert leakage.proof_from_afar(manifest(planned), "staging", planned) == leakage.PROVEN
    found = leakage.proof_from_afar(manifest(planned, d1110="f" * 32), "staging", planned)
    assert (found.files, found.known) == ((), True)
    assert re.fullmatch(r"2 of the files .* are of stage staging, and are not read", found.missing)
