"""Which replica of the job this process is.

Comes in: the environment of a Vertex AI custom job (`CLUSTER_SPEC`, and `TF_CONFIG` where there are several replicas).
Goes out: one `Replica`. https://cloud.google.com/vertex-ai/docs/training/distributed-training#cluster-variables
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from trainer.errors import RequestError

_WORKING_ROLES = ("chief", "master", "workerpool0", "worker", "workerpool1")


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One of the processes of a job that share its work.

    Attributes:
        index: From 0; the chief is 0.
        count: All working replicas, the chief included; parameter servers and evaluators are not among them.
        role: Its role as the service names it, `chief` when alone.
    """

    index: int = 0
    count: int = 1
    role: str = "chief"

    @property
    def is_chief(self) -> bool:
        """Whether this replica's state is the job's state."""
        return self.index == 0


def find_replica(environ: Mapping[str, str]) -> Replica:
    """Read this process's place from the job's environment; alone where nothing is set.

    Raises:
        RequestError: `TF_CONFIG` or `CLUSTER_SPEC` is there and is not what the service writes.
    """
    for variable in ("TF_CONFIG", "CLUSTER_SPEC"):
        text = environ.get(variable, "").strip()
        if text and text != "{}":
            try:
                return _place(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RequestError(
                    f"environment variable {variable}",
                    f"{text[:200]} ({error!r})",
                    '{"cluster": {…}, "task": {"type": …, "index": …}}',
                ) from error
    return Replica()


def _place(config: Mapping[str, Mapping[str, object]]) -> Replica:
    cluster, task = config["cluster"], config["task"]
    role, index = str(task["type"]), int(str(task["index"]))
    before = 0
    count = sum(_size(cluster.get(working)) for working in _WORKING_ROLES)
    for working in _WORKING_ROLES:
        if working == role:
            return Replica(index=before + index, count=count, role=role)
        before += _size(cluster.get(working))
    return Replica(index=index, count=max(count, 1), role=role)


def _size(addresses: object) -> int:
    return len(addresses) if isinstance(addresses, list) else 0
