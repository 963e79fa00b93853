"""Customers of an endpoint, who keep asking while versions come and go, and remember what they were told.

Comes in: an endpoint's name, requests. Goes out: answers, with version and time.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

PAUSE_S = 0.04


@contextlib.contextmanager
def beside(act: Callable[[], None], pause_s: float) -> Iterator[None]:
    """Do something again and again on a thread of its own until the `with` ends; its error is raised then.

    Args:
        act: Does it once.
        pause_s: Between two times.
    """
    stop = threading.Event()

    def go_on() -> None:
        while not stop.wait(pause_s):
            act()

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_on)
        try:
            yield
        finally:
            stop.set()
        going.result()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a customer was told: when (monotonic), to which request, by which version, and the score."""

    at: float
    request: int
    version_id: str
    score: float


@dataclass(kw_only=True)
class Customers:
    """Ask an endpoint, one request after the other, and remember the answers.

    Attributes:
        endpoint_name: Full name.
        instances: What they ask, in turn.
    """

    endpoint_name: str
    instances: list[dict[str, Any]]
    answers: list[Answer] = field(default_factory=list)

    def asking(self) -> AbstractContextManager[None]:
        """Begin to ask; the end of the `with` is the end of it."""
        from google.cloud import aiplatform_v1  # after the local cloud's variables are set

        region = self.endpoint_name.split("/")[3]
        options = {"api_endpoint": f"{region}-aiplatform.googleapis.com"}
        client = aiplatform_v1.PredictionServiceClient(client_options=options)

        def ask() -> None:
            number = len(self.answers) % len(self.instances)
            told = client.predict(endpoint=self.endpoint_name, instances=[self.instances[number]])
            score = score_of(told.predictions[0])
            answer = Answer(at=time.monotonic(), request=number, version_id=told.model_version_id, score=score)
            self.answers.append(answer)

        return beside(ask, PAUSE_S)

    def first_answer_by(self, version_id: str, since: float) -> Answer | None:
        """Return the first answer of a version after a moment; None: it gave none yet."""
        return next((each for each in self.answers if each.at >= since and each.version_id == version_id), None)

    def wrong_answers(self, champion_id: str, since: float, over: float) -> tuple[int, int]:
        """Count the answers since a moment that are further than that from the champion's to the same request, and all.

        Args:
            champion_id: Its version.
            since: The moment (monotonic).
            over: Difference of two scores.
        """
        right = {each.request: each.score for each in self.answers if each.version_id == champion_id}
        told = [each for each in self.answers if each.at >= since and each.request in right]
        return sum(abs(each.score - right[each.request]) > over for each in told), len(told)


def score_of(prediction: float | Mapping[str, Any]) -> float:
    """Return the score of an endpoint's answer: it is one, or an object of a model that gives the key back too."""
    return float(prediction["score"] if isinstance(prediction, Mapping) else prediction)


def read_instances(plan: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """Return rows of a run's table, those with empty values left out, as requests, with the key where one is sent."""
    from google.cloud import bigquery  # after the local cloud's variables are set

    spec = plan["spec"]
    names = {feature["name"] for feature in spec["features"]}
    if spec["deployment"]["key_input"]:
        names.add(spec["data"]["key"])
    client = bigquery.Client(project=plan["project"])
    run = f"run_{plan['model']}__{plan['run_key'].replace('-', '_')}"
    table = client.get_table(f"{plan['project']}.{plan['dataset']}.{run}")
    columns = [column for column in table.schema if column.name in names]
    rows = [dict(row.items()) for row in client.list_rows(table, selected_fields=columns, max_results=most)]
    return [row for row in rows if None not in row.values()]
