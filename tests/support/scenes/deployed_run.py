"""Promoted runs of a model of their own on the local cloud, and their task `deploy` with a death in it."""

from __future__ import annotations

import contextlib
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from retraining.core.documents import KINDS
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming import vertex
from retraining.core.naming.run_keys import RunKey
from retraining.hooks.clock import Clock
from retraining.hooks.cloud import Cloud
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.fakes.settings import PLACES
from tests.support.scenes.asked_endpoint import retire
from tests.support.scenes.deployment import example
from tests.support.scenes.served_models import INPUTS, INSTANCE, upload_model

MOST_WAKES = 60


class Waiting(Clock):
    """This machine's clock, set forward by what is waited for between two wakes."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> datetime:
        """As the hook."""
        return datetime.now(UTC) + timedelta(seconds=self.ahead_s)


class DyingAtName(DyingCloud):
    """Dies at the n-th call of a name: how often a real service is looked at in between differs from run to run.

    Args:
        cloud: What lives on.
        name: Of the call; empty: it never dies.
        nth: From 1.
        after: Whether the call still does its work.
    """

    def __init__(self, cloud: Cloud, name: str, nth: int, *, after: bool) -> None:
        super().__init__(cloud, after=after)
        self._name, self._nth = name, nth

    def is_due(self) -> bool:
        """As the base class."""
        return self.calls[-1] == self._name and self.calls.count(self._name) == self._nth


class DeployedRun:
    """A promoted run of a model of its own, its documents and its stored model on the local cloud's storage.

    Args:
        cloud: The hooks, on the local cloud.
        run: The DAG run.
        day: Of the run.
        model_path: The SavedModel.
        deployment: What its spec says otherwise in the section of that name.
    """

    def __init__(self, cloud: Cloud, run: Any, day: datetime, model_path: Path, **deployment: Any) -> None:
        self.cloud, self.run = cloud, run
        self.died = False
        self.model = run.dag_id.removeprefix("retrain__")
        plan = example("plan")
        run_key = f"{day:%Y%m%dt%H%M%Sz}-{plan['run_key'][-12:]}"
        places = {name: getattr(cloud.settings, name) for name in PLACES}
        self.deployed_id = vertex.deployed_model_id(run_key)
        self.folder = f"gs://{cloud.settings.bucket}/{self.model}/runs/{run_key}"
        same = {"model": self.model, "run_key": run_key}
        given = {"as_of": f"{day:%Y-%m-%dT%H:%M:%SZ}", "mode": "live", "deploy": True, "dag_id": run.dag_id}
        spec = plan["spec"] | {"deployment": plan["spec"]["deployment"] | deployment}
        self._put("plan", plan | places | same | given | {"run_uri": self.folder, "spec": spec})
        bucket = self._bucket()
        upload_model(bucket, f"{self.model}/runs/{run_key}/training/model/1", model_path)
        model_uri = f"{self.folder}/training/model/1"
        golden = [{"instance": INSTANCE, "prediction": float(model_path.name)}]
        digest = cloud.model_files.digest(model_uri)
        stored: dict[str, Any] = {"model_uri": model_uri, "model_digest": digest, "golden": golden}
        stored["signature"] = {"inputs": INPUTS, "outputs": {"score": "float32"}}
        self._report = example("report") | same | stored
        self._put("report", self._report)
        for kind in ("checks__passed", "manifest__three_spans", "evaluation__duel"):
            self._put(kind.split("__")[0], example(kind) | same)
        champion = cloud.registry.find_by_alias(self.model, vertex.CHAMPION)
        against = None
        if champion is not None:
            as_of = RunKey.parse(champion.run_key).as_of
            against = {"version_id": champion.version_id, "run_key": champion.run_key}
            against["as_of"] = f"{as_of:%Y-%m-%dT%H:%M:%SZ}"
        decision = {"verdict": "promote", "mode": "live", "champion": against}
        self._put("decision", example("decision") | same | decision)
        run.execute(RegisterModelOperator(task_id="register", run_uri=self.folder, cloud=lambda: cloud))

    def expect_other_answers(self) -> None:
        """The report's golden requests are not what this model says."""
        self._put("report", self._report | {"golden": [{**self._report["golden"][0], "prediction": 0.5}]})

    def deploy(self, name: str = "", nth: int = 1, *, after: bool = False) -> list[str]:
        """Wake the task until it ends, with one death in it and as many tries as it has; gives the calls."""
        cloud, tries = DyingAtName(self.cloud, name, nth, after=after), 4
        task = DeployModelOperator(task_id="deploy", run_uri=self.folder, retries=tries - 1, cloud=cloud.connect)
        number = 1
        for _ in range(MOST_WAKES):
            if number > tries:
                return cloud.calls
            try:
                self.run.execute(task, try_number=number)
                return cloud.calls
            except AirflowRescheduleException:
                self._wait()
            except AirflowFailException:
                return cloud.calls
            except Death:
                self.died = True
                number += 1
                self._wait()
            except (JobError, ConflictError):
                number += 1
        raise AssertionError(f"not at its end after {MOST_WAKES} wakes")

    def teardown(self) -> None:
        """The run's task `cancel_jobs`."""
        task = CancelJobsOperator(task_id="cancel_jobs", cloud=lambda: self.cloud)
        self.run.xcoms["plan", "return_value"] = {"run_uri": self.folder}
        for _ in range(MOST_WAKES):
            with contextlib.suppress(AirflowRescheduleException):
                self.run.execute(task)
                return
            self._wait()
        raise AssertionError("the teardown never ends")

    def answer(self) -> tuple[float, str]:
        """What the endpoint says to whoever asks, and which version says it."""
        from google.cloud import aiplatform_v1

        region = self.cloud.settings.region
        client = aiplatform_v1.PredictionServiceClient(
            client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"}
        )
        name = vertex.endpoint_name(self.cloud.settings.project, region, self.model)
        said = client.predict(endpoint=name, instances=[INSTANCE])
        return float(said.predictions[0]), said.model_version_id

    def state(self) -> dict[str, Any]:
        """Who answers, who holds which alias, and how many machines are paid."""
        score, version_id = self.answer()
        endpoint = self.cloud.endpoints.get(self.model)
        holders = {}
        for alias in (vertex.CHAMPION, vertex.PREVIOUS, vertex.DEFAULT):
            found = self.cloud.registry.find_by_alias(self.model, alias)
            holders[alias] = found.version_id if found else None
        return {"score": score, "answers": version_id, "deployed": len(endpoint.deployed), **holders}

    def retire(self) -> None:
        """End what serves; what has the traffic last."""
        if endpoint := self.cloud.endpoints.get(self.model):
            retire(endpoint.name)

    def _wait(self) -> None:
        assert isinstance(self.cloud.clock, Waiting)
        self.cloud.clock.ahead_s += 180
        time.sleep(0.2)

    def _put(self, kind: str, values: dict[str, Any]) -> None:
        document = KINDS[kind].parse(json.dumps(values))
        path = f"{self.folder}/{kind}.json".removeprefix(f"gs://{self.cloud.settings.bucket}/")
        self._bucket().blob(path).upload_from_string(document.to_bytes())

    def _bucket(self) -> Any:
        from google.cloud import storage

        return storage.Client().bucket(self.cloud.settings.bucket)
