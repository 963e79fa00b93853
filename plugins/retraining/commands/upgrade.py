"""The command `upgrade-check`: what this release makes of what an earlier one left, before it is brought into use.

It reads the bucket and lists jobs; it writes nothing. What it cannot read is named, each by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import click

from retraining.commands.shell import INCLUDE, Shell, attempt, known_error, print_answer
from retraining.core.documents import KINDS, Plan, Rollout
from retraining.core.jobs.job import Job
from retraining.core.naming import storage, vertex
from retraining.core.planning.upgrades import key_changes
from retraining.core.promotion import rollouts
from retraining.core.spec.files import load_query, load_spec
from retraining.core.spec.teams import find_specs
from retraining.hooks.ports import CloudPort

MOST_RUNS = 5
State = Literal["ok", "goes on", "changes", "wrong"]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What this release makes of one thing.

    Attributes:
        model: Whose.
        state: `goes on`: something is under way, and this release carries it on; `changes`: it is done otherwise;
            `wrong`: this release refuses it.
        text: What it is.
    """

    model: str
    state: State
    text: str

    def line(self) -> str:
        """Return it as one line."""
        return f"{self.state:<8} {self.model:<24} {self.text}"


@click.command("upgrade-check")
@click.option(
    "--runs", "most", type=click.IntRange(1, 1000), default=MOST_RUNS, show_default=True, help="Of each model."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@INCLUDE
@click.pass_obj
def check_upgrade(shell: Shell, most: int, include: Path | None, *, as_json: bool) -> None:
    """Say what this release makes of the bucket's documents, runs and jobs.

    Run it with the new release's software and settings, before they are brought into use. There is
    a line for each model's file, its stored documents, its newest run, its rollout and each of its jobs. It begins with
    ok, with goes on (under way, carried on), with changes (done otherwise, and how) or with wrong (refused, and why).
    The status is 1 where anything is wrong. It writes nothing.
    """
    cloud, folder = shell.connect(), include or shell.find_include()
    jobs = cloud.jobs.find_active(vertex.OWNER_LABEL)
    found = [seen for path in find_specs(folder) for seen in look_at_model(cloud, folder, path, most, jobs)]
    is_good = all(seen.state != "wrong" for seen in found)
    as_lines = [seen.line() for seen in found] or ["no models"]
    print_answer([json.dumps([asdict(seen) for seen in found], indent=2)] if as_json else as_lines, is_good=is_good)


def look_at_model(cloud: CloudPort, include: Path, path: Path, most: int, jobs: list[Job]) -> Iterator[Seen]:
    """Yield what this release makes of one model's file, documents, newest run, rollout and jobs.

    Args:
        cloud: Whose bucket is read.
        include: Folder with models and sql.
        path: The model's file.
        most: Of its newest runs and monitor runs, those whose documents are read.
        jobs: All that are under way.
    """
    model = path.stem
    found = partial(Seen, model=model)
    refused = attempt(lambda: load_query(load_spec(path), include))
    if isinstance(refused, Exception):
        yield found(state="wrong", text=f"its file: {_words(refused)}")
    else:
        yield found(state="ok", text="its file")
    uris = list(_documents(cloud, model, most))
    wrong = list(_unreadable(cloud, uris))
    yield from (found(state="wrong", text=words) for words in wrong)
    yield found(state="ok", text=f"{len(uris) - len(wrong)} of {len(uris)} stored documents")
    yield from (found(state=state, text=text) for state, text in _newest_run(cloud, model))
    yield from (found(state=state, text=text) for state, text in _rollout(cloud, model))
    for job in jobs:
        if job.labels.get(vertex.MODEL_LABEL) == model:
            task, run = job.labels.get(vertex.TASK_LABEL, "a job"), job.labels.get(vertex.RUN_LABEL, "no run")
            yield found(state="goes on", text=f"{task} of {run} ({job.job_id}): its task finds it again")


def _documents(cloud: CloudPort, model: str, most: int) -> Iterator[str]:
    """Yield the addresses of documents: of the newest runs and monitor runs, and those that a model has once."""
    artifacts, bucket = cloud.artifacts, cloud.settings.bucket
    for folders in (storage.runs_uri(bucket, model), storage.monitors_uri(bucket, model)):
        for folder in artifacts.list_folders(folders)[-most:]:
            yield from (uri for uri in artifacts.list_uris(folder, suffix=".json") if _kind(uri) in KINDS)
    for uri in (storage.rollout_uri(bucket, model), storage.pause_uri(bucket, model)):
        if artifacts.exists(uri):
            yield uri


def _unreadable(cloud: CloudPort, uris: list[str]) -> Iterator[str]:
    for uri, data in cloud.artifacts.read_some(uris).items():
        error = attempt(partial(KINDS[_kind(uri)].parse, data, uri))
        if isinstance(error, Exception):
            yield _words(error)


def _newest_run(cloud: CloudPort, model: str) -> Iterator[tuple[State, str]]:
    folders = cloud.artifacts.list_folders(storage.runs_uri(cloud.settings.bucket, model))
    uri = storage.document_uri(folders[-1], Plan.kind_name()) if folders else ""
    data = cloud.artifacts.read_object(uri) if uri else None
    if data is None:
        return
    changes = attempt(partial(key_changes, data, uri))
    if isinstance(changes, Exception):
        return  # named among the documents
    key = uri.split("/")[-2]
    if changes:
        yield "changes", f"{key} planned again would be another run, with jobs of its own: {'; '.join(changes)}"
    else:
        yield "ok", f"{key} planned again is the same run"


def _rollout(cloud: CloudPort, model: str) -> Iterator[tuple[State, str]]:
    uri = storage.rollout_uri(cloud.settings.bucket, model)
    data = cloud.artifacts.read_object(uri)
    rollout = attempt(partial(Rollout.parse, data, uri)) if data else None
    if isinstance(rollout, Rollout) and rollouts.is_open(rollout):
        yield "goes on", f"the rollout of {rollout.run_key} ({rollout.state}): its task carries it on"


def _kind(uri: str) -> str:
    return uri.rpartition("/")[2].removesuffix(".json")


def _words(error: Exception) -> str:
    return str(known_error(error) or f"{type(error).__name__}: {error}")
