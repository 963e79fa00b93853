"""A team's repository: its models and three lines of DAGs; the software is a package that it names by version.

In: the repository's name, the package's version. Out: the text of each file, by its path.
"""

from __future__ import annotations

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
    "include/environments.yaml": "environments.yaml.j2",
    "include/models/late.yaml": "model.yaml.j2",
    "include/sql/late/examples.sql": "examples.sql.j2",
    "tests/test_models.py": "test_models.py.j2",
}
"""Path in the repository: template of `package_data/templates/team`."""


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
    return {
        path: environment.get_template(template).render(title=title, version=version)
        for path, template in FILES.items()
    }
