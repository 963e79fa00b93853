"""The architecture as drawn: who may import whom, and what stays out of which package.

Comes in: the source of this checkout, read as syntax trees; nothing is imported. Goes out: a list of what does not fit.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

import pytest

from tests.support.packages import AREAS, CORE, DAGS, HOOKS, LIMITS, OPERATORS, PACKAGES, allowed, layers, means, table
from tests.support.product import MODULES, PRODUCT, REPOSITORY, begins_with, in_packages, one_per_line, package_of

# The core decides with the standard library and these.
CORE_THIRD_PARTY = {"pydantic", "pydantic_core", "yaml", "jinja2", "croniter"}
TENSORFLOW = {"tensorflow", "tf_keras", "keras", "tensorflow_io"}
# Serves a SavedModel as the serving container would: it runs in the trainer's environment, as a process of its own.
SERVING_PROCESS = "packages/localcloud/src/localcloud/vertex/endpoints/serving_process.py"
HEAVY = {"google", "tensorflow", "tf_keras", "pandas", "pyarrow", "airflow.providers.google", "vertexai"}
CLOCK_CALLS = {"now", "utcnow", "today", "time", "time_ns", "localtime", "gmtime"}
CLOCK_OWNERS = {"datetime", "date", "time", "pendulum", "timezone"}
CLOCK_MODULES = {"time", "pendulum", "airflow.utils.timezone", "airflow.sdk.timezone"}


def test_every_package_is_found() -> None:
    """Each package has files, so that no rule below holds because it looked at nothing."""
    assert {source.package for source in PRODUCT} == set(PACKAGES)


def test_imports_go_down_only() -> None:
    """DAGs → operators → hooks → core; trainer and local cloud know nobody, the demonstration only the local cloud."""
    findings = [
        f"{source.where}:{found.line} imports {found.target}; expected: {PACKAGES[source.package].may_import}"
        for source in PRODUCT
        for found in source.imports
        if (package := package_of(found.target)) and not allowed(source.package, package)
    ]
    assert not findings, one_per_line(findings)


def test_every_arrow_is_walked() -> None:
    """The table allows no import between packages that nobody makes."""
    walked = {(source.package, package_of(found.target)) for source in PRODUCT for found in source.imports}
    findings = [
        f"{name} may import {other}, and does not"
        for name, package in PACKAGES.items()
        for other in package.may_import
        if not any(means(other, target) for source, target in walked if source == name and target)
    ]
    assert not findings, one_per_line(findings)


@pytest.mark.parametrize("area", AREAS)
def test_an_area_has_few_packages_on_few_layers(area: str) -> None:
    """And no circle between its packages."""
    most_packages, most_layers = LIMITS.get(area, (16, 9))
    assert len(AREAS[area]) <= most_packages
    assert layers(AREAS[area]) <= most_layers


def test_the_page_shows_the_tables() -> None:
    """ARCHITECTURE.md has each area's table as it is here."""
    page = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for area, packages in AREAS.items():
        assert f"{area}\n\n{table(packages)}\n" in page, f"expected below a heading {area}:\n{table(packages)}"


def test_core_needs_no_airflow_and_no_google() -> None:
    """The core imports the standard library, pydantic, YAML, Jinja and croniter (Airflow's own), nothing else."""
    findings = [
        f"{source.where}:{found.line} imports {found.target}"
        for source in in_packages(*CORE)
        for found in source.imports
        if (top := found.target.split(".")[0]) not in sys.stdlib_module_names
        and top not in CORE_THIRD_PARTY
        and package_of(found.target) is None
    ]
    assert not findings, one_per_line(findings)


def _clock_calls(tree: ast.Module) -> Iterator[ast.Call]:
    from_clock = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in CLOCK_MODULES
        for alias in node.names
        if alias.name in CLOCK_CALLS
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id in from_clock:
            yield node
        if isinstance(function, ast.Attribute) and function.attr in CLOCK_CALLS:
            owner = ast.unparse(function.value).split(".")[-1]
            if owner in CLOCK_OWNERS:
                yield node


def test_no_clock_in_core_and_dags() -> None:
    """Time comes from the run: neither a decision nor a DAG file asks what time it is."""
    findings = [
        f"{source.where}:{call.lineno} calls {ast.unparse(call)}"
        for source in in_packages(*CORE, *DAGS)
        for call in _clock_calls(source.tree)
    ]
    assert not findings, one_per_line(findings)


