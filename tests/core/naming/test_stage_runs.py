"""How a form names a run of another stage: read back as it is made, and never an address."""

from __future__ import annotations

import re

import pytest

from retraining.core.errors import PlanError
from retraining.core.naming.stage_runs import EXAMPLE, TEXT_PATTERN, StageRun
from retraining.core.naming.vertex import image_digest
from tests.support.refusals import refuses

KEY = "20131119t030000z-0123456789ab"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (EXAMPLE, StageRun(stage="staging", run_key="20131120t030000z-0123456789ab")),
        (f"pre-prod_2/{KEY} to production", StageRun(stage="pre-prod_2", run_key=KEY, target="production")),
    ],
)
def test_it_is_read_as_it_is_made(text, found):
    """The form's own pattern takes it too."""
    assert StageRun.parse(text, "Param") == found
    assert str(found) == text
    assert re.search(TEXT_PATTERN, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "staging",
        f"staging/{KEY}/",
        f"../{KEY}",
        f"gs://staging/late/runs/{KEY}",
        f"staging/{KEY}\n",
        f"Staging/{KEY}",
    ],
)
def test_what_is_none_is_refused(text):
    with refuses(PlanError, where="Param taken_from", found=repr(text), expected=EXAMPLE):
        StageRun.parse(text, "Param taken_from")
    assert text.endswith("\n") or not re.search(TEXT_PATTERN, text)


def test_a_version_is_taken_over_by_a_dag_run_of_its_own():
    assert StageRun(stage="staging", run_key=KEY, target="production").dag_run_id == f"promote__staging__{KEY}"


def test_an_image_has_a_digest_or_a_tag():
    digest = f"sha256:{'b' * 64}"
    assert image_digest(f"host:5000/trainer@{digest}") == digest
    assert image_digest("host:5000/trainer:1") is None
