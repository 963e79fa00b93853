"""The section `triggers`: what it may name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.support.small_model import make_plan, make_spec

TABLES = {"tables": [{"name": "shop.parcels", "time": "sent_at"}]}


def test_an_asset_has_the_name_and_the_address_that_airflow_gives_it():
    assets = [{"name": "shop"}, {"uri": "gs://shop/parcels"}, {"name": "routes", "uri": "bigquery://p/shop/routes"}]
    spec = make_spec(triggers={"assets": assets})
    assert [asset.key for asset in spec.triggers.assets] == [
        ("shop", "shop"),
        ("gs://shop/parcels", "gs://shop/parcels"),
        ("routes", "bigquery://p/shop/routes"),
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"triggers": {"assets": [{}]}}, "neither name nor uri"),
        ({"triggers": {"assets": [{"name": "a"}, {"name": "a", "uri": "x://b"}]}}, "name 'a' stands twice"),
        ({"triggers": {"assets": [{"uri": "no address"}]}}, "String should match pattern"),
        ({"triggers": {"new_day": {"tables": []}}}, "at least 1 item"),
        (
            {"triggers": {"new_day": {"tables": [{"name": "parcels", "time": "sent_at"}]}}},
            "String should match pattern",
        ),
        ({"triggers": {"new_day": TABLES}, "monitoring": {"schedule": None}}, "monitoring.schedule is null"),
        ({"triggers": {"new_day": TABLES}, "data": {"key": "id", "query": "a.sql", "split": "hash"}}, "is about days"),
    ],
)
def test_what_cannot_start_anything_is_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        make_spec(**changes)


def test_what_may_start_a_run_decides_nothing_of_it():
    """The same documents and tables as before the section was written."""
    assert make_plan(make_spec(triggers={"new_day": TABLES})).run_key == make_plan(make_spec()).run_key
