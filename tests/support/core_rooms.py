"""The rooms of the core: the part of the table in `house.py` that decides."""

from __future__ import annotations

from tests.support.room import Room

CORE = {
    "retraining.core": Room(
        "decides: functions of values; no clock, no Google, no Airflow; at the top what all may import"
    ),
    "retraining.core.spec": Room("what a user writes: YAML and SQL in, a checked ModelSpec out", ("retraining.core",)),
    "retraining.core.documents": Room(
        "what is written to the bucket: one file per stage, no logic", ("retraining.core", "retraining.core.spec")
    ),
    "retraining.core.naming": Room(
        "addresses, labels, ids and keys: made here, and read back",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents"),
    ),
    "retraining.core.catalog": Room(
        "what there is, by dated data files (architectures, machines, prices), and whether a spec keeps to it",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents"),
    ),
    "retraining.core.planning": Room(
        "spec, time and settings → plan",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.catalog",
        ),
    ),
    "retraining.core.data": Room(
        "SQL text, what is read from its rows, and the span store",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
        ),
    ),
    "retraining.core.checks": Room(
        "statistics → findings",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents", "retraining.core.data"),
    ),
    "retraining.core.jobs": Room(
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
    "retraining.core.tuning": Room(
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
    "retraining.core.promotion": Room(
        "evaluation → verdict → traffic",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents", "retraining.core.naming"),
    ),
    "retraining.core.monitoring": Room(
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
    "retraining.core.scoring": Room(
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
    "retraining.core.retention": Room(
        "what may be deleted, and what is still needed",
        (
            "retraining.core",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.data",
            "retraining.core.promotion",
        ),
    ),
    "retraining.core.lineage": Room(
        "documents → what a task read and wrote, by OpenLineage's names",
        ("retraining.core", "retraining.core.documents", "retraining.core.naming", "retraining.core.data"),
    ),
    "retraining.core.notification": Room(
        "what a run came to → what people are told of it, in which words, and when not again",
        ("retraining.core", "retraining.core.spec", "retraining.core.documents", "retraining.core.naming"),
    ),
    "retraining.core.report": Room(
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
