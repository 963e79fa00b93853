"""A team's repository: its models and three lines of DAGs; the software is a package that it names by version.

In: the repository's name, the package's version. Out: the text of each file, by its path.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from datetime import UTC, datetime, timedelta

import jinja2

from retraining.core.settings import data_path

FILES = {
    "README.md": "README.md.j2",
    "requirements.txt": "requirements.txt.j2",
    "requirements-dev.txt": "requirements-dev.txt.j2",
    ".gitignore": "gitignore.j2",
    ".pre-commit-config.yaml": "pre-commit-config.yaml.j2",
    ".github/workflows/models.yaml": "github.yaml.j2",
    "cloudbuild/check.yaml": "cloudbuild_check.yaml.j2",
    "cloudbuild/deploy.yaml": "cloudbuild_deploy.yaml.j2",
    "ci/preview.sh": "preview.sh.j2",
    "ci/deploy.sh": "deploy.sh.j2",
    "dags/.airflowignore": "airflowignore.j2",
    "dags/retraining_models.py": "retraining_models.py.j2",
    "demo/demo.yaml": "demo.yaml.j2",
    "demo/data/bigquery/flights/flights.schema.json": "flights.schema.json.j2",
    "include/environments.yaml": "environments.yaml.j2",
    "include/gates/late.py": "gate.py.j2",
    "include/models/late.yaml": "model.yaml.j2",
    "include/sql/late/examples.sql": "examples.sql.j2",
    "include/sql/late/departs_within_the_day.sql": "assertion.sql.j2",
    "tests/test_models.py": "test_models.py.j2",
}
"""Path in the repository: template of `package_data/templates/team`."""
FLIGHTS_PATH = "demo/data/bigquery/flights/flights.csv"
"""Data of the example: rows by chance, the same in every repository."""
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_DAYS, _FLIGHTS_A_DAY = 15, 540  # enough test rows for the gates to judge by
_CARRIERS = {"AA": -0.4, "B6": 0.5, "DL": -0.8, "EV": 0.9, "UA": 0.0}
"""And how much likelier than others their flights are late, in log odds."""


def render_repository(title: str, version: str) -> dict[str, str]:
    """Return the text of each file by its path.

    Args:
        title: What the README is headed by.
        version: Of the package `retraining`, to which the repository keeps.
    """
    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(),  # by the files' endings: none is HTML
        loader=jinja2.FileSystemLoader(data_path("templates/team")),
        undefined=jinja2.StrictUndefined,
        variable_start_string="[[",  # GitHub's expressions and the shell's have the usual braces
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        keep_trailing_newline=True,
    )
    texts = {
        path: environment.get_template(template).render(title=title, version=version)
        for path, template in FILES.items()
    }
    return {**texts, FLIGHTS_PATH: render_flights()}


def render_flights() -> str:
    """Return the example's table as CSV: made-up flights, later ones and those of some carriers likelier late."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["flight_id", "scheduled_departure", "carrier", "hour", "minute", "arr_delay"])
    for number in range(_DAYS * _FLIGHTS_A_DAY):
        minutes = 300 + int(1080 * _chance(number, "minutes"))  # from 5 to 23 o'clock
        carrier = sorted(_CARRIERS)[int(len(_CARRIERS) * _chance(number, "carrier"))]
        odds = -2.6 + _CARRIERS[carrier] + 2.4 * (minutes - 300) / 1080
        is_late = _chance(number, "late") < 1 / (1 + math.exp(-odds))
        delay = (16 if is_late else -30) + int((164 if is_late else 46) * _chance(number, "delay"))
        departure = _FIRST_DAY + timedelta(days=number // _FLIGHTS_A_DAY, minutes=minutes)
        is_cancelled = _chance(number, "cancelled") < 0.02
        row = [f"F{number:05}", f"{departure:%Y-%m-%dT%H:%M:%SZ}", carrier, minutes // 60, minutes % 60]
        table.writerow([*row, "" if is_cancelled else delay])
    return text.getvalue()


def _chance(number: int, what: str) -> float:
    """Return a number from 0 to below 1 that looks like chance, and is the same each time."""
    return int.from_bytes(hashlib.sha256(f"{number} {what}".encode()).digest()[:6], "big") / 2**48
