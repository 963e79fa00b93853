"""The product's own programs on the local cloud; the clients are those of the local cloud's own tests."""

from __future__ import annotations

from packages.localcloud.tests.vertex.conftest import api as api  # fixtures
from packages.localcloud.tests.vertex.conftest import bucket as bucket
from packages.localcloud.tests.vertex.conftest import empty_endpoint as empty_endpoint
from packages.localcloud.tests.vertex.conftest import rest as rest
from packages.localcloud.tests.vertex.conftest import saved_model_uri as saved_model_uri
from packages.localcloud.tests.vertex.conftest import upload as upload
