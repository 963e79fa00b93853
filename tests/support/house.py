"""The table of rooms: each folder of the product, its rule in a line, and whose files it may import.

`tests/test_architecture.py` holds the imports to it, `ARCHITECTURE.md` shows it (a test compares them). A room is the
longest prefix that fits a module. In `may_import`, `name.*` stands for a room and all below it; a room may always
import itself.
"""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """A folder: what belongs there, and the rooms that it may import."""

    rule: str
    may_import: tuple[str, ...] = ()


FLOORS = {
    "dags": Room("arranges tasks, and nothing else", ("retraining.core.*", "retraining.operators.*")),
    "retraining.operators": Room(
        "what Airflow runs: read the record, ask a hook, ask the core, write one document",
        ("retraining.core.*", "retraining.hooks.*"),
    ),
    "retraining.hooks": Room("talks to Google; imports its clients inside functions", ("retraining.core.*",)),
    "retraining": Room("nothing but its parts"),
    "trainer": Room("what a job runs: export, training, evaluation; knows only documents"),
    "localcloud": Room("Google's services on this machine; knows nothing of this project's other parts"),
    "demo": Room("the demonstration: an Airflow and the local cloud, started, followed and ended", ("localcloud.*",)),
    "bench": Room(
        "measures: holds every part against something else", ("localcloud.*", "trainer.*", "retraining.core.*")
    ),
}
CORE = {
    "retraining.core": Room(
        "decides: functions of values; no clock, no Google, no Airflow; at the top what all may import"
    ),
    "retraining.core.spec": Room("what a user writes: YAML and SQL in, a checked ModelSpec out", ("retraining.core",)),
    "retraining.core.documents": Room(
        "what is written to the bucket: one file per stage, no logic", ("retraining.core", "retraining.core.spec")
    ),
    "retraining.core.naming": Room(
        "addresses, labels, ids and keys: made here, and read back", ("retraining.core", "retraining.core.documents")
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
            "retraining.core.catalog",
        ),
    ),
    "retraining.core.checks": Room(
        "statistics → findings", ("retraining.core.spec", "retraining.core.documents", "retraining.core.data")
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
            "retraining.core.data",
        ),
    ),
    "retraining.core.retention": Room(
        "what may be deleted, and what is still needed",
        ("retraining.core", "retraining.core.documents", "retraining.core.naming", "retraining.core.data"),
    ),
    "retraining.core.report": Room(
        "documents → page; states of tasks → the state of the run",
        (
            "retraining.core",
            "retraining.core.spec",
            "retraining.core.documents",
            "retraining.core.naming",
            "retraining.core.promotion",
        ),
    ),
}
AREAS = {"Floors": FLOORS, "plugins/retraining/core": CORE}
ROOMS = {name: room for area in AREAS.values() for name, room in area.items()}
# Area: at most so many rooms, on so many levels.
LIMITS: dict[str, tuple[int, int]] = {"plugins/retraining/core": (14, 7)}


def allowed(importer: str, imported: str) -> bool:
    """Whether one room may import another."""
    return importer == imported or any(means(arrow, imported) for arrow in ROOMS[importer].may_import)


def means(arrow: str, room: str) -> bool:
    """Whether an entry of `may_import` stands for this room."""
    return room == arrow or (arrow.endswith(".*") and f"{room}.".startswith(arrow.removesuffix("*")))


def table(rooms: dict[str, Room]) -> str:
    """Return an area's table, as it stands in ARCHITECTURE.md."""
    lines = ["| room | rule | may import |", "|---|---|---|"]
    for name, room in rooms.items():
        lines.append(f"| `{name}` | {room.rule} | {', '.join(f'`{each}`' for each in room.may_import) or 'nothing'} |")
    return "\n".join(lines)


def levels(rooms: dict[str, Room]) -> int:
    """Return how many floors an area has: the rooms on the longest way down its arrows.

    Raises:
        ValueError: Its arrows go in a circle.
    """

    def depth(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise ValueError(f"a circle: {' → '.join([*above, name])}")
        below = [other for other in rooms if other != name and allowed(name, other)]
        return 1 + max((depth(other, (*above, name)) for other in below), default=0)

    return max(depth(name, ()) for name in rooms)
