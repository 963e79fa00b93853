"""What the benchmarks ask their local cloud."""

from __future__ import annotations

from bench.cloud import Cloud


def test_queries_are_answered(local_cloud) -> None:
    """By a client that says who it is."""
    assert Cloud(local_cloud.env).query("SELECT 6 * 7") == [["42"]]
