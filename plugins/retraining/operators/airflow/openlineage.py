"""Lineage as the classes of OpenLineage's client. Imported only when the provider asks a task (`lineage.py`)."""

from __future__ import annotations

from typing import Any

import attr
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    RunFacet,
    dataset_type_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    sql_job,
)

from retraining.core.lineage.datasets import Dataset
from retraining.core.lineage.record_facet import KEY, NAME, PRODUCER, SCHEMA_URL
from retraining.core.lineage.steps import Lineage
from retraining.core.untyped import Facets, JsonObject

SQL_DIALECT = "bigquery"


def to_openlineage(lineage: Lineage) -> OperatorLineage:
    """Return what the provider puts into a task's event."""
    flow = lineage.flow
    sql = sql_job.SQLJobFacet(query=flow.sql, dialect=SQL_DIALECT, producer=PRODUCER) if flow.sql else None
    return OperatorLineage(
        inputs=[
            InputDataset(namespace=each.namespace, name=each.name, facets=_dataset_facets(each)) for each in flow.inputs
        ],
        outputs=[
            OutputDataset(
                namespace=each.namespace, name=each.name, facets=_dataset_facets(each), outputFacets=_statistics(each)
            )
            for each in flow.outputs
        ],
        run_facets={KEY: _record_facet(lineage.record)} if lineage.record else {},
        job_facets={"sql": sql} if sql else {},
    )


def _dataset_facets(dataset: Dataset) -> Facets:
    facets: Facets = {
        "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet(datasetType=dataset.kind, producer=PRODUCER),
    }
    if dataset.columns:
        fields = [
            schema_dataset.SchemaDatasetFacetFields(
                name=column.name, type=f"ARRAY<{column.type}>" if column.mode == "REPEATED" else column.type
            )
            for column in dataset.columns
        ]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER)
    return facets


def _statistics(dataset: Dataset) -> Facets:
    if dataset.rows is None:
        return {}
    written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=dataset.rows, size=dataset.bytes, producer=PRODUCER
    )
    return {"outputStatistics": written}


def _record_facet(record: JsonObject) -> Any:
    """Return the facet of our own; its class has a field for each of the record's."""
    facet = attr.make_class(
        NAME,
        list(record),
        bases=(RunFacet,),
        class_body={"_get_schema": staticmethod(lambda: SCHEMA_URL)},
        kw_only=True,
    )
    return facet(**record, producer=PRODUCER)
