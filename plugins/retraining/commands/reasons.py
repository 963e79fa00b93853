"""The command `reasons`: what each feature added to an endpoint's answers."""

from __future__ import annotations

from pathlib import Path

import click

from retraining.commands.shell import Shell, print_answer
from retraining.core.documents.json_text import read_json
from retraining.core.errors import PlanError
from retraining.core.report.attributions import describe_attributions
from retraining.core.untyped import JsonObject

MOST = 100
"""Instances of one request, as `gcloud ai endpoints explain` takes them."""


def read_instances(path: Path) -> list[JsonObject]:
    """Return the instances of a request's file, `{"instances": [{…}]}`, as `gcloud ai endpoints` takes it.

    Raises:
        PlanError: It is no such file.
    """
    expected, way_out = '{"instances": [{…}, …]}', "An instance has every input of the model by its name"
    try:
        document = read_json(path.read_bytes(), finite=False)  # a missing number is NaN
    except (OSError, ValueError) as error:
        raise PlanError(str(path), str(error), expected, way_out) from error
    rows = document.get("instances") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise PlanError(str(path), "no list of instances by name", expected, way_out)
    if len(rows) > MOST:
        raise PlanError(str(path), f"{len(rows)} instances", f"at most {MOST}", "Ask for some of them at a time")
    return rows


@click.command("reasons")
@click.argument("model")
@click.argument("instances", type=click.Path(path_type=Path))
@click.option("--deployed-model", default="", help="Id of the deployed model that is asked; left out: by the traffic.")
@click.pass_obj
def show_reasons(shell: Shell, model: str, instances: Path, deployed_model: str) -> None:
    """Ask a model's endpoint what each feature added to its answers.

    INSTANCES is a file as `gcloud ai endpoints explain` takes it. The model's file needs deployment.explanations.
    """
    rows, cloud = read_instances(instances), shell.connect()
    endpoint = cloud.endpoints.get(shell.require_model(model))
    if endpoint is None:
        raise PlanError(model, "no endpoint", "one that serves a version", "Run the model with deploy set first")
    print_answer(describe_attributions(rows, cloud.endpoints.explain(endpoint, rows, deployed_model)))
