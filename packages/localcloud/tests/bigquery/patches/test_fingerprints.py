"""FARM_FINGERPRINT is FarmHash's Fingerprint64, for every length."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from localcloud.bigquery.patches.fingerprints import farm_fingerprint

TEXT = "The fugacity of a constituent in a mixture of gases at a given temperature. é€ " * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # https://cloud.google.com/bigquery/docs/reference/standard-sql/hash_functions#farm_fingerprint
        ("1footrue", -1541654101129638711),
        ("2applefalse", 2794438866806483259),
        ("3true", -4880158226897771312),
    ],
)
def test_documented_values(text, expected):
    """The values in BigQuery's own documentation."""
    assert farm_fingerprint(pa.array([text])).to_pylist() == [expected]


def test_every_length():
    """From 0 to 316 characters: what TensorFlow's own copy of FarmHash gives (tf.strings.to_hash_bucket_fast)."""
    values = farm_fingerprint(pa.array([TEXT[:length] for length in range(len(TEXT) + 1)])).to_pylist()
    digest = hashlib.sha256(" ".join(map(str, values)).encode()).hexdigest()
    assert digest == "c9e95099d84ea68f3a5fc389feea81c9f7ce68bee3029299b29b6099a13a5e56"


def test_nulls_slices_and_chunks():
    """NULL stays NULL; a slice gives what its rows give alone."""
    rows = [TEXT[:length] for length in range(0, 200, 7)] + [None, "", None]
    alone = [farm_fingerprint(pa.array([row], pa.string())).to_pylist()[0] for row in rows]
    array = pa.array(rows)
    assert farm_fingerprint(array).to_pylist() == alone
    assert farm_fingerprint(array.slice(5, 20)).to_pylist() == alone[5:25]
    assert farm_fingerprint(pa.chunked_array([array.slice(0, 3), array.slice(3)])).to_pylist() == alone
    assert farm_fingerprint(pa.array([], pa.string())).to_pylist() == []
    assert [row for row, value in zip(rows, alone, strict=True) if value is None] == [None, None]
