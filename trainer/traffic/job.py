"""The job `separate`: a table of requests and training examples → the document `multivariate`."""

from __future__ import annotations

import logging

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trainer.bigquery.streams import TableReader
from trainer.contract.documents import ComparedColumn, DrivingFeature, Multivariate, MultivariateRequest
from trainer.contract.reading import serialise
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.storage import Storage
from trainer.traffic.columns import Values
from trainer.traffic.separation import separate

LOGGER = logging.getLogger(__name__)
ASKED = "asked"
"""The column that tells requests from training examples."""
_SHOWN = 5


def separate_traffic(
    request: MultivariateRequest,
    storage: Storage,
    reader: TableReader | None = None,
    request_digest: str | None = None,
) -> Multivariate:
    """Train the classifiers, and write what came of it.

    Args:
        request: What to read.
        storage: Where to write.
        reader: Of BigQuery; None: Google's.
        request_digest: SHA-256 of the request's bytes.

    Raises:
        DataError: The table has no row, or none of one side.
    """
    columns, asked = read_table(request, reader or TableReader())
    if not asked.any() or asked.all():
        raise DataError(
            request.table,
            f"{int(asked.sum())} requests and {int((~asked).sum())} training examples",
            "some of both",
            NEW_ATTEMPT,
        )
    kinds = {column.name: column.values for column in request.columns}
    found = separate(columns, kinds, asked, folds=request.folds, seed=request.seed)
    losses = sorted(found.losses.items(), key=lambda item: (-item[1], item[0]))
    document = Multivariate(
        model=request.model,
        run_key=request.run_key,
        request_digest=request_digest,
        table=request.table,
        requests=int(asked.sum()),
        examples=int((~asked).sum()),
        auc=found.auc,
        low=found.low,
        high=found.high,
        folds=found.folds,
        features=tuple(DrivingFeature(name=name, loss=loss) for name, loss in losses),
    )
    storage.write_once(request.multivariate_uri, serialise(document))
    LOGGER.info("separate: AUC %.3f, between %.3f and %.3f", found.auc, found.low, found.high)
    LOGGER.info("separate: driven by %s", ", ".join(f"{name} {loss:.3f}" for name, loss in losses[:_SHOWN]))
    return document


def read_table(request: MultivariateRequest, reader: TableReader) -> tuple[dict[str, Values], npt.NDArray[np.bool_]]:
    """Return the columns by feature, and of each row whether it is a request."""
    names = [ASKED, *(column.column for column in request.columns)]
    session = reader.open_session(request.table, names, "", 1)
    batches = [batch for stream in session.streams for batch in stream]
    table = pa.Table.from_batches(batches).select(names) if batches else session.schema.empty_table()
    # Read streams have no order; the same rows in the same sequence give the same folds.
    table = table.sort_by([(name, "ascending") for name in names])
    asked = np.array(table[ASKED].to_pylist(), bool)
    return {column.name: _values(column, table[column.column]) for column in request.columns}, asked


def _values(column: ComparedColumn, values: pa.ChunkedArray) -> Values:
    if column.values == "categorical":
        texts: npt.NDArray[np.object_] = np.array(values.to_pylist(), dtype=object)
        return texts
    numbers: npt.NDArray[np.float64] = np.array(
        [np.nan if value is None else value for value in values.to_pylist()], np.float64
    )
    return numbers
