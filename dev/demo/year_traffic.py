"""Customers of past days: they ask the endpoint about each day's flights, at that day's time.

Comes in: flights, an endpoint. Goes out: answers, which the request log has with the time of the replay; how good they
were, once the labels are known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import requests

from demo.customers import score_of

MISSING_NUMBER = -1e38
"""What a model takes for a missing number where JSON has no NaN."""
_SLOT = timedelta(hours=6)


@dataclass(frozen=True, kw_only=True)
class Told:
    """One answer: about which flight, by which version, the score, and the label that became known."""

    key: str
    version_id: str
    score: float
    label: int


class Clock:
    """The time that the local cloud stamps predictions with."""

    def __init__(self) -> None:
        self._url = f"https://{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com/clock"
        self._headers = {"Authorization": f"Bearer {os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"}

    def set_time(self, now: datetime) -> None:
        """Let a past moment hold."""
        requests.post(self._url, json={"now": now.isoformat()}, headers=self._headers, timeout=60).raise_for_status()

    def reset(self) -> None:
        """Let the wall clock hold."""
        requests.delete(self._url, headers=self._headers, timeout=60).raise_for_status()


class Traffic:
    """All flights that are asked about.

    Args:
        flights: In order of their departure.
        features: Names of the model's features.
        key: Name of the key.
        instances_per_request: Of one request.
    """

    def __init__(
        self, flights: Iterable[Mapping[str, Any]], features: Sequence[str], key: str, instances_per_request: int
    ) -> None:
        whole = [flight for flight in flights if None not in [flight[name] for name in features]]
        self._flights = whole
        self._features, self._key = features, key
        self._size = instances_per_request
        self._clock = Clock()

    def ask(self, endpoint_name: str, start: datetime, end: datetime, without: Sequence[str] = ()) -> list[list[Told]]:
        """Ask about the flights of some days at their time; return the answers, request by request.

        Args:
            endpoint_name: Which endpoint is asked.
            start: The first moment.
            end: The moment after the last one.
            without: Columns that are missing.
        """
        from google.cloud import aiplatform_v1  # after the local cloud's variables are set

        region = endpoint_name.split("/")[3]
        options = {"api_endpoint": f"{region}-aiplatform.googleapis.com"}
        client = aiplatform_v1.PredictionServiceClient(client_options=options)
        answers = []
        for moment, flights in self._slots(start, end):
            self._clock.set_time(moment)
            for first in range(0, len(flights), self._size):
                asked = flights[first : first + self._size]
                told = client.predict(
                    endpoint=endpoint_name, instances=[self.instance(item, without) for item in asked]
                )
                pairs = zip(asked, told.predictions, strict=True)
                answers.append([_told(*pair, self._key, told.model_version_id) for pair in pairs])
        self._clock.reset()
        return answers

    def instance(self, flight: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
        """Return a request about a flight."""
        values = {name: MISSING_NUMBER if name in without else flight[name] for name in self._features}
        return {self._key: flight[self._key], **values}

    def sample(self, start: datetime, end: datetime, most: int) -> list[dict[str, Any]]:
        """Return some requests of a time, for customers who ask while versions change."""
        there = [item for item in self._flights if start <= item["scheduled_departure"] < end]
        return [self.instance(item) for item in there[:most]]

    def _slots(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, list[Mapping[str, Any]]]]:
        while start < end:
            there = [item for item in self._flights if start <= item["scheduled_departure"] < start + _SLOT]
            yield start + _SLOT / 2, there
            start += _SLOT


def measure_auc(answers: Iterable[Told]) -> float | None:
    """Return the area under the ROC curve by ranks, ties counted half (Mann, Whitney 1947); None of one class."""
    ranked = sorted(answers, key=lambda item: item.score)
    positives = sum(item.label for item in ranked)
    negatives = len(ranked) - positives
    if not positives or not negatives:
        return None
    total, first = 0.0, 0
    while first < len(ranked):
        last = first
        while last + 1 < len(ranked) and ranked[last + 1].score == ranked[first].score:
            last += 1
        total += sum(item.label for item in ranked[first : last + 1]) * ((first + last) / 2 + 1)
        first = last + 1
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def _told(flight: Mapping[str, Any], prediction: float | Mapping[str, Any], key: str, version_id: str) -> Told:
    label = int(flight["arrived_late"])
    return Told(key=str(flight[key]), version_id=version_id, score=score_of(prediction), label=label)
