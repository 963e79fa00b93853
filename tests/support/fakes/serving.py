"""Registry and endpoints in memory, with the rules of Vertex AI that deployments rest on."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.api_core.exceptions import FailedPrecondition, Forbidden, GoogleAPICallError, InvalidArgument, NotFound

from retraining.core.errors import ConflictError
from retraining.core.naming.environments import Environment
from retraining.core.naming.vertex import RUN_LABEL, deployed_model_id, endpoint_name, model_name
from retraining.core.promotion.versions import Version
from retraining.core.report.attributions import Attribution
from retraining.hooks.endpoints import Endpoint, EndpointOptions
from retraining.hooks.operations import Operation
from retraining.hooks.predictions import Answer, Unanswered
from retraining.hooks.registry import Upload
from tests.support.fakes.bucket import FakeBucket
from tests.support.fakes.settings import ENVIRONMENT

PLACE = ("p", "r")
DEFAULT = "default"


class FakeEndpoints:
    """Endpoints by their names. `ready` False keeps a deployment under way; `predictions` is what each model answers.

    `model` answers each instance where a test gives one. `error` ends deployments badly, `lost` says that they are done
    and brings nothing. `leaves_after` is how often the endpoint still lists a model that is being undeployed.

    Args:
        environment: Whose they are.
    """

    def __init__(self, environment: Environment = ENVIRONMENT) -> None:
        self.by_name: dict[str, Endpoint] = {}
        self.ready = True
        self.error = ""
        self.lost = 0
        self.leaves_after = 0
        self.leaving: dict[tuple[str, str], int] = {}
        self.log_tables: dict[str, str | None] = {}
        self.deploys: list[str] = []
        self.machines: list[Mapping[str, Any]] = []
        self.running: dict[str, tuple[str, str, str]] = {}
        self.predictions: list[Any] = []
        self.model: Callable[[Mapping[str, Any]], Any] | None = None
        self.instances: list[Any] = []
        self.attributions: dict[str, list[Attribution]] = {}
        self.asked = 0
        self.answered: Counter[str] = Counter()
        self.undeployed: list[str] = []
        self.given: dict[str, str] = {}
        self.shared_machines: set[str] = set()
        self._environment = environment

    @property
    def endpoint(self) -> Endpoint | None:
        """The only one."""
        return next(iter(self.by_name.values()), None)

    @endpoint.setter
    def endpoint(self, endpoint: Endpoint) -> None:
        self.by_name[endpoint.name] = endpoint

    def has_shared_machines(self, pool_id: str) -> bool:
        """As the hook."""
        return pool_id in self.shared_machines

    def name_of(self, model: str) -> str:
        """As the hook."""
        return endpoint_name(*PLACE, model, self.given.get(model))

    def ensure(
        self, model: str, log_table: str | None, labels: Mapping[str, str], options: EndpointOptions | None = None
    ) -> Endpoint:
        """As the hook."""
        chosen = options or EndpointOptions()
        made = Endpoint(
            name=self.name_of(model),
            deployed={},
            traffic={},
            labels={**labels, **self._environment.labels},
            sampling=chosen.sampling if log_table else None,
            dedicated=chosen.dedicated,
        )
        self.log_tables.setdefault(made.name, log_table)
        return self.by_name.setdefault(made.name, made)

    def get(self, model: str) -> Endpoint | None:
        """As the hook."""
        name = self.name_of(model)
        return self.read_endpoint(name) if name in self.by_name else None

    def read_endpoint(self, name: str) -> Endpoint:
        """As the hook; a deployment that is ready is done by now. Traffic stays as it is."""
        self._there(name)
        for (at, deployed_id), left in list(self.leaving.items()):
            self.leaving[at, deployed_id] = left - 1
            if left <= 0:
                del self.leaving[at, deployed_id]
                self._remove(at, deployed_id)
        for operation, (at, deployed_id, version_name) in list(self.running.items()):
            if self.ready and not self.error:
                del self.running[operation]
                if self.lost:
                    self.lost -= 1
                    continue
                self._change(at, deployed={**self.by_name[at].deployed, deployed_id: version_name})
        return self.by_name[name]

    def start_deploy(
        self, endpoint: Endpoint, version_name: str, run_key: str, machine: Mapping[str, Any]
    ) -> Operation | None:
        """As the hook."""
        now = self._there(endpoint.name)
        if deployed_model_id(run_key) in now.deployed:
            return None
        self._require_etag(endpoint, now)
        self.deploys.append(version_name)
        self.machines.append(machine)
        name = f"operations/{len(self.deploys)}"
        self.running[name] = (endpoint.name, deployed_model_id(run_key), version_name)
        return Operation(name=name, done=False)

    def operation(self, name: str) -> Operation | None:
        """As the hook."""
        if name not in [f"operations/{number}" for number in range(1, len(self.deploys) + 1)]:
            return None
        return Operation(name=name, done=bool(self.error) or name not in self.running, error=self.error)

    def cancel_operation(self, name: str) -> None:
        """As the hook."""
        self.running.pop(name, None)

    def running_operations(self, endpoint: Endpoint) -> list[Operation]:
        """As the hook."""
        deploying = [] if self.error else [name for name, (at, *_) in self.running.items() if at == endpoint.name]
        leaving = [f"undeploy-{deployed_id}" for at, deployed_id in self.leaving if at == endpoint.name]
        return [Operation(name=name, done=False) for name in (*deploying, *leaving)]

    def set_traffic(self, endpoint: Endpoint, traffic: Mapping[str, int], generation: int | None = None) -> Endpoint:
        """As the hook: compare and set."""
        now, labels = self._there(endpoint.name), endpoint.allowed(generation)
        if endpoint.etag != now.etag and (now.traffic, now.labels) == (dict(traffic), labels):
            return now
        self._require_etag(endpoint, now)
        if (traffic and sum(traffic.values()) != 100) or not set(traffic) <= set(now.deployed):
            raise InvalidArgument(f"traffic_split {dict(traffic)} of {sorted(now.deployed)}")
        shares = {key: share for key, share in traffic.items() if share}
        return self._change(endpoint.name, traffic=shares, labels=labels)

    def set_sampling(self, endpoint: Endpoint, sampling: float) -> None:
        """As the hook."""
        self._change(endpoint.name, sampling=sampling)

    def undeploy(self, endpoint: Endpoint, deployed_id: str) -> None:
        """As the hook: refused while it has traffic, unless it is the last one."""
        now = self._there(endpoint.name)
        if deployed_id not in now.deployed:
            return
        self._require_etag(endpoint, now)
        assert (endpoint.name, deployed_id) not in self.leaving, "it is being undeployed already"
        if len(now.deployed) > 1 and now.traffic.get(deployed_id):
            raise FailedPrecondition(f"The deployed model {deployed_id} has traffic")
        self.undeployed.append(deployed_id)
        if self.leaves_after:
            self.leaving[endpoint.name, deployed_id] = self.leaves_after
        else:
            self._remove(endpoint.name, deployed_id)

    def predict(self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]]) -> Answer:
        """As the hook; those with traffic answer in turn, whatever their shares."""
        self.instances = list(instances)
        serving = sorted(self._there(endpoint.name).traffic)
        if not serving:
            raise FailedPrecondition(f"{endpoint.name} has no deployed model that gets requests")
        self.asked += 1
        answering = serving[self.asked % len(serving)]
        self.answered[answering] += 1
        answers = [self.model(one) for one in instances] if self.model else self.predictions
        return Answer(predictions=answers, deployed_model_id=answering)

    def predict_once(
        self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]], timeout_s: float
    ) -> Answer | Unanswered:
        """As the hook."""
        assert timeout_s > 0
        try:
            return self.predict(endpoint, instances)
        except (Forbidden, NotFound):
            raise
        except GoogleAPICallError as error:
            return Unanswered(kind=type(error).__name__)

    def explain(
        self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]], deployed_id: str = ""
    ) -> list[list[Attribution]]:
        """As the hook; refused unless a test says what is explained."""
        deployed = self._there(endpoint.name).deployed
        if not deployed:
            raise FailedPrecondition(f"The Endpoint {endpoint.name} has no deployed model")
        for each in [deployed_id] if deployed_id else deployed:
            if each not in self.attributions:
                raise FailedPrecondition(f"Deployed model {each} does not support explanation.")
        self.instances = list(instances)
        return [self.attributions[deployed_id or next(iter(deployed))] for _ in instances]

    def touch(self, name: str) -> None:
        """Change an endpoint as somebody else would."""
        self._change(name)

    def _require_etag(self, read: Endpoint, now: Endpoint) -> None:
        if read.etag != now.etag:
            raise ConflictError(now.name, f"traffic {now.traffic}: somebody else changed it")

    def _there(self, name: str) -> Endpoint:
        if name not in self.by_name:
            raise NotFound(name)
        return self.by_name[name]

    def _remove(self, name: str, deployed_id: str) -> None:
        now = self.by_name[name]
        others = {key: version for key, version in now.deployed.items() if key != deployed_id}
        self._change(name, deployed=others, traffic={key: share for key, share in now.traffic.items() if key in others})

    def _change(self, name: str, **values: Any) -> Endpoint:
        now = self.by_name[name]
        self.by_name[name] = dataclasses.replace(now, etag=f"{now.etag}+", **values)
        return self.by_name[name]


class FakeRegistry:
    """Versions of models, by number; the first one of a model has the alias `default` until another is given it.

    `ready` False keeps uploads under way; `error` ends them badly.

    Args:
        model: Whose versions `add` makes.
        environment: Whose they are.
        endpoints: Where they may be deployed.
    """

    def __init__(
        self,
        model: str = "flight_delays",
        environment: Environment = ENVIRONMENT,
        endpoints: FakeEndpoints | None = None,
    ) -> None:
        self.model = model
        self.versions: dict[str, Version] = {}
        self.ready = True
        self.error = ""
        self.uploads: list[str] = []
        self.uploading: dict[str, tuple[str, Upload]] = {}
        self.evaluations: dict[str, dict[str, Any]] = {}
        self.slices: dict[str, list[dict[str, Any]]] = {}
        self._environment = environment
        self._endpoints = endpoints or FakeEndpoints()
        self._added = 0

    def add(self, run_key: str, *aliases: str, **changes: Any) -> Version:
        """A version of a run."""
        self._added += 1
        number = str(self._added)
        made = Version(
            model_name=model_name(*PLACE, self.model),
            version_id=number,
            aliases=aliases,
            labels={RUN_LABEL: run_key},
            artifact_uri=f"gs://bucket/flight_delays/runs/{run_key}/training/model",
        )
        made = dataclasses.replace(made, **changes)
        first = all(version.model_name != made.model_name for version in self.versions.values())
        self.versions[number] = dataclasses.replace(made, aliases=(*aliases, DEFAULT)) if first else made
        return self.versions[number]

    def find_by_alias(self, model: str, alias: str) -> Version | None:
        """As the hook."""
        return next((version for version in self.list_versions(model) if alias in version.aliases), None)

    def find_by_run(self, model: str, run_key: str) -> Version | None:
        """As the hook."""
        return next(iter(self.versions_of_run(model, run_key)), None)

    def versions_of_run(self, model: str, run_key: str) -> list[Version]:
        """As the hook; an upload that is ready is done by now."""
        self.finish()
        return [version for version in self.list_versions(model) if version.run_key == run_key]

    def list_versions(self, model: str) -> list[Version]:
        """As the hook."""
        on_endpoints = {name for endpoint in self._endpoints.by_name.values() for name in endpoint.deployed.values()}
        return [
            dataclasses.replace(version, deployed=version.version_name in on_endpoints)
            for version in self.versions.values()
            if version.model_name.endswith(f"/{model}")
        ]

    def start_upload(self, model: str, upload: Upload) -> Operation:
        """As the hook."""
        name = f"uploads/{len(self.uploads) + 1}"
        self.uploads.append(name)
        self.uploading[name] = (model, upload)
        return Operation(name=name, done=False)

    def finish(self) -> None:
        """Let uploads that are ready be done."""
        for name, (model, upload) in list(self.uploading.items()) if self.ready else ():
            del self.uploading[name]
            self.add(
                upload.labels[RUN_LABEL],
                model_name=model_name(*PLACE, model),
                labels={**upload.labels, **self._environment.labels},
                artifact_uri=upload.artifact_uri,
            )

    def operation(self, name: str) -> Operation | None:
        """As the hook."""
        if name not in self.uploads:
            return None
        return Operation(name=name, done=name not in self.uploading or bool(self.error), error=self.error)

    def running_operations(self, model: str) -> list[Operation]:
        """As the hook."""
        running = [name for name, (whose, _) in self.uploading.items() if whose == model]
        return [] if self.error else [Operation(name=name, done=False) for name in running]

    def delete_version(self, version: Version) -> bool:
        """As the hook; `default` goes to the newest other."""
        if version.version_id not in self.versions:
            return True
        same_model = [other for other in self.versions.values() if other.model_name == version.model_name]
        others = [other for other in same_model if other.version_id != version.version_id]
        deployed = [name for endpoint in self._endpoints.by_name.values() for name in endpoint.deployed.values()]
        if not others or version.version_name in deployed:
            return False
        gone = self.versions.pop(version.version_id)
        if DEFAULT in gone.aliases:
            self.merge_aliases(others[-1], [DEFAULT])
        return True

    def find_evaluation(self, version: Version, display_name: str) -> str | None:
        """As the hook."""
        of_version = {name: found for name, found in self.evaluations.items() if name.startswith(version.version_name)}
        return next((name for name, found in of_version.items() if found["display_name"] == display_name), None)

    def import_evaluation(self, version: Version, evaluation: dict[str, Any]) -> str:
        """As the hook."""
        name = f"{version.version_name}/evaluations/{len(self.evaluations) + 1}"
        self.evaluations[name], self.slices[name] = evaluation, []
        return name

    def imported_slices(self, evaluation_name: str) -> set[str]:
        """As the hook."""
        return {item["slice_"]["value"] for item in self.slices[evaluation_name]}

    def import_slices(self, evaluation_name: str, slices: Sequence[dict[str, Any]]) -> None:
        """As the hook: at most 50."""
        if len(slices) > 50:
            raise InvalidArgument(f"{len(slices)} slices")
        self.slices[evaluation_name] += slices

    def merge_aliases(self, version: Version, wishes: Sequence[str]) -> Version:
        """As the hook: an alias moves."""
        given = {wish for wish in wishes if not wish.startswith("-")}
        taken = {wish[1:] for wish in wishes if wish.startswith("-")}
        if version.version_id not in self.versions:
            raise NotFound(version.version_name)
        if DEFAULT in taken - given:
            raise InvalidArgument("The alias 'default' cannot be removed")
        for number, old in self.versions.items():
            if old.model_name != version.model_name:
                continue
            kept = set(old.aliases) - given
            if number == version.version_id:
                kept = (kept | given) - taken
            self.versions[number] = dataclasses.replace(old, aliases=tuple(sorted(kept)))
        return self.versions[version.version_id]

    def move_alias(self, model: str, alias: str, to: Version, expected: str | None) -> Version:
        """As the hook: compare and set."""
        holder = self.find_by_alias(model, alias)
        if holder and holder.version_id == to.version_id:
            return to
        if (holder.version_id if holder else None) != expected:
            raise ConflictError(f"alias {alias} of {model}", f"version {holder and holder.version_id}")
        return self.merge_aliases(to, [alias])


class FakeModelFiles:
    """Digests of stored models.

    Args:
        bucket: Where they are.

    Attributes:
        digests: Of folders whose files a test does not store.
    """

    def __init__(self, bucket: FakeBucket) -> None:
        self.digests: dict[str, str] = {}
        self._bucket = bucket

    def digest(self, folder_uri: str) -> str | None:
        """As the hook."""
        if folder_uri in self.digests:
            return self.digests[folder_uri]
        lines = [
            f"{uri.removeprefix(folder_uri + '/')} {hashlib.sha256(self._bucket.objects[uri]).hexdigest()}\n"
            for uri in self._bucket.list_uris(folder_uri)
        ]
        return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else None

    def copy_missing(self, source_uri: str, target_uri: str) -> int:
        """As the hook."""
        new = {uri: target_uri + uri.removeprefix(source_uri) for uri in self._bucket.list_uris(source_uri)}
        if source_uri in self.digests:
            self.digests.setdefault(target_uri, self.digests[source_uri])
        missing = {uri: to for uri, to in new.items() if to not in self._bucket.objects}
        for uri, to in missing.items():
            self._bucket.write_once(to, self._bucket.objects[uri])
        return len(missing)
