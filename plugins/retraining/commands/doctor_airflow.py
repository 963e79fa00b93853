"""What `doctor` looks at of the Airflow environment on this machine, and of servers that its connections name.

Run it where Airflow runs: another machine has other settings, and its line says that they are not known.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import time
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path

from retraining.commands.diagnosis import Check, MendableError, NotKnownError, Project
from retraining.commands.shell import attempt
from retraining.core.errors import TrackingError
from retraining.core.notification.messages import recipients
from retraining.core.report.tracking.tracked_run import MLFLOW
from retraining.hooks.notifiers import NotSentError, load_notifier, reach

HOME = "AIRFLOW_HOME"
PARSE_SHARE = 0.5
"""Of the time that Airflow gives a DAG file: a busy scheduler is slower than this machine now."""
LONGEST_PARSE_S = 600
LEAST_AT_ONCE = 2
_HITL = "airflow.providers.standard.operators.hitl"
_PLUGIN = "retraining_plugin.py"
_GROUP = "airflow.plugins"


def look_at_parallelism(project: Project) -> str:
    """Look how many tasks Airflow runs at once; models that are more take turns, for whoever waits holds no place."""
    parallelism = _setting("core", "parallelism")
    most = _setting("core", "max_active_tasks_per_dag")
    for name, value in (("PARALLELISM", parallelism), ("MAX_ACTIVE_TASKS_PER_DAG", most)):
        if value < LEAST_AT_ONCE:
            found, expected = f"{value:g}", f"{LEAST_AT_ONCE} at least: a run reports while its jobs are ended"
            raise MendableError(f"core.{name.lower()}", found, expected, f"export AIRFLOW__CORE__{name}=16")
    models = len(project.specs())
    return f"parallelism {parallelism:g} for {models} models, max_active_tasks_per_dag {most:g}"


def look_at_parsing(project: Project) -> str:
    """Hold the longest time that a DAG file takes against what Airflow gives it."""
    limit = _setting("core", "dagbag_import_timeout")
    folder = Path(_text("core", "dags_folder"))
    files = [path for path in sorted(folder.glob("*.py")) if b"retraining" in path.read_bytes()]
    if not files:
        raise NotKnownError(f"no DAG file of this software in {folder}, which is core.dags_folder of this machine")
    taken = {path.name: parse_seconds(path, project.include) for path in files}
    slowest = max(taken, key=lambda name: taken[name])
    said = f"{slowest} takes {taken[slowest]:.1f} s with the start of Python, of {limit:g} s"
    if taken[slowest] > limit * PARSE_SHARE:
        command = f"export AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT={taken[slowest] * 4:.0f}"
        raise MendableError("core.dagbag_import_timeout", said, f"{PARSE_SHARE:.0%} of it at most", command)
    return said


def parse_seconds(path: Path, include: Path) -> float:
    """Run a DAG file in a process of its own, as Airflow parses it; return how long it took.

    Raises:
        MendableError: It ends with an error, or not in time.
    """
    found = [_text("core", "plugins_folder"), str(path.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "RETRAINING_INCLUDE": str(include), "PYTHONPATH": os.pathsep.join(filter(None, found))}
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, str(path)],
            env=environ,
            cwd=path.parent,
            text=True,
            capture_output=True,
            check=False,
            timeout=LONGEST_PARSE_S,
        )
    except subprocess.TimeoutExpired:
        message = f"not parsed within {LONGEST_PARSE_S} s"
        raise MendableError(path.name, message, "a file that Airflow can load", f"python {path}") from None
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MendableError(path.name, message, "a file that Airflow can load", f"python {path}")
    return time.monotonic() - begun


def look_at_approval(project: Project) -> str:
    """Look for human-in-the-loop where a model waits for somebody."""
    waiting = [spec.name for spec in project.specs() if spec.deployment and spec.deployment.asks != "never"]
    if not waiting:
        return "no model waits for somebody"
    _require_airflow()
    if not isinstance(attempt(partial(importlib.util.find_spec, _HITL)), ModuleSpec):
        found = f"no {_HITL}, which {', '.join(waiting)} need"
        raise MendableError(
            "deployment.approval", found, "it", "pip install 'apache-airflow-providers-standard>=1.3.0'"
        )
    return f"{', '.join(waiting)} can wait for somebody"


def look_at_plugin(_: Project) -> str:
    """Look for the plugin of the Models page: as a file of the plugins folder, or installed."""
    _require_airflow()
    path = Path(_text("core", "plugins_folder")) / _PLUGIN
    if path.is_file():
        return f"{path} is there"
    installed = [each.value for each in importlib.metadata.entry_points(group=_GROUP)]
    if any(value.startswith("retraining.") for value in installed):
        return "installed"
    raise MendableError(
        "core.plugins_folder",
        f"no {path}, and no package installed that has it",
        "one of them",
        "make deploy ENV=ENVIRONMENT BUCKET=BUCKET",
    )


def look_at_messages(project: Project) -> str:
    """Connect to every mail server and webhook, import every notifier of the team's own; nothing is sent."""
    settings = project.settings
    found = {each.through: each for spec in project.specs() for each in recipients(spec.notify, settings)}
    if not found:
        return "nobody is told of anything"
    _require_airflow()
    reached, errors = [], []
    for name, recipient in found.items():
        own, is_mail = recipient.notifier, recipient.owner is not None
        answer = attempt(partial(reach, name, is_mail=is_mail) if own is None else partial(load_notifier, own))
        if isinstance(answer, NotSentError):
            errors.append(str(answer))
        elif isinstance(answer, Exception):
            raise answer
        else:
            reached.append(name)
    if errors:
        raise MendableError(
            "Airflow's connections", "; ".join(errors), "servers that can be reached", "airflow connections get NAME"
        )
    return f"reached {', '.join(reached)}"


def look_at_trackers(project: Project) -> str:
    """Ask every experiment tracker of the environment for the runs of a model; nothing is made there."""
    trackers = list(dict.fromkeys(project.settings.tracking))
    if not trackers:
        return "runs are shown in no experiment tracker"
    if MLFLOW in trackers:
        _require_airflow()
    model = next((spec.name for spec in project.specs()), "none")
    for tracker in trackers:
        answer = attempt(partial(project.cloud.trackers.digests, tracker, model))
        if isinstance(answer, TrackingError):
            raise MendableError(answer.where, answer.found, answer.expected, answer.way_out)
        if isinstance(answer, Exception):
            raise answer
    return f"{' and '.join(trackers)} answered"


def _setting(section: str, key: str) -> float:
    return float(_text(section, key))


def _text(section: str, key: str) -> str:
    _require_airflow()
    from airflow.configuration import conf

    return str(conf.get(section, key))


def _require_airflow() -> None:
    """Ask whether this machine has an Airflow environment; to import Airflow elsewhere would make one.

    Raises:
        NotKnownError: It has none.
    """
    home = os.environ.get(HOME)
    if importlib.util.find_spec("airflow") is None or not home or not Path(home).is_dir():
        raise NotKnownError(f"this machine is no Airflow environment (no Airflow, or no folder {HOME}): run it there")


AIRFLOW_CHECKS = (
    Check(name="parallelism", look=look_at_parallelism, needs=("models",)),
    Check(name="parsing", look=look_at_parsing, needs=("models",)),
    Check(name="approval", look=look_at_approval, needs=("models",)),
    Check(name="plugin", look=look_at_plugin),
    Check(name="messages", look=look_at_messages, needs=("settings", "models")),
    Check(name="trackers", look=look_at_trackers, needs=("settings", "models")),
)
