"""Lists through Google's client: filters, order, pages, masks."""

from __future__ import annotations

import uuid

import pytest
from google.api_core import exceptions
from google.protobuf import field_mask_pb2


@pytest.fixture(scope="module")
def family(api) -> str:
    """Label value of four ended jobs: a-1 and a-2 succeeded, b-1 failed, c-1 succeeded without the label `kind`."""
    value = f"f{uuid.uuid4().hex[:8]}"
    for name, code, kind in (
        ("a-1", "pass", "x"),
        ("a-2", "pass", "y-2"),
        ("b-1", "raise SystemExit(1)", "y-2"),
        ("c-1", "pass", None),
    ):
        labels = {"family": value, **({"kind": kind} if kind else {})}
        api.wait(api.create_job(code, display_name=name, labels=labels))
    return value


def find(api, family: str, filter: str, **request) -> list[str]:
    whole = f'labels.family="{family}"' + (f" AND ({filter})" if filter else "")
    return [
        job.display_name
        for job in api.jobs.list_custom_jobs(request={"parent": api.parent, "filter": whole, **request})
    ]


@pytest.mark.parametrize(
    ("filter", "names"),
    [
        pytest.param("", ["c-1", "b-1", "a-2", "a-1"], id="newest first"),
        pytest.param("labels.kind=x", ["a-1"], id="label"),
        pytest.param('labels.kind="y-2"', ["b-1", "a-2"], id="quoted label"),
        pytest.param("labels.kind:*", ["b-1", "a-2", "a-1"], id="label exists"),
        pytest.param("labels:kind", ["b-1", "a-2", "a-1"], id="label key exists"),
        pytest.param("NOT labels:kind", ["c-1"], id="label is missing"),
        pytest.param('state="JOB_STATE_FAILED"', ["b-1"], id="state"),
        pytest.param("state!=JOB_STATE_FAILED", ["c-1", "a-2", "a-1"], id="not this state"),
        pytest.param('display_name="a-1"', ["a-1"], id="name"),
        pytest.param('displayName="a-1"', ["a-1"], id="camel case"),
        pytest.param('display_name:"a-*"', ["a-2", "a-1"], id="wildcard"),
        pytest.param('display_name="a-1" OR display_name="b-1"', ["b-1", "a-1"], id="or"),
        pytest.param('labels.kind="y-2" AND state="JOB_STATE_SUCCEEDED"', ["a-2"], id="and"),
        pytest.param('labels.kind="y-2" state="JOB_STATE_SUCCEEDED"', ["a-2"], id="and without the word"),
        pytest.param(
            'display_name="c-1" OR labels.kind="y-2" AND state="JOB_STATE_FAILED"', ["b-1"], id="or binds tighter"
        ),
        pytest.param('NOT (display_name="c-1" OR labels.kind="y-2")', ["a-1"], id="parentheses"),
        pytest.param('-display_name:"a-*" AND state=JOB_STATE_SUCCEEDED', ["c-1"], id="minus"),
        pytest.param('create_time>"2020-01-01T00:00:00Z"', ["c-1", "b-1", "a-2", "a-1"], id="after"),
        pytest.param('create_time<"2020-01-01T00:00:00Z"', [], id="before"),
    ],
)
def test_filter(api, family, filter, names):
    assert find(api, family, filter) == names


@pytest.mark.parametrize(
    "filter",
    [
        "colour=red",
        "display_name=",
        "display_name",
        "(state=X",
        "labels=x",
        "state>1",
        'create_time>"soon"',
        "a ? b",
        ")",
    ],
)
def test_malformed_filters_are_refused(api, filter):
    with pytest.raises(exceptions.InvalidArgument, match="Invalid filter"):
        list(api.jobs.list_custom_jobs(request={"parent": api.parent, "filter": filter}))


def test_pages_follow_each_other_even_when_jobs_come_in_between(api, family):
    request = {"parent": api.parent, "filter": f'labels.family="{family}"', "page_size": 2}
    first = next(api.jobs.list_custom_jobs(request=request).pages)
    assert [job.display_name for job in first.custom_jobs] == ["c-1", "b-1"]
    extra = api.wait(api.create_job(display_name="late", labels={"family": family}))
    second = next(api.jobs.list_custom_jobs(request={**request, "page_token": first.next_page_token}).pages)
    assert [job.display_name for job in second.custom_jobs] == ["a-2", "a-1"]
    assert second.next_page_token == ""
    api.jobs.delete_custom_job(name=extra.name).result(timeout=10)


def test_page_token_belongs_to_its_list(api, family):
    request = {"parent": api.parent, "filter": f'labels.family="{family}"', "page_size": 1}
    token = next(api.jobs.list_custom_jobs(request=request).pages).next_page_token
    for changed in ({"filter": "", "page_token": token}, {"page_token": "nonsense"}):
        with pytest.raises(exceptions.InvalidArgument, match="page token"):
            list(api.jobs.list_custom_jobs(request={**request, **changed}))
    with pytest.raises(exceptions.InvalidArgument, match="page_size"):
        list(api.jobs.list_custom_jobs(request={**request, "page_size": -1}))


def test_read_mask_leaves_the_rest_out(api, family):
    mask = field_mask_pb2.FieldMask(paths=["name", "state"])
    request = {"parent": api.parent, "filter": f'labels.family="{family}"', "read_mask": mask}
    jobs = list(api.jobs.list_custom_jobs(request=request))
    assert all(job.name and job.state and not job.display_name and not job.job_spec.worker_pool_specs for job in jobs)
