"""The table of rooms: each folder of the product, its rule in a line, and whose files it may import.

`tests/test_architecture.py` holds the imports to it, `ARCHITECTURE.md` shows it (a test compares them). A room is the
longest prefix that fits a module. In `may_import`, `name.*` stands for a room and all below it; a room may always
import itself.
"""

from __future__ import annotations

from tests.support.core_rooms import CORE
from tests.support.dev_rooms import LOCALCLOUD, VERTEX
from tests.support.room import Room

FLOORS = {
    "dags": Room("arranges tasks, and nothing else", ("retraining.core.*", "retraining.operators.*")),
    "retraining": Room("nothing but its parts"),
    "retraining.__main__": Room("`python -m retraining`", ("retraining.commands",)),
    "retraining.commands": Room(
        "every program: a command reads arguments, asks hooks and core as a task does, prints; writes no document",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.hooks.cloud",
            "retraining.operators.data",
            "retraining.operators.planning",
        ),
    ),
    "retraining.web": Room(
        "the Models page, runs' pages, documents: routes of Airflow's API server, read only, for who may read the DAG",
        ("retraining.core.*", "retraining.hooks", "retraining.hooks.ports", "retraining.hooks.cloud"),
    ),
    "demo": Room("the demonstration: an Airflow and the local cloud, started, followed and ended", ("localcloud.*",)),
    "containers": Room("builds the images and runs docker-compose.yaml with podman", ("demo", "localcloud.*")),
    "contracts": Room(
        "renders the JSON Schemas and the trainer's dataclasses from the core's documents", ("retraining.core.*",)
    ),
    "composer": Room("brings the bundle to the bucket of a Composer environment", ()),
    "tfdv": Room("TensorFlow Data Validation looks at a run, in an environment of its own", ()),
    "bench": Room(
        "measures: holds every part against something else", ("localcloud.*", "trainer.*", "retraining.core.*")
    ),
}
HOOKS = {
    "retraining.hooks": Room("talks to Google; imports its clients inside functions", ("retraining.core.*",)),
    "retraining.hooks.ports": Room(
        "what a task may ask of the cloud, as protocols; the fakes of the tests satisfy them too",
        ("retraining.core.*", "retraining.hooks"),
    ),
    "retraining.hooks.cloud": Room(
        "all services, by the settings and the Airflow connection", ("retraining.core.*", "retraining.hooks")
    ),
}
OPERATORS = {
    "retraining.operators": Room("what Airflow runs: read the record, ask a hook, ask the core, write one document"),
    "retraining.operators.airflow": Room(
        "Airflow's side of a task: what is around its work, final errors, links, schedules, Params, its DAG run",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.hooks.cloud",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.record": Room(
        "a run's folder of documents: whose it is, what is in it, its lease on the spans",
        ("retraining.core.*", "retraining.hooks.ports"),
    ),
    "retraining.operators.planning": Room(
        "`plan`: form, spec and time → the plan",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.data",
        ),
    ),
    "retraining.operators.data": Room(
        "`snapshot`, `check_data`: the run table, and whether it is fit to train on",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.evaluation": Room(
        "`decide`; and what a comparison needs before it is paid for",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.jobs": Room(
        "`export`, `train`, `evaluate`: a job on Vertex AI, made once, found again",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.evaluation",
        ),
    ),
    "retraining.operators.tuning": Room(
        "`tune`: the search's jobs, and what earlier searches left",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.jobs",
        ),
    ),
    "retraining.operators.deployment": Room(
        "`register`, `approve`, `deploy`: from the version to the traffic, and back",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.jobs",
            "retraining.operators.report",
        ),
    ),
    "retraining.operators.ending": Room(
        "`cancel_jobs`, `conclude`: nothing is left running, and the run has its state",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.jobs",
            "retraining.operators.deployment",
        ),
    ),
    "retraining.operators.report": Room(
        "`report`, `show`: the run's page for people, and the Models page",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.monitoring": Room(
        "the DAG `monitor__<model>`: what is watched, and whether to retrain",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.jobs",
            "retraining.operators.deployment",
        ),
    ),
    "retraining.operators.scoring": Room(
        "the DAG `score__<model>`: a table is scored in bulk, and its answers replace another",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.jobs",
        ),
    ),
    "retraining.operators.retention": Room(
        "the DAG `maintain`: what is left over is found, then deleted",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.deployment",
        ),
    ),
}
TRAINER = {
    "trainer": Room("errors and their exit codes; imported by all"),
    "trainer.storage": Room("bytes in and out; knows no document", ("trainer",)),
    "trainer.contract": Room(
        "what is asked and answered: documents, read and checked in one way", ("trainer", "trainer.storage")
    ),
    "trainer.packages": Room(
        "a model's own packages → a folder of the job that can be imported from",
        ("trainer", "trainer.storage", "trainer.contract"),
    ),
    "trainer.telemetry": Room("time, memory, and the job's log", ("trainer.contract",)),
    "trainer.objective": Room("a label's kind → loss and metrics", ("trainer", "trainer.contract")),
    "trainer.bigquery": Room("a table → streams of Arrow batches; for the export and for the input", ("trainer",)),
    "trainer.input": Room(
        "shards or the run table → batches", ("trainer", "trainer.storage", "trainer.contract", "trainer.bigquery")
    ),
    "trainer.cluster": Room(
        "who am I among the replicas, and what if one goes",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.input"),
    ),
    "trainer.export": Room(
        "the run table → shards; the only room that writes them; no TensorFlow",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.bigquery", "trainer.cluster"),
    ),
    "trainer.features": Room(
        "a column, or a request's value → what a model reads", ("trainer", "trainer.contract", "trainer.input")
    ),
    "trainer.models": Room(
        "an architecture by name; those of users import from here alone",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.features"),
    ),
    "trainer.saved_model": Room(
        "the model on disk, and the requests it was tried with",
        ("trainer", "trainer.contract", "trainer.objective", "trainer.features", "trainer.models"),
    ),
    "trainer.training": Room(
        "batches → a trained model",
        (
            "trainer",
            "trainer.storage",
            "trainer.contract",
            "trainer.telemetry",
            "trainer.objective",
            "trainer.input",
            "trainer.cluster",
            "trainer.features",
            "trainer.models",
            "trainer.saved_model",
        ),
    ),
    "trainer.evaluation": Room(
        "models and a split → scores; decides nothing",
        (
            "trainer",
            "trainer.storage",
            "trainer.contract",
            "trainer.objective",
            "trainer.input",
            "trainer.features",
            "trainer.saved_model",
        ),
    ),
    "trainer.traffic": Room(
        "requests and training examples → how well they can be told apart; no TensorFlow",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.objective", "trainer.bigquery"),
    ),
    "trainer.tools": Room(
        "run by hand or by make, never in a job",
        (
            "trainer",
            "trainer.storage",
            "trainer.contract",
            "trainer.input",
            "trainer.models",
            "trainer.saved_model",
        ),
    ),
    "trainer.task": Room(
        "arguments → one job",
        (
            "trainer",
            "trainer.storage",
            "trainer.contract",
            "trainer.telemetry",
            "trainer.packages",
            "trainer.input",
            "trainer.cluster",
            "trainer.export",
            "trainer.training",
            "trainer.evaluation",
            "trainer.traffic",
        ),
    ),
}
AREAS = {
    "Floors": FLOORS,
    "plugins/retraining/hooks": HOOKS,
    "plugins/retraining/operators": OPERATORS,
    "plugins/retraining/core": CORE,
    "trainer": TRAINER,
    "packages/localcloud/src/localcloud": LOCALCLOUD,
    "packages/localcloud/src/localcloud/vertex": VERTEX,
}
ROOMS = {name: room for area in AREAS.values() for name, room in area.items()}
# Area: at most so many rooms, on so many levels.
LIMITS: dict[str, tuple[int, int]] = {
    "plugins/retraining/hooks": (3, 2),
    "plugins/retraining/operators": (14, 6),
    "plugins/retraining/core": (17, 7),
    "trainer": (18, 9),
    "packages/localcloud/src/localcloud": (16, 6),
    "packages/localcloud/src/localcloud/vertex": (8, 5),
}


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
