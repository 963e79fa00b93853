"""`python -m retraining.replay policy MODEL`: another policy, played over what a model's monitor saw for months.

In: the settings, this machine's own credentials, the model's file. Out: lines for a terminal. Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime

import yaml

from retraining.core.documents import Ledger, Signals
from retraining.core.errors import DataError, PlanError, SpecError
from retraining.core.monitoring import policy, replay
from retraining.core.monitoring.replay import Recorded
from retraining.core.naming import storage
from retraining.core.naming.run_keys import stamp
from retraining.core.planning.windows import parse_time
from retraining.core.settings import include_path
from retraining.core.spec.files import find_specs, load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.suggestions import suggest
from retraining.core.untyped import YamlValues
from retraining.hooks.cloud import OwnCloud
from retraining.hooks.ports import CloudPort
from retraining.hooks.shell import print_answer

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


def replay_policy(cloud: CloudPort, given: argparse.Namespace) -> list[str]:
    """Return when a model's policy, with some keys changed, would have acted, beside what was done."""
    spec = _with_changes(_known_spec(given.model), given.set)
    since, until = (parse_time(text, name) if text else None for text, name in _times(given))
    recorded = read_recorded(cloud, spec.name, since, until)
    rows = replay.play(recorded, policy.policy_of(spec), spec)
    return list(replay.explain(recorded, rows))


def check_ledger(cloud: CloudPort, given: argparse.Namespace) -> tuple[list[str], bool]:
    """Return whether each stored row, decided again by its own policy, is the same, and those that are not."""
    since, until = (parse_time(text, name) if text else None for text, name in _times(given))
    spec = _known_spec(given.model)
    early = since - policy.reach(policy.policy_of(spec)) if since else None
    recorded = read_recorded(cloud, spec.name, early, until)
    rows = [each.row for each in recorded]
    judged = [each for each in recorded if since is None or each.signals.as_of >= since]
    changed = [(each.row, replay.decide_again(each, rows)) for each in judged]
    other = [f"{was.ledger_id}: stored {was.words!r}, now {now.words!r}" for was, now in changed if was != now]
    return [f"{len(judged)} rows decided again: {len(judged) - len(other)} the same", *other], not other


def _times(given: argparse.Namespace) -> tuple[tuple[str | None, str], ...]:
    return (given.since, "--since"), (given.until, "--until")


def _known_spec(model: str) -> ModelSpec:
    known = [path.stem for path in find_specs(include_path())]
    if model not in known:
        raise SpecError("MODEL", f"no model {model!r}", f"one of: {', '.join(known)}", suggest(model, known))
    return load_spec(include_path() / "models" / f"{model}.yaml")


def _with_changes(spec: ModelSpec, changes: Sequence[str]) -> ModelSpec:
    """Return the spec with keys of its section `monitoring` changed, each `key=value`, as YAML.

    Raises:
        PlanError: It is none, or no key of that section.
    """
    values: YamlValues = {}
    for text in changes:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith(PREFIX):
            way_out = "For example --set monitoring.policy.windows.exceeded=1"
            raise PlanError("--set", repr(text), f"{PREFIX}<key>=<value>", way_out)
        values[key] = yaml.safe_load(value)
    return spec.with_overrides(values)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="retraining.replay", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    played = commands.add_parser("policy", help="when a policy would have acted, beside what was done")
    played.add_argument("model")
    played.add_argument("--set", action="append", default=[], help="a key of the file's monitoring, key=value")
    played.add_argument("--since", help="only monitor runs as of this time (UTC) and later")
    played.add_argument("--until", help="only monitor runs before this time (UTC)")
    played.add_argument("--check", action="store_true", help="decide the stored rows again, by their own policies")
    return parser


def main(arguments: Sequence[str] | None = None, connect: Callable[[], CloudPort] = OwnCloud) -> int:
    """Do what is asked and print it.

    Returns:
        0, or 1 with the reason; 1 also of a stored row that comes out differently.
    """
    given = _parser().parse_args(arguments)
    if given.check:
        return print_answer(lambda: check_ledger(connect(), given))
    return print_answer(lambda: (replay_policy(connect(), given), True))
