"""What an account may, which APIs and images are there, and what time it is, asked before anything is paid for.

In: a session. Out: permissions of `testIamPermissions`, bindings of policies, names. Nothing is written. All of it is
REST: no client of these services is among the packages that Airflow's Google provider brings along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from urllib.parse import quote

from retraining.core.documents.document import read_object
from retraining.core.permissions import Binding
from retraining.core.untyped import ApiJson, Foreign
from retraining.hooks.session import Session, call

PROJECTS = "https://cloudresourcemanager.googleapis.com/v3/projects"
ACCOUNTS = "https://iam.googleapis.com/v1/projects/-/serviceAccounts"
SERVICES = "https://serviceusage.googleapis.com/v1/projects"
QUOTAS = "https://serviceusage.googleapis.com/v1beta1/projects"
REGISTRY = "https://artifactregistry.googleapis.com/v1"
STORAGE = "https://storage.googleapis.com/storage/v1/b"
BIGQUERY = "https://bigquery.googleapis.com/bigquery/v2/projects"
TOKENS = "https://oauth2.googleapis.com/tokeninfo"


class Access:
    """Questions about this session's account, and about others in policies that it may read.

    Every method raises `google.api_core.exceptions.GoogleAPICallError` where the service refuses.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _client(self) -> Foreign:
        from retraining.hooks.transports import rest_session

        return rest_session(self._session)

    def own_email(self) -> str:
        """Return the address of the account that asks; "" where its token does not say it."""
        self._ask("GET", f"{PROJECTS}/{self._session.project}")  # so that there is a token
        body = {"access_token": str(self._session.credentials.token)}
        return str(self._ask("POST", TOKENS, form=body).get("email", ""))

    def project_number(self) -> str:
        """Return the project's number."""
        return str(self._ask("GET", f"{PROJECTS}/{self._session.project}")["name"]).removeprefix("projects/")

    def service_time(self) -> datetime:
        """Return the time that Google's servers have, by the second; a refusal is dated too."""
        answer = call(lambda: self._client.request("GET", f"{PROJECTS}/{self._session.project}"))
        return parsedate_to_datetime(answer.headers["Date"])

    def missing_on_project(self, project: str, permissions: Sequence[str]) -> list[str]:
        """Return those of some permissions that the account has not on a project."""
        return self._missing(f"{PROJECTS}/{project}:testIamPermissions", permissions)

    def missing_on_account(self, email: str, permissions: Sequence[str]) -> list[str]:
        """Return those that it has not on a service account."""
        return self._missing(f"{ACCOUNTS}/{quote(email, safe='')}:testIamPermissions", permissions)

    def missing_on_table(self, dataset: str, table: str, permissions: Sequence[str]) -> list[str]:
        """Return those that it has not on a table of the project."""
        return self._missing(f"{self._dataset(dataset)}/tables/{table}:testIamPermissions", permissions)

    def missing_on_bucket(self, bucket: str, permissions: Sequence[str]) -> list[str]:
        """Return those that it has not on a bucket as a whole; a binding under a condition by names does not count."""
        query = "&".join(f"permissions={each}" for each in permissions)
        answer = self._ask("GET", f"{STORAGE}/{bucket}/iam/testPermissions?{query}")
        return _without(permissions, answer)

    def first_table(self, dataset: str) -> str:
        """Return the id of some table of a dataset of the project; "" where it has none."""
        listed = self._ask("GET", f"{self._dataset(dataset)}/tables?maxResults=1").get("tables") or [{}]
        return str(listed[0].get("tableReference", {}).get("tableId", ""))

    def disabled_apis(self, names: Sequence[str]) -> list[str]:
        """Return those of some APIs, at most 30, that the project has not enabled."""
        parent = f"projects/{self._session.project}"
        query = "&".join(f"names={parent}/services/{name}" for name in names)
        found = self._ask("GET", f"{SERVICES}/{self._session.project}/services:batchGet?{query}").get("services", [])
        enabled = {str(each["config"]["name"]) for each in found if each.get("state") == "ENABLED"}
        return [name for name in names if name not in enabled]

    def quota_limit(self, service: str, metric: str) -> int | None:
        """Return how much of a quota's metric the project may have in the region; None: unlimited, or not known.

        Args:
            service: An API.
            metric: Of it, `aiplatform.googleapis.com/custom_model_training_cpus`.
        """
        from google.api_core.exceptions import NotFound

        parent = f"{QUOTAS}/{self._session.project}/services/{service}"
        try:
            found = self._ask("GET", f"{parent}/consumerQuotaMetrics/{quote(metric, safe='')}?view=FULL")
        except NotFound:
            return None
        buckets = [each for limit in found.get("consumerQuotaLimits", ()) for each in limit.get("quotaBuckets", ())]
        regions = {
            each.get("dimensions", {}).get("region", ""): int(each.get("effectiveLimit", -1)) for each in buckets
        }
        limit = regions.get(self._session.region, regions.get("", -1))
        return limit if limit >= 0 else None

    def require_image(self, repository: str, package: str, reference: str) -> None:
        """Ask for an image; one that is not there raises `NotFound`.

        Args:
            repository: `projects/…/locations/…/repositories/…`.
            package: Its name in there.
            reference: A digest, `sha256:…`, or a tag.
        """
        kind = "versions" if reference.startswith("sha256:") else "tags"
        self._ask("GET", f"{REGISTRY}/{repository}/packages/{quote(package, safe='')}/{kind}/{reference}")

    def project_policy(self) -> list[Binding]:
        """Return what is bound on the project itself."""
        options = {"options": {"requestedPolicyVersion": 3}}
        return _bindings(self._ask("POST", f"{PROJECTS}/{self._session.project}:getIamPolicy", options))

    def bucket_policy(self, bucket: str) -> list[Binding]:
        """Return what is bound on a bucket."""
        return _bindings(self._ask("GET", f"{STORAGE}/{bucket}/iam?optionsRequestedPolicyVersion=3"))

    def repository_policy(self, repository: str) -> list[Binding]:
        """Return what is bound on a repository of images."""
        return _bindings(self._ask("GET", f"{REGISTRY}/{repository}:getIamPolicy"))

    def dataset_access(self, dataset: str) -> list[Binding] | None:
        """Return who may what on a dataset of the project; None: its answer does not say it."""
        access = self._ask("GET", self._dataset(dataset)).get("access")
        if access is None:
            return None
        entries = [(each.get("role"), each.get("userByEmail") or each.get("iamMember")) for each in access]
        return [Binding(role=role, member=member) for role, member in entries if role and member]

    def _dataset(self, dataset: str) -> str:
        return f"{BIGQUERY}/{self._session.project}/datasets/{dataset}"

    def _missing(self, url: str, permissions: Sequence[str]) -> list[str]:
        return _without(permissions, self._ask("POST", url, {"permissions": list(permissions)}))

    def _ask(self, method: str, url: str, body: ApiJson | None = None, form: ApiJson | None = None) -> ApiJson:
        where = f"{method} {url.partition('?')[0]}"
        return read_object(self._send(method, url, body, form).content, where, "Ask again")

    def _send(self, method: str, url: str, body: ApiJson | None = None, form: ApiJson | None = None) -> Foreign:
        from google.api_core import exceptions

        def ask() -> Foreign:
            answer = self._client.request(method, url, json=body, data=form)
            if not answer.ok:
                raise exceptions.from_http_response(answer)
            return answer

        return call(ask)


def _without(permissions: Sequence[str], answer: ApiJson) -> list[str]:
    granted: Collection[str] = answer.get("permissions", ())
    return [each for each in permissions if each not in granted]


def _bindings(policy: ApiJson) -> list[Binding]:
    return [
        Binding(role=each["role"], member=member, condition=str((each.get("condition") or {}).get("expression", "")))
        for each in policy.get("bindings", ())
        for member in each.get("members", ())
    ]
