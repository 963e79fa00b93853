"""What Google's own clients and samples rely on without asking: names by number, headers, order, other containers."""

from __future__ import annotations

import uuid

import google.auth
import google.auth.transport.requests
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.cloud import resourcemanager_v3

from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE

NUMBER = "123456789012"
SKLEARN = "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-3:latest"


@pytest.fixture(scope="module")
def session(local_cloud):
    """Plain HTTP, signed in."""
    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    return google.auth.transport.requests.AuthorizedSession(credentials)


def by_number(name: str) -> str:
    return name.replace("projects/local-project/", f"projects/{NUMBER}/")


def test_the_resource_manager_over_grpc(local_cloud):
    """By id and by number; the SDK asks it before it uses a staging bucket."""
    client = resourcemanager_v3.ProjectsClient()
    for name in (local_cloud.project, NUMBER):
        found = client.get_project(name=f"projects/{name}")
        assert (found.project_id, found.name) == (local_cloud.project, f"projects/{NUMBER}")
    assert [project.project_id for project in client.search_projects()] == [local_cloud.project]
    with pytest.raises(exceptions.PermissionDenied):
        client.get_project(name="projects/nobody")
    with pytest.raises(exceptions.MethodNotImplemented, match="does not offer query: all projects are given"):
        client.search_projects(query="id:a")
    assert [project.project_id for project in client.search_projects({"page_size": 1})] == [local_cloud.project]
    url = f"https://cloudresourcemanager.googleapis.com/v3/projects/{local_cloud.project}"
    found = {query: local_cloud.http.get(f"{url}?{query}").status_code for query in ("alt=json", "callback=f", "a=b")}
    assert found == {"alt=json": 200, "callback=f": 501, "a=b": 400}


def test_a_projects_number_stands_for_its_id(api, upload, saved_model_uri):
    """In the parent, in a name, and inside a resource."""
    model = upload(f"numbered_{uuid.uuid4().hex[:8]}").model
    parent = by_number(f"{api.parent}/").rstrip("/")
    assert model in {found.name for found in api.models.list_models(parent=parent)}
    assert api.models.get_model(name=by_number(model)).name == model
    fields = {
        "display_name": "second",
        "artifact_uri": saved_model_uri,
        "container_spec": {"image_uri": SERVING_IMAGE},
    }
    request = {"parent": parent, "parent_model": by_number(model), "model": fields}
    assert api.models.upload_model(request=request).result().model_version_id == "2"
    with pytest.raises(exceptions.PermissionDenied):
        api.models.list_models(parent=by_number(f"{api.parent}/").rstrip("/").replace(NUMBER, "999999999999"))


def test_aliases_stay_in_the_order_they_were_given(upload, api):
    """The SDK puts `default` behind the caller's own, and expects it there."""
    name = f"ordered_{uuid.uuid4().hex[:8]}"
    model = upload(name, version_aliases=["system-test-model", "testing", "default"]).model
    assert list(api.models.get_model(name=model).version_aliases) == ["system-test-model", "testing", "default"]
    changed = api.models.merge_version_aliases(name=f"{model}@1", version_aliases=["zeta", "alpha", "-testing"])
    assert list(changed.version_aliases) == ["system-test-model", "default", "zeta", "alpha"]


def test_models_for_other_containers(api, local_cloud, bucket):
    """They are registered as the service registers them; only a deployment needs the container."""
    folder = f"sklearn/{uuid.uuid4().hex}"
    uri = f"gs://{bucket.name}/{folder}"

    def register(image: str, artifact_uri: str = "") -> str:
        model = {"display_name": "other", "container_spec": {"image_uri": image}, "artifact_uri": artifact_uri}
        return api.models.upload_model(parent=api.parent, model=model).result().model

    bucket.blob(f"{folder}/notes.txt").upload_from_string(b"x")
    with pytest.raises(exceptions.FailedPrecondition, match=r"exactly one of: \[model.pkl, model.joblib\]"):
        register(SKLEARN, uri)
    bucket.blob(f"{folder}/model.joblib").upload_from_string(b"x")
    model = register(SKLEARN, uri)
    assert register("us-central1-docker.pkg.dev/local-project/mine/server:1", uri)
    assert register("us-central1-docker.pkg.dev/local-project/mine/server:1")
    with pytest.raises(exceptions.FailedPrecondition, match=r"saved_model\.pb"):
        register(SERVING_IMAGE, uri)
    endpoint = api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "other"}).result()
    deployed = {"model": model, "dedicated_resources": {"machine_spec": {"machine_type": "n1-standard-2"}}}
    deployed["dedicated_resources"]["min_replica_count"] = 1
    with pytest.raises(exceptions.FailedPrecondition, match=r"sklearn-cpu.*not in the local cloud's table"):
        api.endpoints.deploy_model(endpoint=endpoint.name, deployed_model=deployed).result()
    api.endpoints.delete_endpoint(name=endpoint.name).result()


def test_operations_are_polled_on_v1beta1(api, session, local_cloud):
    """By who started them with a preview client."""
    host = f"https://{local_cloud.region}-aiplatform.googleapis.com"
    started = session.post(f"{host}/v1/{api.parent}/endpoints", json={"displayName": "beta"}).json()
    for version in ("v1", "v1beta1"):
        found = session.get(f"{host}/{version}/{started['name']}").json()
        assert found["name"] == started["name"]
    assert session.get(f"{host}/v1beta1/{started['name']}:wait").status_code in (200, 404)
    endpoint = api.endpoints.get_endpoint(name=started["name"].split("/operations/")[0])
    api.endpoints.delete_endpoint(name=endpoint.name).result()


def test_a_suggestion_without_a_client(api):
    """Google's SDK leaves the client's name empty unless it is told one."""
    spec = {
        "metrics": [{"metric_id": "m", "goal": "MAXIMIZE"}],
        "parameters": [{"parameter_id": "x", "double_value_spec": {"min_value": 0, "max_value": 1}}],
        "algorithm": "RANDOM_SEARCH",
    }
    study = v1.Study(display_name=f"nameless-{uuid.uuid4().hex[:8]}", study_spec=spec)
    made = api.vizier.create_study(parent=api.parent, study=study)
    found = api.vizier.suggest_trials({"parent": made.name, "suggestion_count": 1}).result().trials
    again = api.vizier.suggest_trials({"parent": made.name, "suggestion_count": 1}).result().trials
    assert [trial.name for trial in found] == [trial.name for trial in again]
    api.vizier.delete_study(name=made.name)
