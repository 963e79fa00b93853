"""Machine types: what a model's YAML can name by tier is what the service takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

import localcloud
from retraining.core.catalog.machines import training_machines
from retraining.core.spec.cluster import Cluster

TABLE = Path(localcloud.__file__).parent / "vertex" / "resources" / "machines.json"
TIERS = [tier for tier in get_args(Cluster.model_fields["tier"].annotation) if tier != "CUSTOM"]


@pytest.mark.parametrize("tier", TIERS)
def test_machines_of_each_tier_are_accepted(tier):
    """No pool of a tier has a machine that the local cloud, like the service, refuses."""
    patterns = json.loads(TABLE.read_text())["training"]
    refused = [
        pool.machine
        for pool in training_machines(Cluster(tier=tier)).pools
        if pool.count and not any(re.fullmatch(pattern, pool.machine) for pattern in patterns)
    ]
    assert refused == []
