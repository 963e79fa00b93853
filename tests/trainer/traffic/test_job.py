"""The job `separate`: a table comes in, a document goes out, once."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trainer.bigquery.streams import Session
from trainer.contract.documents import ComparedColumn, Multivariate, MultivariateRequest
from trainer.contract.reading import read_document, serialise
from trainer.errors import DataError
from trainer.storage import Storage
from trainer.task import main
from trainer.traffic.job import separate_traffic

TABLE = "project.retraining.traffic_late"


class Reader:
    """A table in memory, in two streams; says what it was asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.asked: Any = None

    def open_session(self, table, columns, restriction, streams):
        """Return the rows, the later half first."""
        self.asked = (table, list(columns), restriction)
        half = self.table.num_rows // 2
        parts = [self.table.slice(half), self.table.slice(0, half)]
        streams = [part.select(columns).to_batches() for part in parts] if self.table.num_rows else []
        return Session(schema=self.table.select(columns).schema, streams=streams)


@pytest.fixture
def request_(tmp_path) -> MultivariateRequest:
    columns = (
        ComparedColumn(name="carrier", column="f0", values="categorical"),
        ComparedColumn(name="distance", column="f1", values="numeric"),
    )
    return MultivariateRequest(
        model="late",
        run_key="20131120t030000z-0123456789ab",
        table=TABLE,
        columns=columns,
        folds=3,
        seed=0,
        multivariate_uri=str(tmp_path / "multivariate.json"),
    )


def make_table(requests=300, examples=500) -> pa.Table:
    """Requests fly farther."""
    random = np.random.default_rng(0)
    asked = np.arange(requests + examples) < requests
    distance = random.normal(1000, 200, len(asked)) + 400 * asked
    carriers = random.choice(["UA", "AA"], len(asked)).tolist()
    carriers[:1] = [None] * len(carriers[:1])
    return pa.table({"asked": asked, "f0": pa.array(carriers, pa.string()), "f1": distance, "label": asked})


def test_what_drives_it_is_said_by_the_features_name(request_, tmp_path) -> None:
    reader = Reader(make_table())
    found = separate_traffic(request_, Storage(), reader)
    assert reader.asked == (TABLE, ["asked", "f0", "f1"], "")  # and no label
    assert (found.requests, found.examples) == (300, 500)
    assert found.auc > 0.85
    assert [feature.name for feature in found.features] == ["distance", "carrier"]
    assert read_document(Multivariate, request_.multivariate_uri, Storage()) == found


def test_streams_in_another_sequence_give_the_same(request_, tmp_path) -> None:
    first = separate_traffic(request_, Storage(), Reader(make_table()))
    again = dataclasses.replace(request_, multivariate_uri=str(tmp_path / "again.json"))
    shuffled = make_table().take(np.random.default_rng(1).permutation(800))
    assert separate_traffic(again, Storage(), Reader(shuffled)) == first


@pytest.mark.parametrize(("requests", "examples"), [(0, 10), (10, 0), (0, 0)])
def test_one_side_alone_is_refused(request_, requests, examples) -> None:
    with pytest.raises(DataError, match=f"{requests} requests and {examples} training examples"):
        separate_traffic(request_, Storage(), Reader(make_table(requests, examples)))


def test_a_job_that_is_done_reads_nothing(request_, tmp_path) -> None:
    """The table does not exist: it is not asked for."""
    separate_traffic(request_, Storage(), Reader(make_table()))
    path = tmp_path / "request.json"
    path.write_bytes(serialise(request_))
    assert main(["separate", "--request", str(path)]) == 0


def test_the_document_of_another_request_is_not_taken_for_its_own(request_, tmp_path, capsys) -> None:
    """It is of another seed: named, and left as it is."""
    found = separate_traffic(request_, Storage(), Reader(make_table()), request_digest="0" * 64)
    assert found.request_digest == "0" * 64
    path = tmp_path / "request.json"
    path.write_bytes(serialise(dataclasses.replace(request_, digest_required=True)))
    assert main(["separate", "--request", str(path)]) == 2
    said = capsys.readouterr().err
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"{request_.multivariate_uri}: the result of another request: its request_digest is {'0' * 64}" in said
    assert f"Expected {digest}, of this job's request, or no result. Delete it, start again" in said
    assert read_document(Multivariate, request_.multivariate_uri, Storage()) == found
