"""The command `trial`: asks the services what docs/assumptions.md supposes of them, for less than a dollar."""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from retraining.commands.diagnosis import PASSING, Project, examine
from retraining.commands.doctor import CHECKS
from retraining.commands.shell import INCLUDE, Shell, print_answer, print_warning
from retraining.commands.trial.cleaning import GONE_WITHIN, clean, lock_uri
from retraining.commands.trial.probes import MODEL, Trial, answer_all
from retraining.commands.trial.record import Answer, Names, differences, read_answers, to_text
from retraining.commands.trial.rows import BASIC, LONGEST, ROWS, Rows
from retraining.core.catalog.cost import load_prices
from retraining.core.documents.document import format_time, read_object
from retraining.core.errors import BudgetError, PlanError, SpecError
from retraining.core.naming.environments import Environment, label_of
from retraining.core.program import command_line
from retraining.core.spec.teams import find_specs
from retraining.hooks.trial_calls import TrialCalls


def require_consent(at_most: float | None, paid_at_most: float | None) -> None:
    """Ask whoever sits there to type the price, where no option has said how much may be paid.

    Raises:
        BudgetError: It may cost more, or nobody knows; or another price was typed.
    """
    shown = "unknown" if at_most is None else f"{at_most:.2f}"
    if paid_at_most is None:
        longest = LONGEST + GONE_WITHIN
        print_warning(f"This trial costs up to {shown} US dollars at list prices, and takes up to {longest}.")
        typed = click.prompt(f"Type {shown} to start it", err=True)
        if typed.strip() != shown:
            raise BudgetError("trial", f"typed {typed!r}", shown, "Start it again")
    elif at_most is None or not at_most <= paid_at_most:  # nor if that is no number
        way_out = "Name more with --pay-at-most, or leave it out to be asked"
        raise BudgetError("trial, --pay-at-most", f"a trial costs up to {shown} USD", f"{paid_at_most:.2f}", way_out)


def require_nobodys_name(include: Path) -> None:
    """Refuse to try anything where a model has the name of the trial's own.

    Raises:
        SpecError: One has.
    """
    if MODEL in {path.stem for path in find_specs(include)}:
        raise SpecError(f"models/{MODEL}.yaml", "a model of this name", "another name: a trial's own model has it")


def begin(project: Project) -> Trial:
    """Return a new trial, once nobody else's is under way and none has left anything.

    Raises:
        PlanError: One is, or has.
    """
    now = datetime.now(UTC)
    trial = _trial(project, now)
    text = json.dumps({"trial": trial.number, "began": format_time(now)}).encode()
    stored = trial.cloud.artifacts.write_once(lock_uri(trial), text)
    if stored != text:
        other = read_object(stored, lock_uri(trial))
        raise PlanError(
            lock_uri(trial),
            f"the trial {other.get('trial')}, begun {other.get('began')}",
            "no other trial under way, and nothing left of one",
            f"Wait for its end; where it was broken off: {command_line('trial')} --clean",
        )
    return trial


def _trial(project: Project, now: datetime) -> Trial:
    number, settings = uuid.uuid4().hex[:8], project.settings
    environment = Environment(label=label_of(settings.environment), bucket=settings.bucket)
    session = replace(project.session, environment=environment, placement=settings.placement)
    return Trial(cloud=project.cloud, calls=TrialCalls(session), number=number, deadline=now + LONGEST)


def names_of(project: Project) -> Names:
    """Return the names of this project that no record has."""
    settings = project.settings
    return Names(
        {
            settings.project: "PROJECT",
            settings.query_project or "": "QUERY_PROJECT",
            project.number: "NUMBER",
            settings.bucket: "BUCKET",
            settings.results_bucket: "RESULTS_BUCKET",
            f"{settings.project}.{settings.dataset}": "PROJECT.DATASET",
        }
    )


def _version() -> str:
    try:
        return version("retraining")
    except PackageNotFoundError:
        return "checkout"


def _require_well(project: Project) -> None:
    """Refuse to pay for anything where a line of `doctor` is wrong.

    Raises:
        PlanError: One is.
    """
    with contextlib.redirect_stdout(sys.stderr):
        findings = examine(project, CHECKS)
    if wrong := [finding.check for finding in findings if finding.state not in PASSING]:
        raise PlanError(
            "trial", f"wrong or unknown: {', '.join(wrong)}", "nothing wrong", f"See {command_line('doctor')}"
        )


def _ask_all(project: Project, rows: Rows, keep: Callable[[list[Answer]], None]) -> list[Answer]:
    """Ask everything, and take everything away in the end, whatever happens.

    Each answer is printed and kept as it comes: it was paid for, whatever becomes of those after it.
    """
    trial, answers = begin(project), []
    try:
        for answer in answer_all(rows.parts(trial), trial, names_of(project)):
            print_answer([answer.line()])
            answers.append(answer)
            keep(answers)
    finally:
        _clean(trial)
    return answers


def _clean(trial: Trial) -> None:
    for line in clean(trial):
        print_warning(f"cleaning: {line}")


@click.command("trial")
@click.option(
    "--rows", type=click.Choice(list(ROWS)), default=BASIC, show_default=True, help="Which of the rows; each set apart."
)
@click.option("--pay-at-most", type=float, metavar="USD", help="Ask nothing where it costs no more than this.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), help="Write the answers here, as JSON.")
@click.option(
    "--against", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Compare with such a file."
)
@click.option("--as-connection", is_flag=True, help="Ask as Airflow's connection, not with this machine's credentials.")
@click.option("--clean", "only_clean", is_flag=True, help="Only take away what a trial has left.")
@INCLUDE
@click.pass_obj
def try_services(
    shell: Shell,
    include: Path | None,
    rows: str,
    pay_at_most: float | None,
    record: Path | None,
    against: Path | None,
    *,
    as_connection: bool,
    only_clean: bool,
) -> None:
    """Try what this system supposes of the real services.

    Runs `doctor` first. Then it makes the smallest things that can answer each question, says of each row of
    docs/assumptions.md whether it holds, and takes everything away. The status is 1 where a row is false, or where
    the answers are others than those of --against.
    """
    project = Project(shell, include or shell.find_include(), as_connection=as_connection)
    if only_clean:
        _clean(_trial(project, datetime.now(UTC)))
        return
    there = read_answers(against.read_bytes(), str(against)) if against else None
    require_nobodys_name(project.include)
    _require_well(project)
    prices = load_prices(project.include)
    require_consent(ROWS[rows].price_at_most(prices, project.settings.region), pay_at_most)
    began = datetime.now(UTC)

    def keep(answers: list[Answer]) -> None:
        if record is not None:
            record.write_text(to_text(answers, _version(), began, project.settings.region), encoding="utf-8")

    answers = _ask_all(project, ROWS[rows], keep)
    counts = Counter({True: "hold", False: "are false", None: "are unknown"}[each.holds] for each in answers)
    lines = [", ".join(f"{count} {state}" for state, count in counts.items())]
    other = [] if there is None else differences(answers, there)
    print_answer([*lines, *other], is_good=not other and all(each.holds is not False for each in answers))
