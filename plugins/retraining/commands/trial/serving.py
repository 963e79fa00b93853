"""An endpoint of its own: both versions, their traffic, what they answer, what is logged and measured of it.

Two of the cheapest machines, from the first deployment to the cleaning.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from retraining.commands.trial.cleaning import delete_endpoint, delete_model
from retraining.commands.trial.deployments import (
    ANSWER_S,
    LOGGED_WITHIN,
    REPLICAS,
    SHARED_WITHIN,
    deploy,
    deployed_id,
    find_endpoint,
    version_name,
)
from retraining.commands.trial.probes import MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.commands.trial.registry import run_key
from retraining.commands.trial.statements import TEMPLATE
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.document import format_time
from retraining.core.errors import ConflictError
from retraining.core.naming.vertex import ROLLOUT_LABEL
from retraining.hooks.endpoints import Endpoint, EndpointOptions
from retraining.hooks.predictions import Answer, Unanswered

MEASURED_WITHIN = timedelta(minutes=15)
REQUESTS = 200
"""At even shares each of two has 60 to 140 of them, but for one time in 10^8."""
LEAST = 60
GENERATION = 7
ASTRAY = timedelta(minutes=10)
"""By which the monitor lets a request's time differ from BigQuery's clock."""


@dataclass(kw_only=True)
class ServingProbes:
    """Rows END-…, LOG-…, MON-…, REG-7 and REG-9.

    Attributes:
        trial: The trial.
        asked: Requests that were answered, by deployed model.
        began: When the first one was sent.
        address: The endpoint as it is asked.
        counted: The end of the window in which all were counted, and how many by deployed model.
        refused: Requests that the model could not read.
        looks: At the log.
        longest_s: The longest wait for an answer.
    """

    trial: Trial
    asked: Counter[str] = field(default_factory=Counter)
    began: datetime | None = None
    address: Endpoint | None = None
    counted: tuple[datetime, Mapping[str, int]] | None = None
    refused: int = 0
    looks: int = 0
    longest_s: float = 0.0

    def probes(self) -> Sequence[Probe]:
        """Return them in the order that they need; the last ones take everything away."""
        return (
            *self._deploying(),
            *self._sharing(),
            *self._watching(),
            *self._watching_the_log(),
            *self._taking_away(),
        )

    def _deploying(self) -> Sequence[Probe]:
        private = self.trial.cloud.settings.endpoint_network is not None
        return (
            Probe(
                id="END-5",
                asked="a first model is deployed without a share",
                supposed={"deployed": True, "shares": 0},
                ask=self.deploy_first,
            ),
            Probe(
                id="END-6",
                asked="an id of a deployed model is used again",
                supposed={"refused": True, "deployed": 1},
                ask=self.deploy_again,
            ),
            Probe(
                id="END-15" if private else "END-8",
                asked=f"a {'private' if private else 'dedicated'} endpoint names an address",
                supposed={"an address of its own": True},
                ask=self.read_address,
            ),
            Probe(
                id="END-10",
                asked="TensorFlow Serving answers as custom container",
                supposed={"answer to x = 3": "7", "named": "the first"},
                ask=self.serve_first,
            ),
        )

    def _sharing(self) -> Sequence[Probe]:
        return (
            Probe(
                id="END-1",
                asked="shares of 99 and 1",
                supposed={"shares": "99 and 1"},
                ask=self.share_one_percent,
            ),
            Probe(
                id="END-4",
                asked="traffic and a label in one update",
                supposed={"shares": "50 and 50", "label": str(GENERATION)},
                ask=self.share_evenly,
            ),
            Probe(
                id="END-3",
                asked="an update with an etag of before",
                supposed={"refused": True, "shares": "50 and 50", "each change has another etag": True},
                ask=self.update_late,
            ),
            Probe(
                id="END-2",
                asked=f"{REQUESTS} requests at even shares",
                supposed={"both have their share": True, "failed": 0},
                ask=self.ask_many,
            ),
            Probe(
                id="END-9",
                asked="who answers, by the answers",
                supposed={"answered by others than the two": 0},
                ask=self.read_who,
            ),
        )

    def _watching(self) -> Sequence[Probe]:
        return (
            Probe(
                id="LOG-1",
                asked="the requests in the log table",
                supposed={"all are there": True, "instances per request": 1, "as many answers": True},
                ask=self.read_log,
            ),
            Probe(
                id="LOG-2",
                asked="the times in the log table",
                supposed={"requests of another time": 0},
                ask=self.read_times,
            ),
            Probe(
                id="MON-1",
                asked="the requests in Cloud Monitoring, by deployed model",
                supposed={"all are counted": True, "errors": 0, "latencies are there": True},
                ask=self.read_metrics,
            ),
            Probe(
                id="MON-3",
                asked="the times of the answers, as distributions and percentiles",
                supposed={
                    "each answer is in a bucket": True,
                    "percentiles that rise, by model": 2,
                    "in milliseconds no longer than the callers waited": True,
                },
                ask=self.read_latencies,
            ),
            Probe(
                id="MON-4",
                asked="requests of two windows that touch, beside those of both",
                supposed={"as many": True},
                ask=self.read_windows,
            ),
        )

    def _watching_the_log(self) -> Sequence[Probe]:
        return (
            Probe(
                id="LOG-5",
                asked="a request that the model cannot read, beside those that it answered",
                supposed={"refused": True, "logged": 0},
                ask=self.ask_badly,
            ),
            Probe(
                id="LOG-3",
                asked="the log table's partitions",
                supposed={"column": "logging_time"},
                ask=self.read_partitions,
            ),
            Probe(
                id="MON-2",
                asked="what was counted is counted again, later",
                supposed={"none is gone": True, "none that nobody asked": True},
                ask=self.read_metrics_again,
            ),
            Probe(
                id="LOG-4",
                asked="another share is logged, while it serves",
                supposed={"share": "0.5"},
                ask=self.change_sampling,
            ),
        )

    def _taking_away(self) -> Sequence[Probe]:
        return (
            Probe(
                id="REG-7",
                asked="a version that is deployed is deleted",
                supposed={"refused": True},
                ask=self.delete_deployed,
            ),
            Probe(
                id="END-7",
                asked="a model that has a share is undeployed",
                supposed={"refused": True, "deployed": 2},
                ask=self.undeploy_serving,
            ),
            Probe(
                id="REG-9",
                asked="endpoint and model are deleted, with all versions",
                supposed={"the endpoint": "gone", "the model": "gone"},
                ask=self.delete,
            ),
        )

    def deploy_first(self) -> Mapping[str, Fact]:
        """Make the endpoint, deploy the first version."""
        options = EndpointOptions(dedicated=True, sampling=1.0)
        self.trial.cloud.endpoints.ensure(MODEL, self.trial.table("log"), {}, options)
        self._deploy(1)
        found = self._endpoint()
        return {"deployed": self._id(1) in found.deployed, "shares": len(found.traffic)}

    def deploy_again(self) -> Mapping[str, Fact]:
        """Deploy the first version to the id that it has."""
        refused = self.trial.calls.endpoints.deploy_refused(self._endpoint(), self._version(1), self._id(1), REPLICAS)
        return {"refused": refused is not None, "deployed": len(self._endpoint().deployed)}

    def read_address(self) -> Mapping[str, Fact]:
        """Read the endpoint, which is asked at that address from now on."""
        return {"an address of its own": bool(self._endpoint().address)}

    def serve_first(self) -> Mapping[str, Fact]:
        """Give the first version all traffic, and ask it."""
        self.trial.cloud.endpoints.set_traffic(self._endpoint(), {self._id(1): 100})
        self.began = datetime.now(UTC)

        def answer() -> tuple[object, str] | None:
            found = self._ask(3.0)
            return None if isinstance(found, Unanswered) else (found.predictions[0], found.deployed_model_id)

        value, who = self.trial.wait("first answer", answer, SHARED_WITHIN)
        named = {self._id(1): "the first", self._id(2): "the second"}.get(who, "another one")
        shown = value.get("y") if isinstance(value, Mapping) else value
        return {"answer to x = 3": f"{shown:g}" if isinstance(shown, float) else str(shown), "named": named}

    def share_one_percent(self) -> Mapping[str, Fact]:
        """Deploy the second version, and give it the smallest share."""
        self._deploy(2)
        endpoint = self._endpoint()
        self.trial.cloud.endpoints.set_traffic(endpoint, {self._id(1): 99, self._id(2): 1})
        return {"shares": self._shares()}

    def share_evenly(self) -> Mapping[str, Fact]:
        """Give each half, and the endpoint a label."""
        even = {self._id(1): 50, self._id(2): 50}
        self.trial.cloud.endpoints.set_traffic(self._endpoint(), even, GENERATION)
        return {"shares": self._shares(), "label": self._endpoint().labels.get(ROLLOUT_LABEL)}

    def update_late(self) -> Mapping[str, Fact]:
        """Change an endpoint as it was before another change."""
        endpoints, before = self.trial.cloud.endpoints, self._endpoint()
        even = {self._id(1): 50, self._id(2): 50}
        endpoints.set_traffic(before, even, GENERATION + 1)
        after = self._endpoint()
        refused = _conflicts(lambda: endpoints.set_traffic(before, {self._id(1): 100}, GENERATION + 2))
        return {
            "refused": refused,
            "shares": self._shares(),
            "each change has another etag": after.etag != before.etag,
        }

    def ask_many(self) -> Mapping[str, Fact]:
        """Ask until both have answered once, then many times."""
        seen: set[str] = set()

        def both() -> bool:
            found = self._ask(1.0)
            seen.update([] if isinstance(found, Unanswered) else [found.deployed_model_id])
            return len(seen) > 1

        self.trial.wait("both answered", both, SHARED_WITHIN)
        counted: Counter[str] = Counter()
        failed = 0
        began = time.monotonic()
        for number in range(REQUESTS):
            found = self._ask(float(number))
            if isinstance(found, Unanswered):
                failed += 1
            else:
                counted[found.deployed_model_id] += 1
        self.trial.measured["requests a second"] = round(REQUESTS / (time.monotonic() - began), 1)
        self.trial.measured["of the second"] = counted[self._id(2)]
        return {"both have their share": all(counted[self._id(each)] >= LEAST for each in (1, 2)), "failed": failed}

    def read_who(self) -> Mapping[str, Fact]:
        """Count the answers of whoever is neither."""
        others = self.asked.keys() - {self._id(1), self._id(2)}
        return {"answered by others than the two": sum(self.asked[each] for each in others)}

    def read_log(self) -> Mapping[str, Fact]:
        """Read the log until as many requests are there as were answered."""
        found = self._wait_for_log("all logged")
        return {
            "all are there": {key: counts[0] for key, counts in found.items()} == dict(self.asked),
            "instances per request": max(counts[1] for counts in found.values()),
            "as many answers": all(counts[0] == counts[2] for counts in found.values()),
        }

    def read_times(self) -> Mapping[str, Fact]:
        """Count what has another time than that of the requests, give or take what the monitor bears with."""
        began, now = self.began or datetime.now(UTC), datetime.now(UTC)
        times = {"first": began - ASTRAY, "last": now + ASTRAY}
        query = Query(
            sql=render(TEMPLATE, statement="astray", table=self.trial.table("log")),
            parameters=tuple(
                Parameter(name=name, type="TIMESTAMP", value=format_time(time)) for name, time in times.items()
            ),
        )
        (row,) = self.trial.cloud.warehouse.run_query(query, self.trial.job_id("astray"), "trial, the log's times").rows
        return {"requests of another time": row["astray"]}

    def _wait_for_log(self, what: str) -> dict[str, tuple[int, int, int]]:
        """Return requests, instances in one at most, and answered ones by deployed model, once all are there."""
        table = self.trial.table("log")
        query = Query(sql=render(TEMPLATE, statement="requests", table=table))

        def read() -> dict[str, tuple[int, int, int]] | None:
            if self.trial.cloud.warehouse.table_schema(table) is None:
                return None
            self.looks += 1
            job_id = self.trial.job_id(f"log-{self.looks}")
            rows = self.trial.cloud.warehouse.run_query(query, job_id, "trial, the log").rows
            found = {row["deployed_model_id"]: (row["requests"], row["instances"], row["answered"]) for row in rows}
            return found if sum(counts[0] for counts in found.values()) >= self.asked.total() else None

        return self.trial.wait(what, read, LOGGED_WITHIN)

    def ask_badly(self) -> Mapping[str, Fact]:
        """Ask for what the model has no input for, then something that it has; read the log until that is there."""
        refused = self.trial.cloud.endpoints.predict_once(self._asked_at(), [{"nothing": "at all"}], ANSWER_S)
        self.refused += isinstance(refused, Unanswered)
        self.trial.wait("answer after a refusal", lambda: not isinstance(self._ask(2.0), Unanswered), SHARED_WITHIN)
        logged = self._wait_for_log("logged after a refusal")
        return {
            "refused": isinstance(refused, Unanswered),
            "logged": sum(counts[0] for counts in logged.values()) - self.asked.total(),
        }

    def read_partitions(self) -> Mapping[str, Fact]:
        """Read how the table is partitioned."""
        return {"column": self.trial.calls.tables.partitioning_column(self.trial.table("log"))}

    def change_sampling(self) -> Mapping[str, Fact]:
        """Log half of the requests from now on."""
        self.trial.cloud.endpoints.set_sampling(self._endpoint(), 0.5)
        return {"share": f"{self._endpoint().sampling:g}"}

    def read_metrics(self) -> Mapping[str, Fact]:
        """Read Cloud Monitoring until it has counted as many requests as were answered."""
        began, name = self.began or datetime.now(UTC), self._endpoint().name

        def read() -> dict[str, tuple[int, int, bool]] | None:
            end = max(datetime.now(UTC), began + timedelta(minutes=1))
            served = self.trial.cloud.serving_metrics.served(name, began - timedelta(minutes=1), end)
            found = {key: (each.requests, each.errors, each.latency_ms is not None) for key, each in served.items()}
            self.counted = end, {key: each.requests for key, each in served.items()}
            return found if sum(counts[0] for counts in found.values()) >= self.asked.total() else None

        found = self.trial.wait("all counted", read, MEASURED_WITHIN)
        return {
            "all are counted": {key: counts[0] for key, counts in found.items()} == dict(self.asked),
            "errors": sum(counts[1] for counts in found.values()),
            "latencies are there": all(counts[2] for counts in found.values()),
        }

    def read_metrics_again(self) -> Mapping[str, Fact]:
        """Read the window of before."""
        if self.counted is None:
            raise LookupError("nothing was counted before")
        (end, before), began = self.counted, self.began or datetime.now(UTC)
        served = self.trial.cloud.serving_metrics.served(self._endpoint().name, began - timedelta(minutes=1), end)
        now = {key: each.requests for key, each in served.items()}
        self.trial.measured["counted a second time"] = sum(now.values())
        return {
            "none is gone": all(now.get(key, 0) >= requests for key, requests in before.items()),
            "none that nobody asked": sum(now.values()) <= self.asked.total() + self.refused,
        }

    def read_latencies(self) -> Mapping[str, Fact]:
        """Read buckets until they have as many answers as there were, then the percentiles."""
        began, name = (self.began or datetime.now(UTC)).replace(second=0, microsecond=0), self._endpoint().name
        start = began - timedelta(minutes=1)

        def read() -> Counter[str] | None:
            now = datetime.now(UTC)
            minutes = timedelta(minutes=2 + (now - start) // timedelta(minutes=1))
            found: Counter[str] = Counter()
            for each in self.trial.cloud.serving_metrics.measured(name, start, start + minutes, minutes):
                found.update({key: int(seen.latencies.total) for key, seen in each.items()})
            return found if found.total() >= self.asked.total() else None

        counted = self.trial.wait("all timed", read, MEASURED_WITHIN)
        answered = self.trial.cloud.serving_metrics.answered(name, start, datetime.now(UTC) + timedelta(minutes=1))
        times = [(each.p50_ms, each.p95_ms, each.p99_ms) for each in answered.values()]
        rising = [(low, mid, high) for low, mid, high in times if low and mid and high and low <= mid <= high]
        longest = 1000 * self.longest_s
        self.trial.measured |= {"longest wait of a caller, ms": round(longest, 1)}
        return {
            "each answer is in a bucket": counted == self.asked,
            "percentiles that rise, by model": len(rising),
            "in milliseconds no longer than the callers waited": all(low <= longest for low, _, _ in rising),
        }

    def read_windows(self) -> Mapping[str, Fact]:
        """Read what was counted in the minutes since the first request, in one window and in two."""
        began = (self.began or datetime.now(UTC)).replace(second=0, microsecond=0)
        half = timedelta(minutes=1 + (datetime.now(UTC) - began) // timedelta(minutes=2))
        middle, end, name = began + half, began + 2 * half, self._endpoint().name

        def count(start: datetime, until: datetime) -> int:
            return sum(each.requests for each in self.trial.cloud.serving_metrics.served(name, start, until).values())

        return {"as many": count(began, middle) + count(middle, end) == count(began, end)}

    def delete_deployed(self) -> Mapping[str, Fact]:
        """Delete the second version."""
        version = self.trial.cloud.registry.find_by_run(MODEL, run_key(self.trial, 2))
        if version is None:
            raise LookupError("the second version is not there")
        return {"refused": not self.trial.cloud.registry.delete_version(version)}

    def undeploy_serving(self) -> Mapping[str, Fact]:
        """Undeploy the second version, which has half of the traffic."""
        refused = self.trial.calls.endpoints.undeploy_serving(self._endpoint(), self._id(2))
        return {"refused": refused is not None, "deployed": len(self._endpoint().deployed)}

    def delete(self) -> Mapping[str, Fact]:
        """Take both away as in the end, and look for them."""
        delete_endpoint(self.trial)
        delete_model(self.trial)
        return {
            "the endpoint": "gone" if self.trial.cloud.endpoints.get(MODEL) is None else "there",
            "the model": "there" if self.trial.cloud.registry.list_versions(MODEL) else "gone",
        }

    def _deploy(self, number: int) -> None:
        deploy(self.trial, number, REPLICAS)

    def _ask(self, x: float) -> Answer | Unanswered:
        address, began = self._asked_at(), time.monotonic()
        found = self.trial.cloud.endpoints.predict_once(address, [{"x": x}], ANSWER_S)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if not isinstance(found, Unanswered):
            self.asked[found.deployed_model_id] += 1
        return found

    def _asked_at(self) -> Endpoint:
        """Return the endpoint as it is asked, read once: a look each time would be most of the time of a request."""
        if self.address is None:
            self.address = self._endpoint()
        return self.address

    def _endpoint(self) -> Endpoint:
        return find_endpoint(self.trial)

    def _shares(self) -> str:
        traffic = self._endpoint().traffic
        return " and ".join(str(traffic.get(self._id(each), 0)) for each in (1, 2))

    def _version(self, number: int) -> str:
        return version_name(self.trial, number)

    def _id(self, number: int) -> str:
        return deployed_id(self.trial, number)


def _conflicts(change: Callable[[], object]) -> bool:
    try:
        change()
    except ConflictError:
        return True
    return False
