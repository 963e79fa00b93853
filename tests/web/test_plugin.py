"""The plugin as every process of Airflow loads it, and as the API server mounts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOAD = """
import sys
import airflow.plugins_manager
before = set(sys.modules)
import retraining_plugin
print(*sorted(set(sys.modules) - before))
"""


def test_a_process_of_a_task_pays_for_three_files() -> None:
    """Neither FastAPI nor Jinja nor a document is imported with the plugin."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "plugins"},
        cwd=ROOT,
    )
    ours = [name for name in done.stdout.splitlines()[-1].split() if name.partition(".")[0] == "retraining"]
    assert ours == ["retraining", "retraining.web", "retraining.web.lazy", "retraining.web.plugin"]
    assert not {"fastapi", "jinja2", "pydantic"} & set(done.stdout.splitlines()[-1].split())


def test_the_menu_leads_to_the_page_without_a_frame() -> None:
    """Relative to where Airflow is; in a frame no link would lead out of it."""
    from retraining_plugin import RetrainingPlugin

    (view,), (app,) = RetrainingPlugin.external_views, RetrainingPlugin.fastapi_apps
    assert view["name"] == "Models"
    assert f"/{view['href']}" == f"{app['url_prefix']}/models"
    assert "url_route" not in view


def test_the_templates_are_where_the_web_server_looks() -> None:
    """Composer's web server gets `plugins`, and neither `dags` nor `include`."""
    from retraining.core.report.models_page.rendering import TEMPLATES_PATH
    from retraining.core.report.rendering import SHARED_PATH

    assert TEMPLATES_PATH.is_relative_to(ROOT / "plugins")
    assert SHARED_PATH.is_relative_to(ROOT / "plugins")
