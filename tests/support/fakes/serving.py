"""Registry and endpoint in memory, with the rules of Vertex AI that deployments rest on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from retraining.core.errors import ConflictError
from retraining.core.naming.vertex import deployed_model_id
from retraining.hooks.endpoints import Answer, Endpoint
from retraining.hooks.operations import Operation
from retraining.hooks.registry import Upload, Version


class FakeRegistry:
    """Versions of one model; the first one has the alias `default` until another is given it, as on the service.

    `ready` False keeps uploads under way; `error` ends them badly.
    """

    def __init__(self, model: str = "flight_delays") -> None:
        self.model = model
        self.versions: dict[str, Version] = {}
        self.ready = True
        self.error = ""
        self.uploads: list[str] = []
        self.uploading: dict[str, str] = {}

    def add(self, run_key: str, *aliases: str) -> Version:
        """A version of a run."""
        number = str(max(map(int, self.versions), default=0) + 1)
        self.versions[number] = Version(
            model_name=f"projects/p/locations/r/models/{self.model}",
            version_id=number,
            aliases=(*aliases, "default") if number == "1" else aliases,
            labels={"retraining-run": run_key},
            artifact_uri=f"gs://bucket/flight_delays/runs/{run_key}/training/model",
        )
        return self.versions[number]

    def find_by_alias(self, model: str, alias: str) -> Version | None:
        """As the hook."""
        del model
        return next((version for version in self.versions.values() if alias in version.aliases), None)

    def find_by_run(self, model: str, run_key: str) -> Version | None:
        """As the hook."""
        return next(iter(self.versions_of_run(model, run_key)), None)

    def versions_of_run(self, model: str, run_key: str) -> list[Version]:
        """As the hook; an upload that is ready is done by now."""
        del model
        self.finish()
        return [version for version in self.versions.values() if version.run_key == run_key]

    def list_versions(self, model: str) -> list[Version]:
        """As the hook."""
        return [version for version in self.versions.values() if version.model_name.endswith(f"/{model}")]

    def start_upload(self, model: str, upload: Upload) -> Operation:
        """As the hook."""
        del model
        name = f"uploads/{len(self.uploads) + 1}"
        self.uploads.append(name)
        self.uploading[name] = upload.labels["retraining-run"]
        return Operation(name=name, done=False)

    def finish(self) -> None:
        """Uploads that are ready are done."""
        for name, run_key in list(self.uploading.items()) if self.ready else ():
            del self.uploading[name]
            self.add(run_key)

    def operation(self, name: str) -> Operation:
        """As the hook."""
        return Operation(name=name, done=name not in self.uploading or bool(self.error), error=self.error)

    def running_operations(self, model: str) -> list[Operation]:
        """As the hook."""
        del model
        return [] if self.error else [Operation(name=name, done=False) for name in self.uploading]

    def delete_version(self, version: Version) -> bool:
        """As the hook."""
        self.versions.pop(version.version_id, None)
        return True

    def merge_aliases(self, version: Version, wishes: list[str]) -> Version:
        """As the hook: an alias moves."""
        given = {wish for wish in wishes if not wish.startswith("-")}
        taken = {wish[1:] for wish in wishes if wish.startswith("-")}
        for number, old in self.versions.items():
            kept = set(old.aliases) - given
            if number == version.version_id:
                kept = (kept | given) - taken
            self.versions[number] = dataclasses.replace(old, aliases=tuple(sorted(kept)))
        return self.versions[version.version_id]

    def move_alias(self, model: str, alias: str, to: Version, expected: str | None) -> Version:
        """As the hook: compare and set."""
        holder = self.find_by_alias(model, alias)
        if (holder.version_id if holder else None) not in (expected, to.version_id):
            raise ConflictError(alias, "another holder")
        return self.merge_aliases(to, [alias])


class FakeEndpoints:
    """One endpoint. `ready` False keeps a deployment under way; `predictions` is what each model answers.

    `error` ends deployments badly, `lost` says that they are done and brings nothing. `leaves_after` is how often the
    endpoint still lists a model that is being undeployed.
    """

    def __init__(self) -> None:
        self.endpoint: Endpoint | None = None
        self.ready = True
        self.error = ""
        self.lost = 0
        self.leaves_after = 0
        self.leaving: dict[str, int] = {}
        self.deploys: list[str] = []
        self.running: dict[str, tuple[str, str]] = {}
        self.predictions: list[Any] = []
        self.instances: list[Any] = []
        self.undeployed: list[str] = []

    def ensure(self, model: str, log_table: str, labels: Mapping[str, str]) -> Endpoint:
        """As the hook."""
        del model, log_table, labels
        self.endpoint = self.endpoint or Endpoint(
            name="projects/p/locations/r/endpoints/flight-delays", deployed={}, traffic={}
        )
        return self.endpoint

    def get(self, model: str) -> Endpoint | None:
        """As the hook."""
        del model
        return self.read("") if self.endpoint else None

    def read(self, name: str) -> Endpoint:
        """As the hook; a deployment that is ready is done by now. Traffic stays as it is."""
        del name
        assert self.endpoint is not None
        for deployed_id, left in list(self.leaving.items()):
            self.leaving[deployed_id] = left - 1
            if left <= 0:
                del self.leaving[deployed_id]
                self._remove(deployed_id)
        for operation, (deployed_id, version_name) in list(self.running.items()):
            if self.ready and not self.error:
                del self.running[operation]
                if self.lost:
                    self.lost -= 1
                    continue
                self._change(deployed={**self.endpoint.deployed, deployed_id: version_name})
        return self.endpoint

    def start_deploy(self, endpoint: Endpoint, version_name: str, run_key: str, machine: Any) -> Operation | None:
        """As the hook."""
        del endpoint, machine
        assert self.endpoint is not None
        if deployed_model_id(run_key) in self.endpoint.deployed:
            return None
        self.deploys.append(version_name)
        name = f"operations/{len(self.deploys)}"
        self.running[name] = (deployed_model_id(run_key), version_name)
        return Operation(name=name, done=False)

    def operation(self, name: str) -> Operation:
        """As the hook."""
        return Operation(name=name, done=bool(self.error) or name not in self.running, error=self.error)

    def cancel_operation(self, name: str) -> None:
        """As the hook."""
        self.running.pop(name, None)

    def running_operations(self, endpoint: Endpoint) -> list[Operation]:
        """As the hook."""
        del endpoint
        deploying = [] if self.error else list(self.running)
        return [Operation(name=name, done=False) for name in (*deploying, *(f"undeploy-{key}" for key in self.leaving))]

    def set_traffic(self, endpoint: Endpoint, traffic: dict[str, int]) -> Endpoint:
        """As the hook: compare and set."""
        assert self.endpoint is not None
        if endpoint.etag != self.endpoint.etag:
            raise ConflictError(endpoint.name, "somebody else changed it")
        assert sum(traffic.values()) == 100 or not traffic
        assert set(traffic) <= set(self.endpoint.deployed)
        return self._change(traffic=dict(traffic))

    def undeploy(self, endpoint: Endpoint, deployed_id: str) -> None:
        """As the hook: refused while it has traffic, unless it is the last one."""
        del endpoint
        assert self.endpoint is not None
        if deployed_id not in self.endpoint.deployed:
            return
        assert deployed_id not in self.leaving, "it is being undeployed already"
        assert len(self.endpoint.deployed) == 1 or not self.endpoint.traffic.get(deployed_id)
        self.undeployed.append(deployed_id)
        if self.leaves_after:
            self.leaving[deployed_id] = self.leaves_after
        else:
            self._remove(deployed_id)

    def _remove(self, deployed_id: str) -> None:
        assert self.endpoint is not None
        others = {key: name for key, name in self.endpoint.deployed.items() if key != deployed_id}
        self._change(
            deployed=others, traffic={key: share for key, share in self.endpoint.traffic.items() if key in others}
        )

    def predict(self, endpoint: Endpoint, instances: list[Any]) -> Answer:
        """As the hook."""
        del endpoint
        assert self.endpoint is not None
        self.instances = instances
        return Answer(
            predictions=self.predictions,
            deployed_model_id=max(self.endpoint.traffic, key=self.endpoint.traffic.__getitem__),
        )

    def _change(self, **values: Any) -> Endpoint:
        assert self.endpoint is not None
        self.endpoint = dataclasses.replace(self.endpoint, etag=f"{self.endpoint.etag}+", **values)
        return self.endpoint


class FakeModelFiles:
    """Digests of stored models, by folder."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}

    def digest(self, folder_uri: str) -> str | None:
        """As the hook."""
        return self.digests.get(folder_uri)
