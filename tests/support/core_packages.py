"""The packages of the core: the part of the table in `packages.py` that decides."""

from __future__ import annotations

from tests.support.package import Package

CORE = {
    "retraining.core": Package(
        "decides: functions of values; no clock, no Google, no Airflow; at the top what all may import"
    ),
    "retraining.core.spec": Package(
        "what a user writes: YAML and SQL in, a checked ModelSpec out", ("retraining.core",)
    ),
    "retraining.core.documents": Package(
        "what is written to the bucket: one file per stage, no logic", ("retraining.core", "retraining.core.spec")
    ),
    "retraining.core.naming": Package(
        "addresses, labels, ids and keys: made here, and read back",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents"),
    ),
    "retraining.core.catalog": Package(
        "what there is, by dated data files (architectures, machines, prices), and whether a spec keeps to it",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents"),
    ),
    "retraining.core.planning": Package(
        "spec, time and settings → plan",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
        ),
    ),
    "retraining.core.data": Package(
        "SQL text, what is read from its rows, and the span store",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
        ),
    ),
    "retraining.core.checks": Package(
        "statistics → findings",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents", "retraining.core.data"),
    ),
    "retraining.core.jobs": Package(
        "plan → request documents and custom jobs; who may create one, and what its failure means",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
            "retraining.core.data",
        ),
    ),
    "retraining.core.tuning": Package(
        "whether a study runs, from what, and what came of it",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
            "retraining.core.jobs",
        ),
    ),
    "retraining.core.promotion": Package(
        "evaluation → verdict → traffic",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents", "retraining.core.naming"),
    ),
    "retraining.core.monitoring": Package(
        "request log → drift → retrain or not",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
            "retraining.core.data",
            "retraining.core.jobs",
        ),
    ),
    "retraining.core.scoring": Package(
        "table, version and time → the plan of a scoring in bulk, its job, and whether every row has its answer",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
            "retraining.core.planning",
            "retraining.core.data",
            "retraining.core.jobs",
            "retraining.core.promotion",
        ),
    ),
    "retraining.core.walk_forward": Package(
        "dates → versions and the days they are scored on; their quality by day → how they age, what retraining pays",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
            "retraining.core.jobs",
            "retraining.core.promotion",
        ),
    ),
    "retraining.core.retention": Package(
        "what may be deleted, and what is still needed",
        (
            "retraining.core",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.data",
            "retraining.core.promotion",
        ),
    ),
    "retraining.core.lineage": Package(
        "documents → what a task read and wrote, by OpenLineage's names",
        ("retraining.core", "retraining.core.documents", "retraining.core.naming", "retraining.core.data"),
    ),
    "retraining.core.notification": Package(
        "what a run came to → what people are told of it, in which words, and when not again",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents", "retraining.core.naming"),
    ),
    "retraining.core.report": Package(
        "documents → page; states of tasks → the state of the run",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
            "retraining.core.jobs",
            "retraining.core.promotion",
        ),
    ),
}
