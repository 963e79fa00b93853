"""The table of packages: each folder of the product, its rule in a line, and whose files it may import.

`tests/test_architecture.py` holds the imports to it, `ARCHITECTURE.md` shows it (a test compares them). A module is of
the package with the longest prefix that fits it. In `may_import`, `name.*` stands for a package and all below it; a
package may always import itself.
"""

from __future__ import annotations

from tests.support.core_packages import CORE
from tests.support.localcloud_packages import LOCALCLOUD, VERTEX
from tests.support.package import Package

LAYERS = {
    "dags": Package("files of three lines, as a team's: which DAGs Airflow finds here", ("retraining.dags",)),
    "retraining": Package("nothing but its parts"),
    "retraining.testing": Package("what a team's own tests start from: of gates and notifiers", ("retraining.core.*",)),
    "retraining.__main__": Package("`python -m retraining`", ("retraining.commands", "retraining.commands.trial")),
    "retraining.dags": Package("arranges tasks, and nothing else", ("retraining.core.*", "retraining.operators.*")),
    "retraining.commands": Package(
        "every program: a command reads arguments, asks hooks and core as a task does, prints; writes no document",
        (
            "retraining",
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.hooks.cloud",
            "retraining.operators.data",
            "retraining.operators.planning",
            "retraining.operators.record",
        ),
    ),
    "retraining.commands.trial": Package(
        "`retraining trial`: asks the services what is supposed of them; what it makes has names of its own",
        (
            "retraining.commands",
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
        ),
    ),
    "retraining.web": Package(
        "the Models page, runs' pages, documents: routes of Airflow's API server, read only, for who may read the DAG",
        ("retraining.core.*", "retraining.hooks", "retraining.hooks.ports", "retraining.hooks.cloud"),
    ),
    "retraining_laptop": Package(
        "an Airflow and the local cloud around somebody's models: started, followed and ended", ("localcloud.*",)
    ),
    "retraining_laptop.bootstrap": Package(
        "`retraining demo` in Airflow's environment: makes the others, starts the story there",
        ("retraining", "retraining.core.*"),
    ),
    "demo": Package(
        "the demonstration of this checkout: its flights, and what is told of them",
        ("localcloud.*", "retraining_laptop"),
    ),
    "containers": Package("builds the images and runs docker-compose.yaml with podman", ("demo", "localcloud.*")),
    "contracts": Package(
        "renders the JSON Schemas and the trainer's dataclasses from the core's documents", ("retraining.core.*",)
    ),
    "wheels": Package("builds the packages that others install", ()),
    "composer": Package("brings the bundle to the bucket of a Composer environment", ()),
    "tfdv": Package("TensorFlow Data Validation looks at a run, in an environment of its own", ()),
    "localcloud_conformance": Package(
        "runs public clients' own test suites against the local cloud, and holds their shares to what is recorded",
        ("localcloud.testing",),
    ),
    "bench": Package(
        "measures: holds every part against something else",
        ("localcloud.*", "trainer.*", "retraining.core.*", "retraining_laptop", "demo"),
    ),
}
DAGS = ("dags", "retraining.dags")
HOOKS = {
    "retraining.hooks": Package("talks to Google; imports its clients inside functions", ("retraining.core.*",)),
    "retraining.hooks.ports": Package(
        "what a task may ask of the cloud, as protocols; the fakes of the tests satisfy them too",
        ("retraining.core.*", "retraining.hooks"),
    ),
    "retraining.hooks.cloud": Package(
        "all services, by the settings and the Airflow connection", ("retraining.core.*", "retraining.hooks")
    ),
}
OPERATORS = {
    "retraining.operators": Package("what Airflow runs: read the record, ask a hook, ask the core, write one document"),
    "retraining.operators.airflow": Package(
        "Airflow's side of a task: what is around its work, final errors, links, schedules, Params, its DAG run",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.hooks.cloud",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.record": Package(
        "a run's folder of documents: whose it is, what is in it, its lease on the spans",
        ("retraining.core.*", "retraining.hooks.ports"),
    ),
    "retraining.operators.planning": Package(
        "`plan`: form, spec and time → the plan",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.data",
        ),
    ),
    "retraining.operators.data": Package(
        "`snapshot`, `check_data`: the run table, and whether it is fit to train on",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.evaluation": Package(
        "`decide`; and what a comparison needs before it is paid for",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.jobs": Package(
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
    "retraining.operators.tuning": Package(
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
    "retraining.operators.deployment": Package(
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
    "retraining.operators.ending": Package(
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
    "retraining.operators.report": Package(
        "`report`, `show`: the run's page for people, and the Models page",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
        ),
    ),
    "retraining.operators.monitoring": Package(
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
    "retraining.operators.scoring": Package(
        "the DAG `score__<model>`: a table is scored in bulk, and its answers replace another",
        (
            "retraining.core.*",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.jobs",
        ),
    ),
    "retraining.operators.walk_forward": Package(
        "the DAG `walk_forward__<model>`: versions as of many dates, scored on the days that followed",
        (
            "retraining.core.*",
            "retraining.hooks",
            "retraining.hooks.ports",
            "retraining.operators.airflow",
            "retraining.operators.record",
            "retraining.operators.planning",
            "retraining.operators.data",
            "retraining.operators.jobs",
        ),
    ),
    "retraining.operators.retention": Package(
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
    "trainer": Package("errors and their exit codes; imported by all"),
    "trainer.storage": Package("bytes in and out; knows no document", ("trainer",)),
    "trainer.contract": Package(
        "what is asked and answered: documents, read and checked in one way", ("trainer", "trainer.storage")
    ),
    "trainer.packages": Package(
        "a model's own packages → a folder of the job that can be imported from",
        ("trainer", "trainer.storage", "trainer.contract"),
    ),
    "trainer.telemetry": Package("time, memory, and the job's log", ("trainer.contract",)),
    "trainer.objective": Package("a label's kind → loss and metrics", ("trainer", "trainer.contract")),
    "trainer.bigquery": Package("a table → streams of Arrow batches; for the export and for the input", ("trainer",)),
    "trainer.input": Package(
        "shards or the run table → batches", ("trainer", "trainer.storage", "trainer.contract", "trainer.bigquery")
    ),
    "trainer.cluster": Package(
        "who am I among the replicas, and what if one goes",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.input"),
    ),
    "trainer.export": Package(
        "the run table → shards; the only package that writes them; no TensorFlow",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.bigquery", "trainer.cluster"),
    ),
    "trainer.features": Package(
        "a column, or a request's value → what a model reads", ("trainer", "trainer.contract", "trainer.input")
    ),
    "trainer.models": Package(
        "an architecture by name; those of users import from here alone",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.features"),
    ),
    "trainer.saved_model": Package(
        "the model on disk, and the requests it was tried with",
        ("trainer", "trainer.contract", "trainer.objective", "trainer.features", "trainer.models"),
    ),
    "trainer.training": Package(
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
    "trainer.evaluation": Package(
        "models and a split → scores; decides nothing",
        (
            "trainer",
            "trainer.storage",
            "trainer.contract",
            "trainer.telemetry",
            "trainer.objective",
            "trainer.input",
            "trainer.features",
            "trainer.saved_model",
        ),
    ),
    "trainer.traffic": Package(
        "requests and training examples → how well they can be told apart; no TensorFlow",
        ("trainer", "trainer.storage", "trainer.contract", "trainer.objective", "trainer.bigquery"),
    ),
    "trainer.tools": Package(
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
    "trainer.task": Package(
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
    "Layers": LAYERS,
    "plugins/retraining/hooks": HOOKS,
    "plugins/retraining/operators": OPERATORS,
    "plugins/retraining/core": CORE,
    "trainer": TRAINER,
    "packages/localcloud/src/localcloud": LOCALCLOUD,
    "packages/localcloud/src/localcloud/vertex": VERTEX,
}
PACKAGES = {name: package for area in AREAS.values() for name, package in area.items()}
# Area: at most so many packages, on so many layers.
LIMITS: dict[str, tuple[int, int]] = {
    "Layers": (18, 9),
    "plugins/retraining/hooks": (3, 2),
    "plugins/retraining/operators": (15, 6),
    "plugins/retraining/core": (18, 7),
    "trainer": (18, 9),
    "packages/localcloud/src/localcloud": (18, 7),
    "packages/localcloud/src/localcloud/vertex": (10, 5),
}


def allowed(importer: str, imported: str) -> bool:
    """Whether one package may import another."""
    return importer == imported or any(means(arrow, imported) for arrow in PACKAGES[importer].may_import)


def means(arrow: str, package: str) -> bool:
    """Whether an entry of `may_import` stands for this package."""
    return package == arrow or (arrow.endswith(".*") and f"{package}.".startswith(arrow.removesuffix("*")))


def table(packages: dict[str, Package]) -> str:
    """Return an area's table, as it stands in ARCHITECTURE.md."""
    lines = ["| package | rule | may import |", "|---|---|---|"]
    for name, package in packages.items():
        lines.append(
            f"| `{name}` | {package.rule} | {', '.join(f'`{each}`' for each in package.may_import) or 'nothing'} |"
        )
    return "\n".join(lines)


def layers(packages: dict[str, Package]) -> int:
    """Return how many layers an area has: the packages on the longest way down its arrows.

    Raises:
        ValueError: Its arrows go in a circle.
    """

    def depth(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise ValueError(f"a circle: {' → '.join([*above, name])}")
        below = [other for other in packages if other != name and allowed(name, other)]
        return 1 + max((depth(other, (*above, name)) for other in below), default=0)

    return max(depth(name, ()) for name in packages)
