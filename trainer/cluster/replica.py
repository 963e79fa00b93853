"""Which replica of the job this process is, and what it reads of each split. No TensorFlow: files come before it.

Comes in: the environment of a Vertex AI custom job (`CLUSTER_SPEC`, and `TF_CONFIG` where there are several replicas).
Goes out: one `Replica`. https://cloud.google.com/vertex-ai/docs/training/distributed-training#cluster-variables

Where several processes train in lockstep, each reads the whole split and takes its rows of every batch (by `examples`:
the batches are those of one machine), or its share of the files only (by `files`: less to read and to keep, other
batches of the same size).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.contract.documents import ManifestSplit, Training
from trainer.contract.json_text import read_json
from trainer.errors import RequestError
from trainer.input.source import Share

_WORKING_ROLES = ("chief", "master", "workerpool0", "worker", "workerpool1")
_SERVING_ROLES = ("ps", "workerpool2")
_WATCHING_ROLES = ("evaluator", "workerpool3")


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One of the processes of a job that share its work.

    Attributes:
        index: From 0; the chief is 0.
        count: All working replicas, the chief included; parameter servers and evaluators are not among them.
        role: Its role as the service names it, `chief` when alone.
        servers: Parameter servers of the job.
    """

    index: int = 0
    count: int = 1
    role: str = "chief"
    servers: int = 0

    @property
    def is_chief(self) -> bool:
        """Whether this replica's state is the job's state."""
        return self.index == 0 and not self.is_server and not self.is_evaluator

    @property
    def is_alone(self) -> bool:
        """Whether the job has no other replica to train with."""
        return self.count == 1 and not self.servers

    @property
    def is_server(self) -> bool:
        """Whether it holds variables for the others."""
        return self.role in _SERVING_ROLES

    @property
    def is_evaluator(self) -> bool:
        """Whether it watches the training from beside."""
        return self.role in _WATCHING_ROLES


def find_replica(environ: Mapping[str, str]) -> Replica:
    """Read this process's place from the job's environment; alone where nothing is set.

    Raises:
        RequestError: `TF_CONFIG` or `CLUSTER_SPEC` is there and is not what the service writes.
    """
    for variable in ("TF_CONFIG", "CLUSTER_SPEC"):
        text = environ.get(variable, "").strip()
        if text and text != "{}":
            try:
                place: Any = read_json(text)
                return _place(place)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RequestError(
                    f"environment variable {variable}",
                    f"{text[:200]} ({error!r})",
                    '{"cluster": {…}, "task": {"type": …, "index": …}}',
                ) from error
    return Replica()


def uses_servers(replica: Replica, strategy: str) -> bool:
    """Return whether the training is one with parameter servers, by the strategy that the request names."""
    return strategy == "parameter_server" or (strategy == "auto" and replica.servers > 0)


def _place(config: Mapping[str, Mapping[str, object]]) -> Replica:
    cluster, task = config["cluster"], config["task"]
    role, index = str(task["type"]), int(str(task["index"]))
    before = 0
    count = sum(_size(cluster.get(working)) for working in _WORKING_ROLES)
    servers = sum(_size(cluster.get(serving)) for serving in _SERVING_ROLES)
    for working in _WORKING_ROLES:
        if working == role:
            return Replica(index=before + index, count=count, role=role, servers=servers)
        before += _size(cluster.get(working))
    return Replica(index=index, count=max(count, 1), role=role, servers=servers)


def _size(addresses: object) -> int:
    return len(addresses) if isinstance(addresses, list) else 0


_MOST_ROWS = 20_000_000  # above that, `auto` is by files


def training_share(training: Training, rows: int, replica: Replica) -> Share:
    """Return the part of each split that this process reads."""
    alone = replica.count == 1 or replica.is_evaluator or replica.servers or training.strategy == "parameter_server"
    by_files = training.sharding == "files" or (training.sharding == "auto" and rows > _MOST_ROWS)
    return Share(index=replica.index, count=replica.count) if by_files and not alone else Share()


def most_rows(split: ManifestSplit, share: Share) -> int:
    """Return the most examples that any of the processes reads, as `input.files` hands files out."""
    rows = [file.rows for file in split.files if file.rows]
    if not rows or share.count == 1:
        return -(-split.rows // share.count)
    if len(rows) >= share.count:
        return max(sum(rows[index :: share.count]) for index in range(share.count))
    return sum(-(-number // share.count) for number in rows)
