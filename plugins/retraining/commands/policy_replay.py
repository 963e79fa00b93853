"""The command `replay-policy`: another policy, played over what a model's monitor saw for months."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click
import yaml

from retraining.commands.shell import Shell, print_answer, split_pair
from retraining.core.documents import Ledger, Signals
from retraining.core.errors import DataError
from retraining.core.monitoring import policy, replay
from retraining.core.monitoring.orders import reach
from retraining.core.monitoring.replay import Recorded
from retraining.core.naming import storage
from retraining.core.naming.run_keys import stamp
from retraining.core.planning.windows import parse_time
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import YamlValues
from retraining.hooks.ports import CloudPort

PREFIX = "monitoring."


def read_recorded(cloud: CloudPort, model: str, since: datetime | None, until: datetime | None) -> list[Recorded]:
    """Return a model's monitor runs, oldest first: from a time on, before another.

    Raises:
        DataError: There are none.
    """
    folder = storage.monitors_uri(cloud.settings.bucket, model)
    start, end = (stamp(time) if time else "" for time in (since, until))
    uris = cloud.artifacts.list_uris(folder, start=start, end=end, suffix="/ledger.json")
    rows = [Ledger.parse(data, uri) for uri, data in cloud.artifacts.read_some(uris).items()]
    known = [row for row in rows if row.signals_uri and row.facts]
    seen = cloud.artifacts.read_some([str(row.signals_uri) for row in known])
    found = [
        Recorded(signals=Signals.parse(seen[str(row.signals_uri)], str(row.signals_uri)), row=row)
        for row in known
        if row.signals_uri in seen
    ]
    if not found:
        way_out = f"Let monitor__{model} run; rows of earlier releases have no signals"
        raise DataError(folder, "no decision with its signals", "those of some months", way_out)
    return sorted(found, key=lambda each: (each.signals.as_of, str(each.row.ledger_id)))


@click.command("replay-policy")
@click.argument("model")
@click.option("--set", "changes", multiple=True, help="A key of the file's monitoring, key=value; may be repeated.")
@click.option("--since", default="", help="Only monitor runs as of this time (UTC) and later.")
@click.option("--until", default="", help="Only monitor runs before this time (UTC).")
@click.option("--check", is_flag=True, help="Decide the stored rows again, by their own policies.")
@click.pass_obj
def replay_policy(shell: Shell, model: str, changes: tuple[str, ...], since: str, until: str, *, check: bool) -> None:
    """Tell when a policy would have acted, beside what was done.

    It is the file's policy, with the keys changed that are --set. Nothing is written. With --check the status is 1
    where a stored row comes out differently.
    """
    cloud, spec = shell.connect(), shell.spec(model)
    start, end = (parse_time(text, name) if text else None for text, name in ((since, "--since"), (until, "--until")))
    if check:
        lines, is_same = check_ledger(cloud, spec, start, end)
        print_answer(lines, is_good=is_same)
    else:
        spec = _with_changes(spec, changes)
        recorded = read_recorded(cloud, spec.name, start, end)
        print_answer(replay.explain(recorded, replay.play(recorded, policy.policy_of(spec), spec)))


def check_ledger(
    cloud: CloudPort, spec: ModelSpec, since: datetime | None, until: datetime | None
) -> tuple[list[str], bool]:
    """Return whether each stored row, decided again by its own policy, is the same, and those that are not."""
    early = since - reach(policy.policy_of(spec)) if since else None
    recorded = read_recorded(cloud, spec.name, early, until)
    rows = [each.row for each in recorded]
    rows += _remembered_rows(cloud, spec.name, rows)
    judged = [each for each in recorded if since is None or each.signals.as_of >= since]
    changed = [(each.row, replay.decide_again(each, rows)) for each in judged]
    other = [f"{was.ledger_id}: stored {was.message!r}, now {now.message!r}" for was, now in changed if was != now]
    return [f"{len(judged)} rows decided again: {len(judged) - len(other)} the same", *other], not other


def _remembered_rows(cloud: CloudPort, model: str, rows: Sequence[Ledger]) -> list[Ledger]:
    """Return the older rows that some rows were decided by."""
    wanted = {ledger_id for row in rows if row.facts for ledger_id in row.facts.remembered}
    missing = sorted(wanted - {str(row.ledger_id) for row in rows})
    uris = [storage.ledger_uri(cloud.settings.bucket, model, ledger_id) for ledger_id in missing]
    return [Ledger.parse(data, uri) for uri, data in cloud.artifacts.read_some(uris).items()]


def _with_changes(spec: ModelSpec, changes: Sequence[str]) -> ModelSpec:
    """Return the spec with keys of its section `monitoring` changed, each `key=value`, as YAML.

    Raises:
        PlanError: It is none, or no key of that section.
    """
    values: YamlValues = {}
    for text in changes:
        expected, example = f"{PREFIX}<key>=<value>", "monitoring.policy.windows.exceeded=1"
        key, value = split_pair("--set", text, expected, example, PREFIX)
        values[key] = yaml.safe_load(value)
    return spec.with_overrides(values)
