"""The command `score`: a model's ML Test Score, what satisfies each test and what would."""

from __future__ import annotations

import json

import click

from retraining.commands.shell import Shell, print_answer
from retraining.core.documents.readiness import Readiness
from retraining.core.report.readiness.facts import Facts
from retraining.core.report.readiness.lines import list_score
from retraining.core.report.readiness.score import score_model
from retraining.core.spec.model import ModelSpec
from retraining.hooks.clock import Clock
from retraining.operators.record.readiness import read_score


@click.command("score")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--file-alone", is_flag=True, help="By the model's file alone: ask no bucket.")
@click.pass_obj
def show_score(shell: Shell, model: str, *, as_json: bool, file_alone: bool) -> None:
    """Print a model's ML Test Score.

    The 28 tests of the paper of that name, with what satisfies each and what would: by the model's file, the documents
    of its newest run, and what its monitor saw.
    """
    spec = shell.spec(model)
    score = score_of_file(spec) if file_alone else read_score(shell.connect(), spec)
    if as_json:
        sums = {"model": model, "points": score.points, "meaning": score.meaning, "sections": score.sections}
        print_answer([json.dumps({**sums, **score.model_dump(mode="json")})])
        return
    print_answer(list_score(model, score))


def score_of_file(spec: ModelSpec) -> Readiness:
    """Return the score of a model of which nothing is stored, and of which the settings tell nobody."""
    notify = spec.notify
    told = len(notify.owners or ()) + len(notify.channels or ()) + len(notify.notifiers)
    return score_model(spec, Facts(day=Clock().now().date(), recipients=told))
