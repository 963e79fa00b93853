"""Quotas of Service Usage v1beta1: a metric of an API has one limit per region, until a consumer override lowers it.

In: addresses and bodies. Out: metrics and overrides, as
https://cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from localcloud.errors import CallError

DEFAULT_LIMIT = 1000
_METRIC = re.compile(
    r"/services/(?P<service>[a-z0-9.-]+)/consumerQuotaMetrics/(?P<metric>[^/]+)"
    r"(?P<overrides>/limits/[^/]+/consumerOverrides(?:/(?P<override>[^/]+))?)?"
)
_LIMITED = re.compile(r"custom_model_training_\w+")
_LIMIT = "%2Fproject%2Fregion"


class Quotas:
    """The quotas of all projects.

    Args:
        path: A file with the overrides, by project, metric and region.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_metric(self, rest: str) -> re.Match[str] | None:
        """Read the part of an address behind the project; None: it is about something else."""
        found = _METRIC.fullmatch(rest)
        if found is None:
            return None
        service, _, name = unquote(found["metric"]).partition("/")
        if service != found["service"] or not _LIMITED.fullmatch(name):
            raise CallError(f"Quota metric {unquote(found['metric'])} was not found.", "NOT_FOUND")
        return found

    def describe(self, project: str, number: str, found: re.Match[str]) -> dict[str, object]:
        """Return a metric with its limit, by regions where that differs."""
        metric = unquote(found["metric"])
        name = f"projects/{number}/services/{found['service']}/consumerQuotaMetrics/{found['metric']}"
        buckets: list[dict[str, object]] = [{"effectiveLimit": str(DEFAULT_LIMIT), "defaultLimit": str(DEFAULT_LIMIT)}]
        for region, limit in self._read().get(project, {}).get(metric, {}).items():
            bucket: dict[str, object] = {"effectiveLimit": str(limit), "defaultLimit": str(DEFAULT_LIMIT)}
            bucket["dimensions"] = {"region": region}
            buckets.append(bucket)
        limit_name = f"{name}/limits/{_LIMIT}"
        limits = [{"name": limit_name, "metric": metric, "unit": "1/{project}/{region}", "quotaBuckets": buckets}]
        return {"name": name, "metric": metric, "consumerQuotaLimits": limits}

    def override(self, project: str, found: re.Match[str], body: bytes) -> None:
        """Set the limit of a metric in a region.

        Raises:
            CallError: The body is no override of a region.
        """
        try:
            document = json.loads(body or b"{}")
            region, limit = str(document["dimensions"]["region"]), int(document["overrideValue"])
        except (ValueError, KeyError, TypeError):
            message = "Expected overrideValue, and dimensions with a region."
            raise CallError(message, "INVALID_ARGUMENT") from None
        everything = self._read()
        everything.setdefault(project, {}).setdefault(unquote(found["metric"]), {})[region] = limit
        self._write(everything)

    def remove(self, project: str, found: re.Match[str]) -> None:
        """Take an override back, which is called by its region."""
        everything = self._read()
        everything.get(project, {}).get(unquote(found["metric"]), {}).pop(found["override"], None)
        self._write(everything)

    def _read(self) -> dict[str, dict[str, dict[str, int]]]:
        if not self._path.exists():
            return {}
        everything: dict[str, dict[str, dict[str, int]]] = json.loads(self._path.read_bytes())
        return everything

    def _write(self, everything: Mapping[str, object]) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(everything, indent=2) + "\n")
        temporary.replace(self._path)