@pytest.mark.parametrize(
    "code",
    [
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime, UTC\ndatetime.now(UTC)",
        "from datetime import datetime\ndatetime.utcnow()",
        "from datetime import date\ndate.today()",
        "import time\ntime.time()",
        "from time import time\ntime()",
        "from airflow.sdk import timezone\ntimezone.utcnow()",
    ],
)
def test_each_way_to_ask_the_clock_is_seen(code: str) -> None:
    """The rule above finds every usual spelling."""
    assert list(_clock_calls(ast.parse(code)))


def test_monotonic_time_is_no_clock() -> None:
    """Durations may be measured."""
    assert not list(_clock_calls(ast.parse("import time\ntime.monotonic()")))


def test_tensorflow_stays_in_the_trainer() -> None:
    """Nothing else imports it, at any level, but benchmarks and the process that serves a SavedModel on a laptop."""
    findings = [
        f"{source.where}:{found.line} imports {found.target}"
        for source in PRODUCT
        for found in source.imports
        if not begins_with(source.package, {"trainer", "bench"})
        and source.where != SERVING_PROCESS
        and begins_with(found.target, TENSORFLOW)
    ]
    assert not findings, one_per_line(findings)


def test_exporting_needs_no_tensorflow() -> None:
    """The export job's modules are numpy and Arrow; TensorFlow's start would cost more than a night's export."""
    findings = [
        f"{source.where}:{found.line} imports {found.target}"
        for source in PRODUCT
        for found in source.imports
        if begins_with(source.module, {"trainer.export"}) and begins_with(found.target, TENSORFLOW)
    ]
    assert not findings, one_per_line(findings)


def test_parsing_a_dag_imports_nothing_heavy() -> None:
    """Google's clients, TensorFlow and pandas cost seconds: DAGs, operators and hooks import them inside functions."""
    findings = [
        f"{source.where}:{found.line} imports {found.target} at module level"
        for source in in_packages(*DAGS, *CORE, *HOOKS, *OPERATORS)
        for found in source.imports
        if found.at_module_level and not found.for_types and begins_with(found.target, HEAVY)
    ]
    assert not findings, one_per_line(findings)


def test_only_hooks_talk_to_google() -> None:
    """Operators and DAGs ask hooks, at any level; so a fake of the hooks is a fake of the cloud."""
    findings = [
        f"{source.where}:{found.line} imports {found.target}"
        for source in in_packages(*DAGS, *OPERATORS)
        for found in source.imports
        if begins_with(found.target, {"google", "airflow.providers.google"})
    ]
    assert not findings, one_per_line(findings)


def test_only_hooks_read_the_environment() -> None:
    """Where things are is read once, and handed to `settings.load`; `include_path` is asked before that."""
    findings = [
        f"{source.where}:{node.lineno} reads {ast.unparse(node)}"
        for source in in_packages(*DAGS, *CORE, *OPERATORS)
        if source.module != "retraining.core.settings"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv")
    ]
    assert not findings, one_per_line(findings)


def _resolve(target: str) -> str | None:
    """Return the module of this repository that an import reaches."""
    while target:
        if target in MODULES:
            return target
        target = target.rpartition(".")[0]
    return None


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """Return one circle of a graph, or nothing."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(graph.get(module, ())):
            if found := visit(target, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := visit(module, []))), [])


def test_no_import_circles() -> None:
    """Also imports inside functions and those for types alone count: hiding a circle does not remove it."""
    graph: dict[str, set[str]] = {}
    for source in PRODUCT:
        targets = {_resolve(found.target) for found in source.imports}
        graph[source.module] = {target for target in targets if target and target != source.module}
    assert not (found := _circle(graph)), " → ".join(found)


def test_a_circle_would_be_found() -> None:
    """The search finds a circle of three, and none in a tree."""
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert not _circle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


READS_JSON = {
    "plugins/retraining/core/documents/json_text.py",
    "plugins/retraining/core/report/models_page/reading.py",  # a NaN in one model's row is that row's matter
    "trainer/contract/json_text.py",
}


def test_one_reader_reads_all_json() -> None:
    """With its limits of depth, numbers and keys: what Python's reader takes beyond them fails far from there."""
    readers = {
        str(path.relative_to(REPOSITORY))
        for folder in ("plugins", "trainer", "dags")
        for path in (REPOSITORY / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and re.fullmatch(r"(\w*json|simplejson)\.loads?|\w+\.json", ast.unparse(node.func))
    }
    assert readers - READS_JSON == set()
    assert readers >= READS_JSON
