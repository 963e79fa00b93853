"""Which suites there are: whose source, which tests of it, and the variables that the suite itself asks for.

A suite that has a name of its own for what it works in (a bucket, a project) is told it here; everything else follows
from the environment that leads any client to the local cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GOOGLE_STORAGE = "https://storage.googleapis.com"


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite of tests.

    Attributes:
        name: What `SUITES` calls it.
        source: Its project on the package index.
        tests: Folders or files of its tests, from the source's root.
        clients: The environment that it runs in.
        variables: What it reads; `{project}` stands for the local cloud's project.
        options: More of pytest's command line.
        data: Files beside this package that its tests look for, by their places in the source.
    """

    name: str
    source: str
    tests: tuple[str, ...]
    clients: str = "conformance"
    variables: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)

    def environment(self, project: str) -> dict[str, str]:
        """Return its variables for a project."""
        return {name: value.replace("{project}", project) for name, value in self.variables.items()}


SUITES = (
    Suite(
        name="gcsfs",
        source="gcsfs",
        tests=("gcsfs/tests",),
        # With this address its tests take what answers for Cloud Storage itself, and sign in.
        variables={
            "STORAGE_EMULATOR_HOST": GOOGLE_STORAGE,
            "GCSFS_TEST_PROJECT": "{project}",
            "GCSFS_TEST_BUCKET": "gcsfs-suite",
            "GCSFS_TEST_VERSIONED_BUCKET": "gcsfs-suite-versioned",
            "GCSFS_ZONAL_TEST_BUCKET": "gcsfs-suite-zonal",
        },
    ),
    Suite(name="google-cloud-storage", source="google-cloud-storage", tests=("tests/system",)),
    Suite(name="google-cloud-bigquery", source="google-cloud-bigquery", tests=("tests/system",)),
    Suite(name="pandas-gbq", source="pandas-gbq", tests=("tests/system",)),
    Suite(name="sqlalchemy-bigquery", source="sqlalchemy-bigquery", tests=("tests/system",)),
    Suite(
        name="sqlalchemy",
        source="sqlalchemy-bigquery",
        tests=("tests/sqlalchemy_dialect_compliance",),
    ),
    Suite(
        name="ibis",
        source="ibis-framework",
        tests=("ibis/backends/tests", "ibis/backends/bigquery/tests/system"),
        clients="conformance-ibis",
        # What it expects to fail, and does not, is no pass: the service would have refused it.
        options=("-m", "bigquery", "-o", "xfail_strict=true", "--timeout=60", "--ignore=ibis/backends/tests/tpc"),
        data={"ci/schema/bigquery.sql": "ibis.sql"},
    ),
    Suite(
        name="dbt",
        source="dbt-bigquery",
        # Of 75 files those whose tests take seconds each: a test is a project of its own, with all its runs of dbt.
        tests=tuple(
            f"tests/functional/adapter/{name}"
            for name in (
                "catalog_tests",
                "constraints",
                "describe_relation",
                "hooks",
                "simple_copy",
                "test_aliases.py",
                "test_basic.py",
                "test_simple_seed.py",
            )
        ),
        clients="conformance-dbt",
        variables={
            "BIGQUERY_TEST_NO_ACCESS_DATABASE": "nobodys-project",
            "DO_NOT_TRACK": "1",
            **{f"DBT_TEST_USER_{number}": f"group:{number}@example.com" for number in (1, 2, 3)},
        },
    ),
)
NAMES = tuple(suite.name for suite in SUITES)
